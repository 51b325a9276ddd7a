"""The package as those have it who have no checkout: built, installed elsewhere, and used there.

Each environment is new and lies outside the checkout. `make test-wheel` runs this; it takes
minutes.
"""

import os
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from email.parser import Parser
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [pytest.mark.wheel, pytest.mark.timeout(3600)]

ROOT = Path(__file__).parents[2]
UV = os.environ.get("UV", str(ROOT / ".tools/bin/uv"))
PACKAGES = ("dags", "expectations", "jobs", "tidemark", "windowing")
EXAMPLES = "pipelines"
TUTORIAL = ROOT / "docs" / "tutorial.md"
OWN_PLACES = re.compile(r"PYTHON|VIRTUAL_ENV|TIDEMARK|SPARK|AIRFLOW")
"""Variables that would lead a process back to this checkout or its environments."""

SPEC = """\
name: orders
lake: lake
source: {table: lake/bronze/orders, event_time: ordered_at, key: [shop], event_id: id}
watermark: {delay: 10 minutes}
aggregates: {orders: count()}
windows:
  hourly: {kind: tumbling, size: 1 hour}
"""
LAND = """\
import tidemark

spark = tidemark.spark_session()
rows = spark.range(12).selectExpr(
    "concat('o', id) id",
    "if(id % 2 = 0, 'north', 'south') shop",
    "timestamp '2026-03-02 10:00:00' + make_interval(0, 0, 0, 0, 0, id * 10) ordered_at",
)
rows.write.format("delta").save("lake/bronze/orders")
"""
READ_DAGS = """\
import sys
from airflow.dag_processing.dagbag import DagBag

bag = DagBag(dag_folder=sys.argv[1])
heavy = {"pyspark", "delta", "great_expectations"} & set(sys.modules)
print(sorted(bag.dags), sorted(heavy), *bag.import_errors.values(), sep="\\n")
"""


class Environment:
    """A new virtual environment with the package in it, and a directory to work in."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.binaries = home / "environment" / "bin"
        self.work = home / "work"
        self.work.mkdir()
        self.variables = surroundings() | {"PATH": f"{self.binaries}:{os.environ['PATH']}"}
        call_uv("venv", "-q", str(home / "environment"))

    def install(self, *words: str) -> None:
        """Installs with uv, which is pip's `install` in everything that is used here."""
        call_uv("pip", "install", "-q", "--python", str(self.binaries / "python"), *words)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of the environment in its directory."""
        return subprocess.run(
            [str(self.binaries / words[0]), *words[1:]],
            cwd=self.work,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=1800,
        )

    def succeed(self, *words: str) -> str:
        """Runs a command that has to end with 0; returns its standard output."""
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def surroundings() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if not OWN_PLACES.match(name)}


def call_uv(*words: str) -> None:
    done = subprocess.run(
        [UV, *words],
        cwd=ROOT,
        env=dict(surroundings()),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the source distribution, and the wheel that was built from it."""
    place = tmp_path_factory.mktemp("dist")
    call_uv("build", "-q", "--out-dir", str(place))
    return place


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    return next(distributions.glob("tidemark-*.whl"))


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The package without extras."""
    made = Environment(tmp_path_factory.mktemp("bare"))
    made.install("-c", "requirements/spark.txt", str(wheel))
    (made.work / "good.yaml").write_text(SPEC)
    (made.work / "bad.yaml").write_text(SPEC.replace("1 hour", "an hour"))
    return made


@pytest.fixture(scope="module")
def spark_side(jvm: None, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The package with the extra `spark`, in the versions of the lock, not set up yet."""
    made = Environment(tmp_path_factory.mktemp("spark"))
    made.install("-c", "requirements/spark.txt", f"{wheel}[spark]")
    return made


