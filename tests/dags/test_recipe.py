"""The recipe of docs/recipes.md for a task in front of a DAG."""

from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag

from tests.support.recipes import read_block

SPEC = read_block("Parquet, CSV and JSON", "yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory of two specs, with the recipe in a folder below it."""
    (tmp_path / "orders.yaml").write_text(SPEC)
    (tmp_path / "others.yaml").write_text(SPEC.replace("name: orders", "name: others"))
    code = read_block("As the first task of a DAG", "python")
    (tmp_path / "airflow").mkdir()
    file = tmp_path / "airflow" / "ours.py"
    file.write_text(code.replace('"/srv/pipelines"', repr(str(tmp_path))))
    return tmp_path


def read_dags(folder: Path) -> dict[str, Any]:
    bag = DagBag(dag_folder=str(folder / "airflow"))
    assert bag.import_errors == {}
    return dict(bag.dags)


def test_the_task_of_a_recipe_is_the_first_one(folder: Path) -> None:
    found = read_dags(folder)
    orders, others = found["orders"], found["others"]
    assert [task.task_id for task in orders.roots] == ["load"]
    assert {task.task_id for task in orders.tasks} == {"load", *(t.task_id for t in others.tasks)}
    assert orders.get_task("load").downstream_task_ids == {t.task_id for t in others.roots}
    assert "load" not in {task.task_id for task in found["orders_backfill"].tasks}


def test_the_others_have_their_dags_while_its_spec_is_broken(folder: Path) -> None:
    (folder / "orders.yaml").write_text("name: [")
    assert sorted(read_dags(folder)) == ["others", "others_backfill", "others_maintain"]
