"""The DAG of a pipeline with `publish: each`, with a stand-in for the command.

Outputs that pass are told although `validate` fails, and the DAG run fails all the same.
"""

from collections.abc import Callable
from json import dumps
from pathlib import Path

import pytest
from airflow.models.asset import AssetEvent
from airflow.utils.session import create_session
from conftest import SPEC, FakeCli, Outcome, name_of_time, publication

Run = Callable[..., Outcome]
GREEN = {
    "run": "success",
    "validate": "success",
    "publish": "success",
    "announce": "success",
    "report": "success",
    "watcher": "skipped",
}


@pytest.fixture(autouse=True)
def each(specs: Path, cli: FakeCli) -> None:
    """A pipeline of its own whose outputs are published each by itself, and the stand-in."""
    (specs / "stalls.yaml").write_text(f"{SPEC.format(name='stalls')}publish: each\n")


def told(run_id: str) -> set[str]:
    with create_session() as session:
        events = session.query(AssetEvent).filter_by(source_run_id=run_id)
        return {event.asset.name for event in events}


def test_where_all_passes_nothing_is_different(outcome: Run) -> None:
    done = outcome("stalls")
    assert (done.state, done.tasks) == ("success", GREEN)
    assert told(done.run_id) == {"stalls.hourly", "stalls.visits"}


def test_what_passes_is_told_and_the_run_fails(cli: FakeCli, outcome: Run) -> None:
    outcome("stalls")
    cli.exits("validate", 3)
    outputs = {"hourly": publication(name_of_time(), hourly=8)["hourly"]}
    cli.publishes(dumps({"outputs": outputs, "held": {"visits": ["expect_x"]}}))
    done = outcome("stalls")
    assert done.state == "failed"
    assert done.tasks == GREEN | {"validate": "failed", "watcher": "failed"}
    assert told(done.run_id) == {"stalls.hourly"}


def test_where_every_output_is_held_back_nothing_is_told(cli: FakeCli, outcome: Run) -> None:
    cli.exits("validate", 3)
    cli.exits("publish", 3)
    done = outcome("stalls")
    assert done.state == "failed"
    assert done.tasks == GREEN | {
        "validate": "failed",
        "publish": "failed",
        "announce": "upstream_failed",
        "watcher": "failed",
    }
    assert told(done.run_id) == set()


def test_after_a_run_that_failed_nothing_is_published(cli: FakeCli, outcome: Run) -> None:
    cli.exits("run", 4)
    done = outcome("stalls")
    assert done.state == "failed"
    assert done.tasks == GREEN | {
        "run": "failed",
        "validate": "upstream_failed",
        "publish": "skipped",
        "announce": "skipped",
        "watcher": "failed",
    }
    assert [call.split()[0] for call in cli.calls] == ["run", "report"]
