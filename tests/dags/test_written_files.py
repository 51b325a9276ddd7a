"""The files that `tidemark init` writes for a DAG folder of Airflow, as Airflow reads them."""

from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from conftest import SPEC

from windowing.ingest.project import render_dags

COMMAND = "/opt/tide mark/bin/tidemark"
IDS = ["shop", "shop_backfill", "shop_maintain"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of a project with one pipeline, whose name has a quote and a blank."""
    folder = tmp_path / "bob's shop"
    folder.mkdir()
    (folder / "tidemark.toml").write_text("pipelines = '.'\n[targets.dev]\nlake = 'lake'\n")
    (folder / "shop.yaml").write_text(SPEC.format(name="shop"))
    return folder


def read_files(project: Path) -> Any:
    """What Airflow reads of the files, in a DAG folder elsewhere."""
    folder = project.parent / "airflow"
    folder.mkdir()
    for path, text in render_dags("shop", str(project), COMMAND).items():
        (folder / Path(path).name).write_text(text)
    return DagBag(dag_folder=str(folder))


def test_a_copy_in_a_dag_folder_makes_the_dags_of_the_project(project: Path) -> None:
    bag = read_files(project)
    assert (sorted(bag.dags), bag.import_errors) == (IDS, {})
    said = bag.dags["shop"].get_task("run").python_callable({})
    assert said.startswith(f"exec '{COMMAND}' run ")
    assert "/shop.yaml" in said


def test_a_broken_spec_is_an_import_error_of_the_other_file(project: Path) -> None:
    (project / "bank.yaml").write_text(SPEC.format(name="bank").replace("1 hour", "an hour"))
    bag = read_files(project)
    assert sorted(bag.dags) == IDS
    ((file, error),) = bag.import_errors.items()
    assert Path(file).name == "shop_broken_specs.py"
    assert f"{project}/bank.yaml: windows.hourly.size: 'an hour'" in error


def test_a_project_without_specs_is_an_import_error(project: Path) -> None:
    (project / "shop.yaml").unlink()
    bag = read_files(project)
    (error,) = bag.import_errors.values()
    assert f"'{project}' is a directory without *.yaml and *.yml; name the one that holds" in error


def test_a_project_that_has_moved_is_an_import_error(project: Path) -> None:
    project.rename(project.parent / "moved")
    bag = read_files(project)
    (error,) = bag.import_errors.values()
    assert f"'{project}' is not a directory; name the one that holds the specs" in error