@pytest.fixture(scope="module")
def airflow_side(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Airflow in the versions of the lock, and the package without extras."""
    made = Environment(tmp_path_factory.mktemp("airflow"))
    made.install("--require-hashes", "-r", "requirements/airflow.txt")
    made.install("--no-deps", str(wheel))
    made.variables = {
        **made.variables,
        "AIRFLOW_HOME": str(made.home / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(made.work / "dags"),
        # A folder above the DAG folder is often on Python's path, for modules that DAGs share.
        "PYTHONPATH": str(made.work),
    }
    call_uv("pip", "check", "-q", "--python", str(made.binaries / "python"))
    return made


def tracked(*folders: str) -> set[str]:
    done = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_wheel_holds_every_file_of_its_packages_and_no_other(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    share = f"{wheel.name.partition('-py3')[0]}.data/data/share/tidemark/"
    examples = {name for name in tracked(EXAMPLES) if name.endswith((".yaml", ".json"))}
    described = {name for name in names if ".dist-info/" in name}
    hidden = {"dags/.airflowignore"}
    assert names - described == (tracked(*PACKAGES) - hidden) | {share + name for name in examples}
    assert any(name.endswith("/licenses/LICENSE") for name in described)
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


def test_the_source_distribution_holds_what_the_wheel_is_made_of(distributions: Path) -> None:
    (archive,) = distributions.glob("tidemark-*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", *tracked(*PACKAGES)} - names == {
        "dags/.airflowignore"
    }
    assert not [name for name in names if name.startswith(("tests/", "bench/", "docs/"))]


def test_the_metadata_is_complete(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    said = Parser().parsestr(archive.read(name).decode())
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Description-Content-Type"] == "text/markdown"
    assert all(said[field] for field in ("Summary", "Keywords", "Requires-Python"))
    assert "Typing :: Typed" in (said.get_all("Classifier") or [])
    assert not said["Author"]


def test_without_spark_the_command_line_explains_itself(bare: Environment) -> None:
    assert bare.run("python", "-c", "import pyspark").returncode == 1
    assert "Commands:" in bare.succeed("tidemark", "--help")
    assert "PIPELINE" in bare.succeed("tidemark", "run", "--help")


def test_without_spark_a_bad_spec_is_said_before_what_to_install(bare: Environment) -> None:
    bad, good = bare.run("tidemark", "run", "bad.yaml"), bare.run("tidemark", "run", "good.yaml")
    assert (bad.returncode, good.returncode) == (2, 2)
    assert "bad.yaml: windows.hourly.size: 'an hour'" in bad.stderr
    to_do = "run `pip install 'WHEEL[spark]'` with the path of Tidemark's wheel\n"
    assert good.stderr.endswith(to_do)
    assert len(good.stderr.splitlines()) == 1


def test_without_spark_a_spec_can_be_checked_from_python(bare: Environment) -> None:
    check = "import tidemark; print(tidemark.load_pipeline('good.yaml').name)"
    assert bare.succeed("python", "-c", check) == "orders\n"


def test_without_spark_a_session_names_the_extra(bare: Environment) -> None:
    done = bare.run("python", "-c", "import tidemark; tidemark.spark_session()")
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said.startswith("windowing.errors.UsageError: this needs Spark, and this Python has no")
    assert said.endswith("run `pip install 'WHEEL[spark]'` with the path of Tidemark's wheel")


def test_without_its_jars_a_command_names_setup(spark_side: Environment) -> None:
    (spark_side.work / "orders.yaml").write_text(SPEC)
    done = spark_side.run("tidemark", "show", "orders.yaml", "hourly")
    assert done.returncode == 2
    assert "run `tidemark setup`" in done.stderr


@pytest.fixture(scope="module")
def set_up(jvm: None, spark_side: Environment) -> Environment:
    done = spark_side.run("tidemark", "setup", "--debug")
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert str(spark_side.home / "environment/share/tidemark/jars") in said
    assert "fetched and verified" in said
    return spark_side


def test_a_second_setup_has_nothing_to_do(set_up: Environment) -> None:
    assert "are there, verified" in set_up.succeed("tidemark", "setup")


def test_the_examples_that_are_installed_hold(set_up: Environment) -> None:
    examples = set_up.home / "environment/share/tidemark/pipelines/transcripts"
    said = set_up.succeed("tidemark", "test", str(examples), "-k", "departures_late")
    assert "1 transcript agrees" in said


def test_the_tutorial_comes_to_published_windows(set_up: Environment) -> None:
    if TUTORIAL.exists() and find_spec("tests.support.tutorial"):
        from tests.support.tutorial import play

        for _ in play(TUTORIAL.read_text(), set_up.work, set_up.variables):
            pass
    else:
        follow_shortest_way(set_up)
    published = list(set_up.work.rglob("_published.json"))
    assert len(published) == 1


def follow_shortest_way(reader: Environment) -> None:
    """From a table of orders to published windows."""
    (reader.work / "orders.yaml").write_text(SPEC)
    (reader.work / "land.py").write_text(LAND)
    reader.succeed("python", "land.py")
    for command in ("run", "validate", "publish"):
        reader.succeed("tidemark", command, "orders.yaml")
    said = reader.succeed("tidemark", "show", "orders.yaml", "hourly", "--published")
    assert "4 rows" in said


@pytest.fixture
def dag_folder(airflow_side: Environment) -> Path:
    """The files of docs/airflow.md in a folder called dags, over a directory with one good spec."""
    specs = airflow_side.work / "specs"
    folder = airflow_side.work / "dags"
    for directory in (specs, folder):
        directory.mkdir(exist_ok=True)
    for file in specs.iterdir():
        file.unlink()
    (specs / "orders.yaml").write_text(SPEC)
    page = (ROOT / "docs" / "airflow.md").read_text()
    files = re.findall(r"`(tidemark\w*\.py)`.*?```python\n(.*?)```", page, re.DOTALL)
    assert [name for name, _ in files] == ["tidemark_dags.py", "tidemark_broken_specs.py"]
    for name, text in files:
        assert "/srv/pipelines" in text
        (folder / name).write_text(text.replace("/srv/pipelines", str(specs)))
    return folder


def test_airflow_without_spark_makes_dags_of_a_folder_called_dags(
    airflow_side: Environment, dag_folder: Path
) -> None:
    said = airflow_side.succeed("python", "-c", READ_DAGS, str(dag_folder)).splitlines()
    assert said[-2:] == ["['orders', 'orders_backfill', 'orders_maintain']", "[]"]


def test_airflow_shows_a_broken_spec_and_keeps_the_others(
    airflow_side: Environment, dag_folder: Path
) -> None:
    (airflow_side.work / "specs" / "bad.yaml").write_text(SPEC.replace("1 hour", "an hour"))
    said = airflow_side.succeed("python", "-c", READ_DAGS, str(dag_folder))
    assert "['orders', 'orders_backfill', 'orders_maintain']" in said
    assert "bad.yaml: windows.hourly.size: 'an hour'" in said
