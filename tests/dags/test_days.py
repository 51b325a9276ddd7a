"""A DAG by partitions gets exactly the days that publications have changed.

Real publications, made by plain loops over random arrivals, are told to Airflow. Its own scheduler
makes the DAG runs of the reader of the documentation.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.jobs.job import Job
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
from airflow.models.asset import AssetDagRunQueue, AssetEvent, AssetPartitionDagRun
from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.utils.session import create_session
from conftest import ROOT, SPEC, FakeCli, Outcome, name_of_time, publication, register_dags

from dags.announcement import MOST_KEYS, choose_days, find_changed_days

PAGE = ROOT / "docs/operations/schedule-with-airflow.md"
PYTHON = ROOT / ".venv/bin/python"
READERS = ("mail_orders", "export_orders")
Run = Callable[..., Outcome]


@pytest.fixture
def readers(database: None, specs: Path, tmp_path: Path) -> Iterator[None]:
    """Both DAGs of the documentation as Airflow knows them, and the pipeline that they read."""
    (specs / "orders.yaml").write_text(SPEC.format(name="orders"))
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    register_dags(tmp_path / "days", dict(zip(READERS, examples, strict=True)))
    forget()
    yield
    forget()


def forget() -> None:
    """Airflow has neither told nor started anything."""
    with create_session() as session:
        session.query(AssetDagRunQueue).delete()
        session.query(AssetPartitionDagRun).delete()
        session.query(DagRun).filter(DagRun.dag_id.in_(READERS)).delete()


def started_days() -> list[str]:
    """The partitions for which the scheduler now starts the reader by days."""
    with create_session() as session:
        scheduler = SchedulerJobRunner(job=Job())
        known = {run.id for run in session.query(DagRun).filter_by(dag_id="export_orders")}
        scheduler._create_dagruns_for_partitioned_asset_dags(session)
        session.flush()
        runs = session.query(DagRun).filter_by(dag_id="export_orders")
        return sorted(run.partition_key or "" for run in runs if run.id not in known)


def started_without_days() -> int:
    """How often the reader without partitions is to start."""
    with create_session() as session:
        found = session.query(AssetDagRunQueue).count()
        session.query(AssetDagRunQueue).delete()
        return found


def told(run_id: str) -> dict[str, list[str | None]]:
    """By asset the partition keys of the events of a DAG run."""
    found: dict[str, list[str | None]] = {}
    with create_session() as session:
        for event in session.query(AssetEvent).filter_by(source_run_id=run_id):
            found.setdefault(event.asset.name, []).append(event.partition_key)
    return found


def change(publication: int, at: str, *days: str) -> dict[str, Any]:
    ranges = [{"first": day, "last": day} for day in days]
    return {"publication": publication, "at": at, "days": ranges}


@pytest.mark.usefixtures("readers")
def test_a_changed_day_starts_its_reader_and_no_other_day(cli: FakeCli, outcome: Run) -> None:
    at = name_of_time()
    outputs = publication(at)
    outputs["hourly"]["changes"] = [change(9, at, "2026-03-03", "2026-03-07")]
    outputs["visits"]["changes"] = []
    cli.publishes(json.dumps({"outputs": outputs}))
    found = told(outcome("orders").run_id)
    days = sorted(map(str, found.pop("orders.hourly.days")))
    assert (days, found) == (
        ["2026-03-03", "2026-03-07"],
        {"orders.hourly": [None], "orders.visits": [None]},
    )
    assert started_days() == ["2026-03-03", "2026-03-07"]
    assert started_without_days() == 1
    assert started_days() == []
    with create_session() as session:
        assert session.query(Log).filter_by(event="missing partition key").count() == 0


@pytest.mark.usefixtures("readers")
def test_an_output_without_a_changed_day_tells_no_day(cli: FakeCli, outcome: Run) -> None:
    at = name_of_time()
    outputs = publication(at)
    outputs["hourly"]["changes"] = outputs["visits"]["changes"] = []
    cli.publishes(json.dumps({"outputs": outputs}))
    assert set(told(outcome("orders").run_id)) == {"orders.hourly", "orders.visits"}
    assert started_days() == []


@pytest.mark.usefixtures("readers")
def test_too_many_days_are_told_as_none(cli: FakeCli, outcome: Run) -> None:
    at = name_of_time()
    outputs = publication(at)
    years = [{"first": "2020-01-01", "last": "2021-01-01"}]
    outputs["hourly"]["changes"] = [{"publication": 9, "at": at, "days": years}]
    cli.publishes(json.dumps({"outputs": outputs}))
    assert set(told(outcome("orders").run_id)) == {"orders.hourly", "orders.visits"}
    assert started_without_days() == 1


@pytest.mark.usefixtures("readers")
def test_as_many_days_as_airflow_can_store_are_told(cli: FakeCli, outcome: Run) -> None:
    at = name_of_time()
    outputs = publication(at)
    # 31 days of January, 29 of February, 31 of March and 9 of April.
    days = [{"first": "2020-01-01", "last": "2020-04-09"}]
    outputs["hourly"]["changes"] = [{"publication": 9, "at": at, "days": days}]
    cli.publishes(json.dumps({"outputs": outputs}))
    assert len(told(outcome("orders").run_id)["orders.hourly.days"]) == MOST_KEYS


@pytest.mark.usefixtures("readers")
def test_as_many_days_of_all_outputs_are_told_as_airflow_can_store(
    cli: FakeCli, outcome: Run
) -> None:
    at = name_of_time()
    outputs = publication(at)
    for window, last in (("hourly", "2020-03-10"), ("visits", "2020-02-09")):
        days = [{"first": "2020-01-01", "last": last}]
        outputs[window]["changes"] = [{"publication": 9, "at": at, "days": days}]
    cli.publishes(json.dumps({"outputs": outputs}))
    found = told(outcome("orders").run_id)
    assert len(found["orders.visits.days"]) == 40
    assert set(found) == {"orders.hourly", "orders.visits", "orders.visits.days"}


def test_the_longest_lists_are_left_out_first(caplog: pytest.LogCaptureFixture) -> None:
    lists: dict[str, list[str] | None] = {
        name: [str(n) for n in range(count)]
        for name, count in {"a": 40, "b": 70, "c": 60, "d": 10}.items()
    }
    found = choose_days({**lists, "e": None})
    assert {name: len(days) for name, days in found.items()} == {
        "a": 40, "b": 0, "c": 0, "d": 10, "e": 0,
    }  # fmt: skip
    (unknown, longest, next_one) = [record.getMessage() for record in caplog.records]
    assert unknown.startswith("e: not all publications")
    assert longest.startswith("b: 70 days have changed, and those of all outputs together are")
    assert next_one.startswith("c: 60 days")
    assert choose_days({"a": lists["a"], "c": lists["c"]}) == {"a": lists["a"], "c": lists["c"]}


FIRST, SECOND, THIRD = (f"2026-03-0{day}T12:00:00+00:00" for day in (1, 2, 3))
CHANGES = [change(4, FIRST, "2026-01-01"), change(7, SECOND, "2026-01-02", "2026-01-03")]


@pytest.mark.parametrize(
    ("last", "due"),
    [
        ([], ["2026-01-01", "2026-01-02", "2026-01-03"]),
        ([{"entry": 4, "at": FIRST}], ["2026-01-02", "2026-01-03"]),
        ([{"entry": 7, "at": SECOND}], []),
        # Another pipeline of that name was told of, before it was reset.
        ([{"entry": 70, "at": "2026-02-01T00:00:00+00:00"}], [f"2026-01-0{n}" for n in (1, 2, 3)]),
        ([{"rows": 5}], [f"2026-01-0{n}" for n in (1, 2, 3)]),
    ],
)
def test_days_since_the_last_event(last: list[dict[str, Any]], due: list[str]) -> None:
    assert find_changed_days({"changes": CHANGES}, last) == due


def test_days_of_earlier_versions_are_not_known() -> None:
    unknown = [{"publication": 9, "at": THIRD, "days": None}]
    assert find_changed_days({}, []) is None
    assert find_changed_days({"changes": CHANGES + unknown}, []) is None
    told_since = [{"entry": 9, "at": THIRD}]
    assert find_changed_days({"changes": CHANGES + unknown}, told_since) == []


@pytest.mark.parametrize("count", [5, pytest.param(50, marks=pytest.mark.deep)])
@pytest.mark.skipif(not PYTHON.exists(), reason=f"{PYTHON} is not there; run `make setup`")
@pytest.mark.usefixtures("readers")
def test_random_arrivals(cli: FakeCli, outcome: Run, tmp_path: Path, count: int) -> None:
    command = [PYTHON, "-m", "tests.support.random_arrivals", str(tmp_path), "7", str(count)]
    lines = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout
    arrivals = [json.loads(line) for line in lines.splitlines()]
    assert len(arrivals) == count
    cli.reports('{"run": null, "published": true}')
    for number, arrival in enumerate(arrivals):
        if not arrival["seen"]:
            continue
        cli.publishes(json.dumps(arrival["published"]))
        outcome("orders")
        assert started_days() == arrival["days"], number
        assert started_without_days() == 1
