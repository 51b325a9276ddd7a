"""A range that is rebuilt, and the counts of accepted events: rows are derived by hand."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.microbatch.context import Closing, RunContext
from jobs.microbatch.process import keep_refused, list_contributions
from jobs.recompute.rebuild import rebuild_range
from jobs.recompute.time_range import TimeRange
from jobs.recompute.totals import (
    count_accepted,
    count_accepted_before,
    count_accepted_in,
    count_accepted_since,
    count_partly_late,
    count_partly_late_in,
)
from tests.support.counted_changes import count_rows
from tests.support.small_lake import Row, SmallLake, just_after, small_lake, us
from windowing.admit.again import INSIDE, LIVE
from windowing.columns import DIGEST, JUDGED, MISSED, TIME
from windowing.ledger.rule import ERASE_DONE, MAINTAIN_DONE, LedgerEntry, LedgerExcerpt
from windowing.panes.rule import BACKFILLED
from windowing.panes.table import Stamp
from windowing.spec.duration import MINUTE
from windowing.spec.pipeline import Retention

TENS = {"kind": "tumbling", "size": "10 minutes"}
PAIRS = {"kind": "count", "count": 2}
VISITS = {"kind": "session", "gap": "5 minutes"}
PANES = "_panes_10m"


def store(lake: SmallLake, number: int, watermark: float | None, *events: Row) -> None:
    """Stores the state and the refused rows that a batch adds."""
    batch = lake.batch(number, watermark)
    admitted = lake.admit(batch, *events)
    keep_refused(batch, admitted)
    for part in list_contributions(batch, admitted):
        part.store()


def chunk(low: float, high: float) -> TimeRange:
    """The minutes [low, high), read from the source's first version."""
    return TimeRange(round(low * MINUTE), round(high * MINUTE), 0)


def backfilling(lake: SmallLake, *, expired: bool = False) -> RunContext:
    """The context of a backfill after run 8."""
    stamp = Stamp(9, BACKFILLED, None)
    return RunContext(lake.spark, lake.pipeline, stamp, 0, state_may_be_expired=expired)


def accepted(lake: SmallLake, within: TimeRange, *events: Row) -> DataFrame:
    """Events as a backfill accepts them: on time, and live before."""
    return lake.frame(*events).withColumns(
        {
            TIME: F.unix_micros("ts"),
            DIGEST: F.xxhash64("key", "ts"),
            LIVE: F.lit(True),
            MISSED: F.lit(None).cast("array<string>"),
            JUDGED: F.lit(None).cast("timestamp"),
            INSIDE: F.unix_micros("ts").between(within.start_us, within.end_us - 1),
        }
    )


