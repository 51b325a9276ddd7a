"""Which events a run has accepted into a window, or why that is not known."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.evidence.accepted_events import AcceptedEvents
from jobs.history import history
from jobs.show import Wanted
from tests.oracle import Count, Event, Global, Sliding, Tumbling, Window
from tests.support.changing_source import Changing
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import FEW, Lab
from windowing.errors import UsageError
from windowing.grid.zone import moment
from windowing.revisions.evidence import Untold

pytestmark = pytest.mark.slow

HOURLY = Tumbling("hourly", 60 * MINUTE)
ROLLING = Sliding("rolling", 60 * MINUTE, 30 * MINUTE)
ALL = Global("all")
PAIRS = Count("pairs", 2)
Told = AcceptedEvents | Untold


def make_lab(
    spark: SparkSession,
    root: Path,
    *windows: Window,
    make: Callable[..., Lab] = Lab,
    ids: bool = True,
) -> Lab:
    """A pipeline in which rows are late half an hour after their window."""
    return make(spark, root, windows, lateness=30 * MINUTE, shows=FEW, ids=ids)


def event(name: str, minute: int, key: str = "a") -> Event:
    """An event so many minutes after the first one there can be."""
    return Event(key, BASE + minute * MINUTE, 1, name)


def events_of(
    lab: Lab, name: str, bounds: tuple[int, int] | None = None, most: int = 9
) -> list[Told]:
    """By value of a window of key `a` the events; its bounds are minutes."""
    start, end = (moment(BASE + at * MINUTE) for at in bounds) if bounds else (None, None)
    wanted = Wanted({"key": ("a",)}, start, end)
    found = history(lab.spark, lab.pipeline, lab.pipeline.window(name), wanted, most)
    (told,) = found.windows
    return list(told.events)


def reason_of(told: Told) -> str:
    """Why nothing is told."""
    assert isinstance(told, Untold)
    return told.reason


@pytest.mark.deep
def test_an_event_that_is_late_for_a_part_of_its_windows_counts_in_the_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path, ROLLING, ALL, PAIRS)
    lab.run([event("first", 40), event("other", 40, "b")])
    lab.run([event("ahead", 95)])
    # W is at 95 minutes, so windows that ended at 60 minutes are final.
    lab.run([event("partly", 50), event("late", 10), event("first", 40)])
    first = AcceptedEvents(1, 0, (("first", BASE + 40 * MINUTE),))
    assert events_of(lab, "rolling", (0, 60)) == [first]
    partly = AcceptedEvents(1, 45 * MINUTE, (("partly", BASE + 50 * MINUTE),))
    assert events_of(lab, "rolling", (30, 90)) == [first, partly]
    both = (("late", BASE + 10 * MINUTE), ("partly", BASE + 50 * MINUTE))
    assert events_of(lab, "all", most=1)[2] == AcceptedEvents(2, 85 * MINUTE, both[:1])
    lab.backfill(BASE, BASE + 60 * MINUTE)
    assert events_of(lab, "rolling", (0, 60)) == [first, AcceptedEvents(2, 85 * MINUTE, both)]
    with pytest.raises(UsageError, match="--events: .* windows of rolling match"):
        events_of(lab, "rolling")
    key = Wanted({"key": ("b",)})
    (pair,) = history(spark, lab.pipeline, lab.pipeline.window("pairs"), key, 1).windows
    assert "order of all events" in reason_of(pair.events[0])


def test_equal_rows_without_ids_are_counted_as_often_as_they_came(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path, HOURLY, ids=False)
    lab.run([event("", 5)])
    lab.run([event("", 5), event("", 5)])
    at = BASE + 5 * MINUTE
    one, two = (AcceptedEvents(n, 0, ((None, at),) * n) for n in (1, 2))
    assert events_of(lab, "hourly", (0, 60)) == [one, two]


@pytest.mark.deep
def test_nothing_is_told_of_a_run_whose_versions_are_gone(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path, HOURLY)
    lab.run([event("first", 5)])
    lab.run([event("second", 6)])
    spark.sql(f"optimize delta.`{tmp_path / 'source'}`")
    lab.run([event("third", 7)])
    files = [
        file
        for file in (tmp_path / "source").glob("*.parquet")
        if "second" in str(spark.read.parquet(str(file)).collect())
    ]
    for file in sorted(files, key=lambda file: file.stat().st_mtime)[:1]:
        file.unlink()
    first, *others = events_of(lab, "hourly", (0, 60))
    assert first == AcceptedEvents(1, 0, (("first", BASE + 5 * MINUTE),))
    assert [reason_of(each)[-12:] for each in others] == ["t run 2 read", "t run 3 read"]
    assert "does not have the versions any more" in reason_of(others[0])


def test_nothing_is_told_of_a_run_that_read_changes(spark: SparkSession, tmp_path: Path) -> None:
    lab = make_lab(spark, tmp_path, HOURLY, make=Changing)
    assert isinstance(lab, Changing)
    lab.run([event("first", 5), event("second", 6)])
    lab.land([event("third", 7)])
    lab.sql("update {} set value = 9 where id = 'first'")
    lab.go()
    told = events_of(lab, "hourly", (0, 60))
    assert [each.count for each in told if isinstance(each, AcceptedEvents)] == [2]
    reasons = [each.reason for each in told if isinstance(each, Untold)]
    changed = "version 3 of the source, which run 2 read, changed or removed rows that there were"
    assert changed in reasons
    # The stream does not say that run 2 has read that version to its end, but the ledger does.
    lab.run([event("fourth", 8)])
    assert events_of(lab, "hourly", (0, 60))[-1] == AcceptedEvents(
        1, 0, (("fourth", BASE + 8 * MINUTE),)
    )
