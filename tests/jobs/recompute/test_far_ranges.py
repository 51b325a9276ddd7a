"""Ranges that reach far beyond the events: to both ends of the calendar."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.backfill import plan
from jobs.microbatch.context import Closing, RunContext
from jobs.microbatch.process import list_contributions
from jobs.recompute.content import narrow_to_content
from jobs.recompute.rebuild import rebuild_range
from jobs.recompute.time_range import TimeRange
from jobs.reconcile import check_range
from tests.oracle import Event, Global, Sliding, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import FEW, Lab
from tests.support.small_lake import SmallLake, small_lake
from windowing.admit.again import INSIDE
from windowing.columns import JUDGED, TIME
from windowing.grid.zone import micros
from windowing.ledger.table import read_history
from windowing.panes.rule import BACKFILLED
from windowing.panes.table import Stamp
from windowing.report.rule import Changed

HOUR, DAY = 60 * MINUTE, 1440 * MINUTE
NEW_YORK = "America/New_York"
WINDOWS = (
    Tumbling("days", DAY, zone=NEW_YORK, empty=True),
    Sliding("rolling", 3 * HOUR, HOUR, zone=NEW_YORK, emit="changes"),
    Global("all"),
)
BEGIN = datetime(1, 1, 1, tzinfo=UTC)
END = datetime(9999, 12, 31, tzinfo=UTC)


def event(name: str, minute: int, key: str = "a") -> Event:
    """An event of value 1, so many minutes after the beginning."""
    return Event(key, BASE + minute * MINUTE, 1, name, minute)


def chunks_begun(lab: Lab) -> int:
    """How many chunks were begun so far."""
    return sum(entry.step == "backfill_intent" for entry in read_history(lab.pipeline).entries)


@pytest.mark.deep
def test_a_backfill_of_all_times_reprocesses_all_events_and_can_be_resumed(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS, lateness=HOUR, shows=FEW)
    lab.run([event("first", 0), event("last", 60 * 24 * 40, "b")])
    lab.run([event("late", 10), event("before the first", -60 * 24 * 50)])
    found = plan(lab.pipeline, BEGIN, END)
    ends_at(Crasher("backfill.rebuilt"), lambda: lab.backfill(micros(BEGIN), micros(END)))
    lab.backfill(micros(BEGIN), micros(END))
    assert check_range(spark, lab.pipeline, BEGIN, END).agrees
    lab.check()
    assert chunks_begun(lab) == len(found.chunks), "the chunk that was begun is not begun again"
    assert found.chunks[0][0] == datetime(4, 1, 1, tzinfo=UTC)
    assert found.chunks[-1][1] == datetime(9997, 1, 1, tzinfo=UTC)
    assert set(found.windows) == {window.name for window in WINDOWS}


@pytest.mark.deep
def test_a_backfill_of_times_without_events_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:2], lateness=HOUR, shows=FEW)
    lab.run([event("first", 0), event("last", 60)])
    for low, high in (((1, 1, 1), (1000, 1, 1)), ((5000, 1, 1), (9999, 12, 31))):
        start, end = (micros(datetime(*day, tzinfo=UTC)) for day in (low, high))
        report = lab.backfill(start, end)
        assert report.read == 0
        assert set(report.windows.values()) == {Changed()}
    lab.check()


TENS = {"kind": "tumbling", "size": "10 minutes"}
FAR = TimeRange(-(10**9) * MINUTE, 10**9 * MINUTE, 0)
"""From the year 68 to 3871."""


def far_lake(spark: SparkSession, root: Path) -> tuple[SmallLake, RunContext]:
    """Panes and a window of b in 1950; only a window of c in 1931, and one of d in 1971."""
    lake = small_lake(spark, root, {"tens": TENS})
    batch = lake.batch(0)
    admitted = lake.admit(batch, ("e", "b", -10_000_000, 1))
    for part in list_contributions(batch, admitted):
        part.store()
    gone = (("b", -10_000_000), ("c", -20_000_000), ("d", 900_000))
    lake.fill("tens", *((key, start, start + 10, 1, 1, 0, 1) for key, start in gone))
    stamp = Stamp(9, BACKFILLED, None)
    return lake, RunContext(spark, lake.pipeline, stamp, 0, state_may_be_expired=False)


def accepted(lake: SmallLake, minute: int) -> DataFrame:
    """An event of a as a backfill accepts it."""
    return lake.frame(("e", "a", minute, 1)).withColumns(
        {
            TIME: F.unix_micros("ts"),
            JUDGED: F.lit(None).cast("timestamp"),
            INSIDE: F.lit(True),
        }
    )


@pytest.mark.slow
def test_far_from_the_events_windows_are_deleted_whose_events_are_gone(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, batch = far_lake(spark, tmp_path)
    closing = Closing(batch, None, None, None)
    counts = rebuild_range(closing, FAR, accepted(lake, 12))
    assert (counts["tens.inserted"], counts["tens.deleted"]) == (1, 3)
    assert lake.rows("_panes_10m", "key", "pane_start") == [("a", 10)]
    assert lake.rows("tens") == [("a", 10, 20, 1, 1, 0, 9)]


def test_a_long_chunk_is_narrowed_to_its_content_and_what_its_windows_need(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The windows of 10 minutes lie in [-20,000,000, 900,010); two lengths of one are added."""
    lake, batch = far_lake(spark, tmp_path)
    family, events = lake.family(), accepted(lake, 12)
    narrow = narrow_to_content(batch, family, FAR, events)
    assert narrow == TimeRange(-20_000_020 * MINUTE, 900_030 * MINUTE + 1, 0)
    before = TimeRange(FAR.start_us, -30_000_000 * MINUTE, 0)
    after = TimeRange(2_000_000 * MINUTE, FAR.end_us, 0)
    assert narrow_to_content(batch, family, before, events) is None
    assert narrow_to_content(batch, family, after, events) is None
    usual = TimeRange(0, 31 * DAY, 0)
    assert narrow_to_content(batch, family, usual, events) == usual


def test_a_long_chunk_without_any_content_still_creates_the_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = small_lake(spark, tmp_path, {"tens": TENS})
    stamp = Stamp(9, BACKFILLED, None)
    batch = RunContext(spark, lake.pipeline, stamp, 0, state_may_be_expired=False)
    no_events = accepted(lake, 12).limit(0)
    rebuild_range(Closing(batch, None, None, None), FAR, no_events)
    assert lake.rows("_panes_10m") == []
    assert lake.rows("tens") == []