@pytest.mark.slow
def test_the_state_of_a_range_is_replaced_and_every_window_over_it_corrected(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In [10, 20) a had 12 and b had 15; now a has 12 and 13, with other values, and b has nothing.

    tens: of a only [10, 20) changes, the window of b goes. pairs: a has 1, 12, 13, 25 in place of
    1, 12, 25, so {1, 12} has another sum and {25} becomes {13, 25}.
    """
    lake = small_lake(spark, tmp_path, {"tens": TENS, "pairs": PAIRS})
    store(lake, 0, None, *(("e", "a", t, 1) for t in (1, 12, 25)), ("e", "b", 15, 1))
    tens = [("a", start, start + 10, 1, 1, 0, 1) for start in (0, 10, 20)]
    lake.fill("tens", *tens, ("b", 10, 20, 1, 1, 0, 1))
    # [key, start, end, index, n, total], and closed by where windows are complete, revision, run
    pairs = [("a", 1, just_after(12), 0, 2, 2), ("a", 25, just_after(25), 1, 1, 1)]
    pairs.append(("b", 15, just_after(15), 0, 1, 1))
    ends = (12, None, None)
    lake.fill("_windows_pairs", *((*w, end, 0, 1) for w, end in zip(pairs, ends, strict=True)))
    lake.fill("pairs", *((*w, 0, 1) for w in pairs))
    held = chunk(10, 20)
    events = accepted(lake, held, ("e", "a", 12, 8), ("e", "a", 13, 16))
    closing = Closing(backfilling(lake), us(25), us(25), None)
    assert count_rows(rebuild_range(closing, held, events)) == {
        "tens.inserted": 0,
        "tens.updated": 1,
        "tens.deleted": 1,
        "tens.overflow": 0,
        "pairs.inserted": 0,
        "pairs.updated": 2,
        "pairs.deleted": 1,
        "pairs.overflow": 0,
    }
    assert lake.rows(PANES, "key", "pane_start", "rows", "run", "batch") == [
        ("a", 0, 1, 1, 0),
        ("a", 10, 2, 9, -1),
        ("a", 20, 1, 1, 0),
    ]
    assert lake.rows("_events", "key", "event_time", "run", "batch") == [
        ("a", 1, 1, 0),
        ("a", 12, 9, -1),
        ("a", 13, 9, -1),
        ("a", 25, 1, 0),
    ]
    assert lake.rows("tens") == [tens[0], ("a", 10, 20, 2, 24, 1, 9), tens[2]]
    assert lake.rows("pairs") == [
        ("a", 1, just_after(12), 0, 2, 9, 1, 9),
        ("a", 13, just_after(25), 1, 2, 17, 1, 9),
    ]


KEPT = {"output": "30 minutes"}


def expiring_lake(spark: SparkSession, root: Path, **shown: object) -> SmallLake:
    """Key a has 1, 12, 31 and 45. At W = 60 windows that end at 30 or before have expired.

    The row of [0, 10) was deleted; that of [10, 20) waits for the next maintenance.
    """
    lake = small_lake(spark, root, {"tens": {**TENS, **shown}}, retention=KEPT)
    store(lake, 0, None, *(("e", "a", t, 1) for t in (1, 12, 31, 45)))
    lake.fill("tens", *(("a", start, start + 10, 1, 1, 0, 1) for start in (10, 30, 40)))
    return lake


def rebuild(lake: SmallLake, within: TimeRange, *events: Row) -> dict[str, int]:
    """Rebuilds a range at W = 60; returns how many rows were written, by what was done."""
    closing = Closing(backfilling(lake), us(60), us(60), None)
    counts = count_rows(rebuild_range(closing, within, accepted(lake, within, *events)))
    return {name.removeprefix("tens."): n for name, n in counts.items() if n}


@pytest.mark.slow
def test_rows_that_have_expired_do_not_return_when_everything_is_rebuilt(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Rebuilt with the same events nothing is written.

    With other values the row of [10, 20), which is still there, is corrected, and [50, 60) is new.
    """
    lake = expiring_lake(spark, tmp_path)
    whole = TimeRange(us(1) or 0, (us(59) or 0) + 1, 0, is_everything=True)
    before = lake.version("tens")
    assert rebuild(lake, whole, *(("e", "a", t, 1) for t in (1, 12, 31, 45))) == {}
    assert lake.version("tens") == before
    assert rebuild(
        lake, whole, ("e", "a", 1, 1), ("e", "a", 12, 7), *(("e", "a", t, 1) for t in (31, 45, 59))
    ) == {"inserted": 1, "updated": 1}
    assert lake.rows("tens", "window_start", "total") == [(10, 7), (30, 1), (40, 1), (50, 1)]
    assert lake.rows(PANES, "pane_start") == [(0,), (10,), (30,), (40,), (50,)]


@pytest.mark.deep
def test_empty_windows_that_have_expired_do_not_return_with_a_backfill_elsewhere(
    spark: SparkSession, tmp_path: Path
) -> None:
    """[0, 10) and the empty [20, 30) have expired. Only a backfill of their range shows them.

    A change of the source in that range was asked for by nobody.
    """
    lake = expiring_lake(spark, tmp_path, empty=True)
    before = lake.version("tens")
    assert rebuild(lake, chunk(40, 50), ("e", "a", 45, 1)) == {}
    changed = TimeRange(us(0) or 0, us(10) or 0, 0, batch=3)
    assert rebuild(lake, changed, ("e", "a", 1, 5)) == {}
    assert lake.version("tens") == before
    assert rebuild(lake, chunk(20, 30)) == {"inserted": 1}
    assert lake.rows("tens", "window_start", "n") == [(10, 1), (20, 0), (30, 1), (40, 1)]


@pytest.mark.slow
def test_a_backfill_of_a_range_that_has_expired_shows_its_windows(
    spark: SparkSession, tmp_path: Path
) -> None:
    """All windows over [0, 12) are shown as the events are now, until they expire again."""
    lake = expiring_lake(spark, tmp_path)
    found = rebuild(lake, chunk(0, 12), ("e", "a", 1, 5), ("e", "a", 12, 1))
    assert found == {"inserted": 1}
    assert lake.rows("tens", "window_start", "total") == [(0, 5), (10, 1), (30, 1), (40, 1)]


def test_events_of_a_range_are_counted_by_whole_panes(spark: SparkSession, tmp_path: Path) -> None:
    """[12, 15) is the pane [10, 20), with 12 and 19; 20 is in the next one."""
    lake = small_lake(spark, tmp_path, {"tens": TENS})
    batch = backfilling(lake)
    assert count_accepted_in(batch, chunk(0, 100)) == 0
    assert count_accepted(batch) == 0
    store(lake, 0, None, *(("e", "a", t, 1) for t in (1, 12, 19, 20)))
    assert count_accepted_in(batch, chunk(12, 15)) == 2
    assert count_accepted(batch) == 4
    now = accepted(lake, chunk(12, 15), ("e", "a", 12, 1))
    before = count_accepted_before(batch, LedgerExcerpt(), chunk(12, 15), now)
    assert before == {"before": 2}
    store(lake, 1, None, ("e", "a", 13, 1))
    assert count_accepted_since(batch, LedgerExcerpt(), chunk(12, 15), now, before) == 1


def test_where_state_may_have_expired_an_output_or_the_source_counts(
    spark: SparkSession, tmp_path: Path
) -> None:
    """B has no row, because it was erased or because its rows expired.

    Of the two events of a one is outside the range.
    """
    lake = small_lake(spark, tmp_path, {"tens": TENS})
    lake.fill("tens", ("a", 10, 20, 1, 1, 0, 1))
    batch, held = backfilling(lake, expired=True), chunk(12, 15)
    now = accepted(lake, held, ("e", "a", 12, 1), ("e", "a", 19, 1), ("e", "b", 12, 1))
    whole = LedgerExcerpt()
    by_output = count_accepted_before(batch, whole, held, now)
    assert by_output == {"before": 1, "by_output": 1}
    lake.fill("tens", ("b", 10, 20, 1, 1, 0, 1))
    assert count_accepted_since(batch, whole, held, now, by_output) == 1
    kept = replace(batch.pipeline, retention=Retention(output_us=1))
    changed = replace(batch, pipeline=kept)
    assert count_accepted_since(changed, whole, held, now, by_output) == 1
    assert "by_events" in count_accepted_before(changed, whole, held, now)
    expired = LedgerEntry(MAINTAIN_DONE, counts={"tens": 1})
    of_source = LedgerExcerpt((expired,))
    by_events = count_accepted_before(batch, of_source, held, now)
    assert by_events == {"before": 2, "by_events": 1}
    assert count_accepted_since(batch, of_source, held, now, by_events) == 0


def test_after_an_erasure_the_events_of_keys_with_a_window_are_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    """B was erased: it has no row. Of the two events of a one is outside the range."""
    lake = small_lake(spark, tmp_path, {"tens": TENS})
    lake.fill("tens", ("a", 10, 20, 1, 1, 0, 1))
    batch, held = backfilling(lake, expired=True), chunk(12, 15)
    now = accepted(lake, held, ("e", "a", 12, 1), ("e", "a", 19, 1), ("e", "b", 12, 1))
    expired = LedgerEntry(MAINTAIN_DONE, counts={"tens": 1})
    past = LedgerExcerpt((expired, LedgerEntry(ERASE_DONE)))
    before = count_accepted_before(batch, past, held, now)
    assert before == {"before": 1, "by_events": 1}
    assert count_accepted_since(batch, past, held, now, before) == 1


@pytest.mark.slow
def test_partly_late_events_are_counted_by_the_windows_they_missed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """L = 0 and W = 20: 3 and 14 are late for visits and pairs, but never for the global window.

    16 misses only pairs, because 16 + 5 > 20. Fragments lack what visits missed.
    """
    windows = {"visits": VISITS, "pairs": PAIRS, "all": {"kind": "global"}}
    lake = small_lake(spark, tmp_path, windows, lateness="0 seconds", created=("visits",))
    batch = backfilling(lake)
    assert count_partly_late(batch) == {}
    store(lake, 0, 20, *(("e", key, t, 1) for key, t in (("a", 3), ("b", 14), ("c", 16))))
    assert count_partly_late(batch) == {"visits": 2, "pairs": 3}
    assert count_partly_late_in(batch, chunk(14, 17)) == {
        "partial.visits": -1,
        "partial.pairs": -2,
    }


@pytest.mark.slow
def test_sessions_alone_are_counted_at_all_times_with_what_they_missed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A fragment cannot be cut, so the range does not matter.

    3 is late for visits: 3 + 5 <= 20. It is accepted for the sessions with a longer gap.
    """
    windows = {"visits": VISITS, "stays": {"kind": "session", "gap": "1 hour"}}
    lake = small_lake(spark, tmp_path, windows, lateness="0 seconds")
    store(lake, 0, 20, ("e", "a", 3, 1), ("e", "b", 19, 1))
    assert lake.rows("_fragments_visits", "key") == [("b",)]
    assert count_accepted_in(backfilling(lake), chunk(14, 17)) == 2
