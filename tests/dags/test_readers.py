"""The DAG of the documentation that reads an output: publications start it, nothing else does."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from airflow.models.asset import AssetDagRunQueue
from airflow.utils.session import create_session
from conftest import ROOT, SPEC, FakeCli, Outcome, register_dags

PAGE = ROOT / "docs/operations/schedule-with-airflow.md"


@pytest.fixture
def readers(database: None, specs: Path, tmp_path: Path) -> Iterator[None]:
    """The DAG `mail_orders` as Airflow knows it, and the pipeline `orders` that it reads."""
    (specs / "orders.yaml").write_text(SPEC.format(name="orders"))
    example, _ = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    register_dags(tmp_path / "readers", {"mail_orders": example})
    yield
    forget()


def started() -> list[str]:
    """The DAGs that are to start, because all assets that they wait for have an event."""
    with create_session() as session:
        return [queued.target_dag_id for queued in session.query(AssetDagRunQueue)]


def forget() -> None:
    with create_session() as session:
        session.query(AssetDagRunQueue).delete()


@pytest.mark.usefixtures("readers")
def test_a_reader_starts_when_an_output_was_published(
    cli: FakeCli, outcome: Callable[..., Outcome]
) -> None:
    assert outcome("orders").tasks["announce"] == "success"
    assert started() == ["mail_orders"]
    forget()
    # The same versions are published again, as when the task is cleared.
    assert outcome("orders").tasks["announce"] == "skipped"
    assert started() == []
