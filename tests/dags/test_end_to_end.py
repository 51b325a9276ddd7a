"""The scheduled DAG with the real command line, Spark and Delta.

A few rows land, the DAG runs, readers see the counts. TIDEMARK_E2E names another command than
.venv/bin/tidemark; its directory's python must have the project and Spark.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.models.asset import AssetEvent
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from conftest import HOME, NEEDS_CLI, Outcome

pytestmark = NEEDS_CLI

CANARIES = ("zz-shop-4711", "4712471247", "4713.4713")
"""A key, an id and a price, which no one should find anywhere but in tables."""


def rows_told(run_id: str) -> dict[str, Any]:
    with create_session() as session:
        return {
            e.asset.name: e.extra["rows"]
            for e in session.query(AssetEvent).filter_by(source_run_id=run_id)
        }


def figures_of(run_id: str) -> dict[str, str]:
    with create_session() as session:
        told = session.query(XComModel).filter_by(run_id=run_id, key="summary")
        return {x.task_id: x.value for x in told}


def test_rows_land_and_readers_see_them(landed: Path, outcome: Callable[..., Outcome]) -> None:
    done = outcome("corner")
    assert (done.state, set(done.tasks.values())) == ("success", {"success"})
    assert rows_told(done.run_id) == {"corner.hourly": 2, "corner.visits": 2}
    figures = figures_of(done.run_id)
    assert figures["run"] == "3 read; hourly 2 inserted; visits 2 inserted"
    assert figures["validate"].endswith(" checked, 0 failed")
    assert figures["publish"].endswith(", 2 rows")
    assert (landed.parent / "lake/corner/_published.json").exists()
    assert not {canary for canary in CANARIES if canary in kept_of(done.run_id)}


def kept_of(run_id: str) -> str:
    """All that Airflow keeps of a run: results, rendered templates, logs."""
    with create_session() as session:
        results = [str(x.value) for x in session.query(XComModel).filter_by(run_id=run_id)]
        rendered = [
            str(r.rendered_fields)
            for r in session.query(RenderedTaskInstanceFields).filter_by(run_id=run_id)
        ]
    logs = [file.read_text() for file in HOME.rglob("*.log")]
    assert results and rendered
    return "\n".join([*results, *rendered, *logs])


@pytest.mark.deep
def test_a_broken_expectation_turns_the_run_red_and_publishes_nothing(
    landed: Path, outcome: Callable[..., Outcome]
) -> None:
    """The second half of the same pipeline.

    Its suite now demands more orders an hour than there are.
    """
    (landed / "expectations").mkdir()
    wanted = (
        "{type: expect_column_values_to_be_between, kwargs: {column: orders, min_value: 100}, "
        "severity: critical}"
    )
    (landed / "expectations" / "corner.yaml").write_text(f"hourly:\n  - {wanted}\n")
    (landed / "corner.yaml").write_text(
        (landed / "corner.yaml").read_text() + "expectations: {suite: corner}\n"
    )
    done = outcome("corner")
    assert done.state == "failed"
    assert done.tasks["validate"] == "failed"
    assert done.tasks["publish"] == "upstream_failed"
    assert rows_told(done.run_id) == {}
    assert not (landed.parent / "lake/corner/_published.json").exists()
