"""The recipe of docs/recipes.md for a task in front of a DAG."""

from pathlib import Path
from typing import Any

from tests.support.recipes import read_block


def test_the_task_of_a_recipe_is_the_first_one(tmp_path: Path) -> None:
    spec = read_block("Parquet, CSV and JSON", "yaml")
    (tmp_path / "orders.yaml").write_text(spec)
    (tmp_path / "others.yaml").write_text(spec.replace("name: orders", "name: others"))
    code = read_block("As the first task of a DAG", "python")
    found: dict[str, Any] = {}
    exec(code.replace('"/srv/pipelines"', repr(str(tmp_path))), found)  # noqa: S102
    orders, others = found["orders"], found["others"]
    assert [task.task_id for task in orders.roots] == ["load"]
    assert {task.task_id for task in orders.tasks} == {"load", *(t.task_id for t in others.tasks)}
    assert orders.get_task("load").downstream_task_ids == {t.task_id for t in others.roots}
    assert "load" not in {task.task_id for task in found["orders_backfill"].tasks}
