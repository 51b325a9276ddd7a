"""Which variables a project's target sets for a command, before anything else is imported."""

import subprocess
import sys
from pathlib import Path

import pytest

from jobs.engine.target_variables import target_variables

PROJECT = """
target = "dev"
[targets.dev]
engine = "auto"
[targets.prod]
master = "spark://host:7077"
engine = "off"
"""
MASTER, ENGINE = "SPARK_MASTER", "TIDEMARK_ENGINE"
PROD = {MASTER: "spark://host:7077", ENGINE: "off"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A project with a spec in a folder of it."""
    (tmp_path / "tidemark.toml").write_text(PROJECT)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "orders.yaml").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "environ", "expected"),
    [
        ("run orders", {}, {ENGINE: "auto"}),
        ("run orders --target prod", {}, PROD),
        ("run --target=dev orders --target=prod", {}, PROD),
        ("run orders", {"TIDEMARK_TARGET": "prod"}, PROD),
        ("run orders --target dev", {"TIDEMARK_TARGET": "prod"}, {ENGINE: "auto"}),
        # What the environment says stays; an empty text says nothing.
        ("run orders", {"TIDEMARK_TARGET": "prod", MASTER: "local[2]"}, {ENGINE: "off"}),
        ("run orders", {ENGINE: "off"}, {}),
        ("run orders", {ENGINE: ""}, {ENGINE: "auto"}),
        # The command says what is wrong with it.
        ("run orders --target prd", {}, {}),
        ("run orders --target", {}, {ENGINE: "auto"}),
        ("", {}, {ENGINE: "auto"}),
    ],
)
def test_a_target_sets_what_the_environment_does_not(
    words: str, environ: dict[str, str], expected: dict[str, str], home: Path
) -> None:
    assert target_variables(words.split(), environ, str(home)) == expected


def test_the_project_is_that_of_a_spec_on_the_command_line(home: Path) -> None:
    words = ["run", "--arrival", "2026-01-01", str(home / "pipelines" / "orders.yaml")]
    assert target_variables(words, {}, "/") == {ENGINE: "auto"}
    assert target_variables([*words[:3], str(home / "no.yaml")], {}, "/") == {}


@pytest.mark.parametrize(
    "text",
    [
        *("targets = 5", "targets.dev = 5", "a = a", ""),
        *("[targets.dev]\nengine = 5", "[targets.dev]\nengine = 'on'"),
        "target = ['dev']\n[targets.dev]\nengine = 'off'",
    ],
)
def test_a_wrong_project_sets_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "tidemark.toml").write_text(text)
    assert target_variables(["run"], {}, str(tmp_path)) == {}


def test_one_target_needs_no_name(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("[tool.tidemark.targets.here]\nmaster = 'local[3]'\n")
    assert target_variables(["run"], {}, str(tmp_path)) == {MASTER: "local[3]"}


STARTS = """
import sys
from jobs import __main__
from jobs.engine import control
control.start_engine = lambda: print("an engine is started")
sys.argv[1:] = ["explain", "nothing"]
__main__.main()
"""


def run_in(home: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in the folder of a project, without the variables of this process."""
    variables = {"PYTHONPATH": str(Path(__file__).parents[3]), "XDG_RUNTIME_DIR": str(home)}
    return subprocess.run(
        [sys.executable, *words],
        cwd=home,
        env=variables | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_command_has_the_engine_that_its_target_names(home: Path) -> None:
    assert run_in(home, "-c", STARTS).stdout == "an engine is started\n"
    assert run_in(home, "-c", STARTS, TIDEMARK_TARGET="prod").stdout == ""
    assert run_in(home, "-c", STARTS, TIDEMARK_ENGINE="off").stdout == ""


def test_a_wrong_engine_is_that_of_its_target(home: Path) -> None:
    """Not that of the variable, which nobody has set; and help needs no right project."""
    (home / "tidemark.toml").write_text(PROJECT.replace('"auto"', '"sometimes"'))
    for environ in ({}, {ENGINE: "off"}):
        done = run_in(home, "-m", "jobs", "explain", "nothing", **environ)
        assert done.returncode == 2
        assert "targets.dev.engine: 'sometimes' is not allowed" in done.stderr
    assert run_in(home, "-m", "jobs", "explain", "--help").returncode == 0
