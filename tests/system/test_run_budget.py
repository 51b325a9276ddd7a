"""What four standard runs may cost: Spark jobs, Delta commits and calls over the bridge.

The limits are what the runs needed when they were set, so a later change can't add a job unseen.
Who makes a run cheaper lowers them. After the rest of the suite each run needs one job and eight
calls more than alone, so the limits leave one or two jobs and some calls of room.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.meter import Cost, metered
from bench.standard_runs import HOURLY, ROLLING, land, make_pipeline, many_events, one_event
from jobs.run import run
from jobs.sessions.exact_session import copy_session
from windowing.report.rule import RunReport
from windowing.spec.pipeline import Pipeline

TWELVE = {
    f"of_{hours}": {"kind": "sliding", "size": f"{hours} hours", "slide": "1 hour"}
    for hours in range(1, 13)
}
"""Windows of one family, which are computed and compared together."""
USUAL = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.constraintPropagation.enabled": "true",
}
"""What a session of users has, and that of the tests has not."""


@pytest.fixture
def usual(spark: SparkSession) -> SparkSession:
    """A session with the settings that users have."""
    return copy_session(spark, USUAL)


def run_metered(spark: SparkSession, root: Path, pipeline: Pipeline) -> tuple[RunReport, Cost]:
    """One run, and what it needed."""
    with metered(spark, root / "lake") as meter:
        meter.start()
        report = run(spark, pipeline)
        return report, meter.stop()


def assert_within(cost: Cost, limit: Cost) -> None:
    """Fails where one of the three costs is over its limit."""
    over = []
    for name in ("jobs", "commits", "calls"):
        needed, allowed = getattr(cost, name), getattr(limit, name)
        if needed > allowed:
            over.append(f"{needed} {name}, allowed are {allowed}")
    assert not over


def test_an_event_that_adds_a_window(usual: SparkSession, tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path, HOURLY)
    land(usual, tmp_path, one_event(0))
    run(usual, pipeline)
    land(usual, tmp_path, one_event(3600))
    report, cost = run_metered(usual, tmp_path, pipeline)
    assert (report.windows["hourly"].inserted, report.windows["hourly"].updated) == (1, 0)
    assert_within(cost, Cost(jobs=6, commits=6, calls=1_450))


def test_a_late_event_that_corrects_a_window(usual: SparkSession, tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path, HOURLY)
    land(usual, tmp_path, f"{one_event(0)} union all {one_event(7200)}")
    run(usual, pipeline)
    land(usual, tmp_path, one_event(1))
    report, cost = run_metered(usual, tmp_path, pipeline)
    assert (report.windows["hourly"].inserted, report.windows["hourly"].updated) == (0, 1)
    assert_within(cost, Cost(jobs=10, commits=6, calls=1_900))


def test_a_thousand_events_with_ids_in_two_windows(usual: SparkSession, tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path, {**HOURLY, **ROLLING}, event_id="id")
    land(usual, tmp_path, many_events(0, 10_000, low=0))
    run(usual, pipeline)
    land(usual, tmp_path, many_events(10_000, 1_000, low=3600, late=3600))
    report, cost = run_metered(usual, tmp_path, pipeline)
    assert report.accepted == 1_000
    for name in ("hourly", "rolling"):
        assert report.windows[name].inserted > 0
        assert report.windows[name].updated > 0
    assert_within(cost, Cost(jobs=19, commits=8, calls=3_750))


@pytest.mark.slow
def test_a_hundred_events_in_twelve_windows_of_one_family(
    usual: SparkSession, tmp_path: Path
) -> None:
    """A further window is a commit of its output, and no further job.

    The limits of jobs and calls are wide. With queries of their own the windows took 50 jobs.
    """
    pipeline = make_pipeline(tmp_path, TWELVE)
    land(usual, tmp_path, many_events(0, 300, low=0))
    run(usual, pipeline)
    land(usual, tmp_path, many_events(1_200, 100, low=3600, late=3600))
    report, cost = run_metered(usual, tmp_path, pipeline)
    for name in TWELVE:
        assert report.windows[name].inserted > 0
        assert report.windows[name].updated > 0
    assert_within(cost, Cost(jobs=20, commits=17, calls=15_000))
