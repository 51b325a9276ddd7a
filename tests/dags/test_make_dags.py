"""One call that makes the DAGs of all specs, and the settings of a checkout's DAG folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from conftest import DAGS, SPEC

from dags.checkout import ROOT, Settings, read_settings
from dags.factory import check_specs, dags_of, make_dags, read_specs

FILE = '''
"""A DAG folder of Airflow."""
from pathlib import Path
from tidemark.dags import make_dags

def tell(context):
    print("told")

made = make_dags(Path({specs!r}), "tidemark", {{"on_failure_callback": tell}}, tags=["shop"])
'''
NAMES = ["dags_of", "make_dags", "made", "read_specs", "settings", "pipeline", "tell", "print"]


def ids(*names: str) -> list[str]:
    return sorted(f"{name}{more}" for name in names for more in ("", "_backfill", "_maintain"))


def test_a_call_makes_the_dags_of_all_good_specs(specs: Path) -> None:
    (specs / "bank.yaml").write_text(SPEC.format(name="bank"))
    (specs / "broken.yaml").write_text("name: [")
    made = make_dags(specs, "tidemark", {"pool": "small"}, "http://reports", tags=["of us"])
    assert sorted(made) == ids("bank", "shop")
    dag: Any = made["bank"]
    assert dag.tags == {"of us", "tidemark"}
    assert {task.pool for task in dag.tasks} == {"small"}
    assert "[Report](http://reports/bank/_report.html)" in dag.doc_md


def test_a_file_without_dags_tells_what_is_broken(specs: Path) -> None:
    check_specs(specs)
    (specs / "broken.yaml").write_text("name: [")
    with pytest.raises(ValueError, match="broken.yaml: ") as raised:
        check_specs(specs)
    assert "shop.yaml" not in str(raised.value)


def test_a_directory_without_specs_is_said(tmp_path: Path) -> None:
    said = f"'{tmp_path}' is a directory without *.yaml and *.yml; name the one that holds"
    with pytest.raises(ValueError, match="TIDEMARK_PIPELINES") as raised:
        check_specs(tmp_path)
    assert str(raised.value).startswith(said)


def test_a_pipeline_may_have_the_name_of_anything_in_the_file(specs: Path, tmp_path: Path) -> None:
    for name in NAMES:
        (specs / f"{name}.yaml").write_text(SPEC.format(name=name))
    folder = tmp_path / "airflow"
    folder.mkdir()
    (folder / "ours.py").write_text(FILE.format(specs=str(specs)))
    bag = DagBag(dag_folder=str(folder))
    assert bag.import_errors == {}
    assert sorted(bag.dags) == ids("shop", *NAMES)
    (tell,) = bag.dags["print"].get_task("run").on_failure_callback
    tell({})


def test_the_dag_folder_of_a_checkout_allows_these_names_too(
    specs: Path, bag: Callable[[], Any]
) -> None:
    for name in NAMES:
        (specs / f"{name}.yaml").write_text(SPEC.format(name=name))
    read = bag()
    assert read.import_errors == {}
    assert sorted(read.dags) == ids("shop", *NAMES)


@pytest.mark.parametrize("environ", [{}, dict.fromkeys(("PIPELINES", "BIN", "REPORTS_URL"), "")])
def test_an_empty_setting_is_none(environ: dict[str, str]) -> None:
    given = {f"TIDEMARK_{name}": value for name, value in environ.items()}
    usual = Settings(ROOT / "pipelines", str(ROOT / ".venv/bin/tidemark"), None)
    assert read_settings(given) == usual


def test_settings_are_taken_as_they_are() -> None:
    given = {
        "TIDEMARK_PIPELINES": "/srv/specs",
        "TIDEMARK_BIN": "tidemark",
        "TIDEMARK_REPORTS_URL": "http://reports",
    }
    assert read_settings(given) == Settings(Path("/srv/specs"), "tidemark", "http://reports")


@pytest.mark.parametrize(
    ("cli", "word"), [(".venv/bin/tidemark", "{}/.venv/bin/tidemark"), ("tidemark", "tidemark")]
)
def test_a_command_by_a_path_is_absolute(
    cli: str, word: str, specs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop,) = read_specs(specs).pipelines
    monkeypatch.chdir(tmp_path)
    live: Any = dags_of(shop, cli)[0]
    # A task runs in a directory of its own.
    monkeypatch.chdir("/")
    said = live.get_task("run").python_callable({})
    assert said.split()[:3] == ["exec", word.format(tmp_path), "run"]


@pytest.mark.parametrize("name", ["TIDEMARK_PIPELINES", "TIDEMARK_BIN"])
def test_a_checkout_with_an_empty_setting_makes_its_own_dags(
    name: str, monkeypatch: pytest.MonkeyPatch, bag: Callable[[], Any]
) -> None:
    monkeypatch.delenv("TIDEMARK_PIPELINES", raising=False)
    monkeypatch.setenv(name, "")
    read = bag()
    assert read.import_errors == {}
    assert "departures" in read.dags
    said = read.dags["departures"].get_task("run").python_callable({})
    assert said.startswith(f"exec {ROOT}/.venv/bin/tidemark run {DAGS.parent}/pipelines/")
