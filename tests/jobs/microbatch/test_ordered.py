"""The windows that a batch's events change, kind by kind: expected rows are derived by hand.

Count, delta and punctuation windows last from their first event to a microsecond after their last.
"""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.microbatch.context import RunContext
from jobs.microbatch.ordered import EventBatch, events_of, prepare_keys
from jobs.microbatch.parallel import run_parallel
from tests.support.counted_changes import count_rows
from tests.support.small_lake import Row, SmallLake, just_after, rows_of, small_lake, us
from windowing.source import table as source

PAIRS = {"kind": "count", "count": 2}
CLIMB = {"kind": "delta", "attribute": "attr", "delta": 10}
LAPS = {"kind": "punctuation", "marker": "mark"}
CAPPED = {"kind": "session", "gap": "10 minutes", "max_duration": "20 minutes"}
RECENT = {"kind": "record_sliding", "difference": "10 minutes", "tick": "1 minute"}


def events(lake: SmallLake, batch: RunContext, *rows: Row) -> EventBatch:
    """What the rows add to the event buffer."""
    return events_of(batch, lake.admit(batch, *rows))


def write(part: EventBatch) -> dict[str, int]:
    """Computes the windows before the events are stored, and writes them afterwards."""
    steps = [step for prepared in run_parallel(part.outputs()) for step in prepared]
    part.store()
    counts: dict[str, int] = {}
    for changed in run_parallel(steps):
        counts |= changed
    return counts


def buffered(lake: SmallLake) -> list[Row]:
    """The stored events: key, time, value, run, batch and the windows that they missed."""
    value, missed = F.col("inputs.value").alias("value"), F.array_join("missed", " ")
    found = lake.read("_events").withColumns({"value": value, "names": missed})
    return rows_of(found, "key", "event_time", "value", "run", "batch", "names")


def test_count_delta_and_punctuation_windows_of_a_first_and_a_second_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In order a has 1, 4, 6, 9 and then 3 before 4; b keeps its only event.

    pairs: {1, 4}, {6, 9}, then {1, 3}, {4, 6}, {9}; a pair is closed by its second event.
    climb: the attributes are 0, 5, 11, 30 and then 20 at 3. From the first of an open window 11 is
    the first above 0 + 10, 30 above 11 + 10. With 20 after 0: 20 opens, 5 and 11 are not above 30,
    30 is not either.
    laps: 6 is a marker, which is in no window and closes {1, 4}; the window of 9 is open.
    """
    windows = {"pairs": PAIRS, "climb": CLIMB, "laps": LAPS}
    lake = small_lake(spark, tmp_path, windows)
    first = events(
        lake,
        lake.batch(0),
        ("e1", "a", 1, 1, 0.0),
        ("e2", "a", 4, 2, 5.0),
        ("e3", "a", 6, 4, 11.0, True),
        ("e4", "a", 9, 8, 30.0, False),
        ("e5", "b", 5, 16, 0.0),
    )
    assert write(first) == {}
    after4, after5, after6, after9 = map(just_after, (4, 5, 6, 9))
    # [key, start, end, index, n, total, closed by, revision, run]
    assert lake.rows("_windows_pairs") == [
        ("a", 1, after4, 0, 2, 3, 4, 0, 1),
        ("a", 6, after9, 1, 2, 12, 9, 0, 1),
        ("b", 5, after5, 0, 1, 16, None, 0, 1),
    ]
    assert lake.rows("_windows_climb") == [
        ("a", 1, after4, 0, 2, 3, 6, 0, 1),
        ("a", 6, after6, 1, 1, 4, 9, 0, 1),
        ("a", 9, after9, 2, 1, 8, None, 0, 1),
        ("b", 5, after5, 0, 1, 16, None, 0, 1),
    ]
    assert lake.rows("_windows_laps") == [
        ("a", 1, after4, 0, 2, 3, 6, 0, 1),
        ("a", 9, after9, 1, 1, 8, None, 0, 1),
        ("b", 5, after5, 0, 1, 16, None, 0, 1),
    ]
    assert write(events(lake, lake.batch(1), ("e6", "a", 3, 32, 20.0))) == {}
    assert lake.rows("_windows_pairs") == [
        ("a", 1, just_after(3), 0, 2, 33, 3, 1, 2),
        ("a", 4, after6, 1, 2, 6, 6, 1, 2),
        ("a", 9, after9, 2, 1, 8, None, 0, 2),
        ("b", 5, after5, 0, 1, 16, None, 0, 1),
    ]
    assert lake.rows("_windows_climb") == [
        ("a", 1, just_after(1), 0, 1, 1, 3, 1, 2),
        ("a", 3, after9, 1, 4, 46, None, 1, 2),
        ("b", 5, after5, 0, 1, 16, None, 0, 1),
    ]
    assert lake.rows("_windows_laps") == [
        ("a", 1, after4, 0, 3, 35, 6, 1, 2),
        ("a", 9, after9, 1, 1, 8, None, 0, 1),
        ("b", 5, after5, 0, 1, 16, None, 0, 1),
    ]
    assert buffered(lake) == [
        ("a", 1, 1, 1, 0, ""),
        ("a", 3, 32, 2, 1, ""),
        ("a", 4, 2, 1, 0, ""),
        ("a", 6, 4, 1, 0, ""),
        ("a", 9, 8, 1, 0, ""),
        ("b", 5, 16, 1, 0, ""),
    ]


def test_a_late_event_that_moves_the_start_of_a_capped_session_moves_its_cuts(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Gap 10, at most 20 long: 24 is not before 0 + 20, so it begins the next session of the chain.

    With -5 the chain begins there: 16 is not before -5 + 20, and 24 is before 16 + 20. The chain
    that begins with 60 is another one and keeps its row.
    """
    lake = small_lake(spark, tmp_path, {"capped": CAPPED})
    chain = [("e", "a", minute, 1) for minute in (0, 8, 16, 24, 60)]
    assert write(events(lake, lake.batch(0), *chain))["capped.inserted"] == 3
    # [key, start, end, last event, n, total, revision, run]
    assert lake.rows("capped") == [
        ("a", 0, 20, 16, 3, 3, 0, 1),
        ("a", 24, 34, 24, 1, 1, 0, 1),
        ("a", 60, 70, 60, 1, 1, 0, 1),
    ]
    assert count_rows(write(events(lake, lake.batch(1), ("e", "a", -5, 1)))) == {
        "capped.inserted": 2,
        "capped.updated": 0,
        "capped.deleted": 2,
        "capped.overflow": 0,
    }
    assert lake.rows("capped") == [
        ("a", -5, 15, 8, 3, 3, 0, 2),
        ("a", 16, 34, 24, 2, 2, 0, 2),
        ("a", 60, 70, 60, 1, 1, 0, 1),
    ]


def test_every_tick_makes_the_window_that_ends_with_it_and_the_one_after_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """[t - 10, t] and [t + 1, t + 11], the latter if it has an event; 0.5 is in the tick of 0.

    After 5 no event follows within 11 minutes, and 40 is alone.
    """
    lake = small_lake(spark, tmp_path, {"recent": RECENT})
    first = events(lake, lake.batch(0), ("e1", "a", 0, 1), ("e2", "a", 0.5, 2), ("e3", "a", 40, 8))
    assert write(first)["recent.inserted"] == 2
    # [key, start, end, n, total, revision, run]
    assert lake.rows("recent") == [("a", -10, 1, 2, 3, 0, 1), ("a", 30, 41, 1, 8, 0, 1)]
    assert count_rows(write(events(lake, lake.batch(1), ("e4", "a", 5, 4)))) == {
        "recent.inserted": 2,
        "recent.updated": 0,
        "recent.deleted": 0,
        "recent.overflow": 0,
    }
    assert lake.rows("recent") == [
        ("a", -10, 1, 2, 3, 0, 1),
        ("a", -5, 6, 3, 7, 0, 2),
        ("a", 1, 12, 1, 4, 0, 2),
        ("a", 30, 41, 1, 8, 0, 1),
    ]


def test_an_event_is_in_no_window_of_events_that_it_is_late_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    """W - L = 20: 19 is late for pairs, but no window of the global one ever is.

    It is stored, and neither this batch nor a later one counts it.
    """
    windows = {"pairs": PAIRS, "all": {"kind": "global"}}
    lake = small_lake(spark, tmp_path, windows, lateness="10 minutes", created=("pairs",))
    late = events(lake, lake.batch(0, watermark=30), ("e1", "a", 19, 1), ("e2", "a", 20, 2))
    write(late)
    assert buffered(lake) == [("a", 19, 1, 1, 0, "pairs"), ("a", 20, 2, 1, 0, "")]
    alone = ("a", 20, just_after(20), 0, 1, 2, None, 0, 1)
    assert lake.rows("_windows_pairs") == [alone]
    write(events(lake, lake.batch(1, watermark=30), ("e3", "a", 21, 4)))
    assert lake.rows("_windows_pairs") == [("a", 20, just_after(21), 0, 2, 6, 21, 1, 2)]


def test_keys_are_recomputed_from_the_last_boundary_before_the_change(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The stored rows are wrong on purpose. A change at 5 reaches back to the pair of 3.

    So the pair of 1 stays as it is, wrong sum included, as does key b, which is not reached. The
    pair of 9 is not stored and becomes a new row.
    """
    lake = small_lake(spark, tmp_path, {"pairs": PAIRS})
    rows = [("e", key, minute, 1) for key in "ab" for minute in (1, 2, 3, 5, 9)]
    events(lake, lake.batch(0), *rows).store()
    wrong = [(1, just_after(2), 0, 2, 77, 2, 0, 1), (3, just_after(5), 1, 2, 88, 5, 0, 1)]
    lake.fill("_windows_pairs", *((key, *row) for key in "ab" for row in wrong))
    batch = lake.batch(7)
    reached = spark.createDataFrame([("a", us(5), us(5))], "key string, __t0 long, __t1 long")
    stored = lake.read("_events")
    schema = source.schema(spark, lake.pipeline)
    counts = prepare_keys(batch, lake.pipeline.ordered[0], reached, stored, None, schema)()
    # Only overflows of a complete table are counted.
    assert counts == {}
    assert lake.rows("_windows_pairs") == [
        ("a", *wrong[0]),
        ("a", 3, just_after(5), 1, 2, 2, 5, 1, 8),
        ("a", 9, just_after(9), 2, 1, 1, None, 0, 8),
        ("b", *wrong[0]),
        ("b", *wrong[1]),
    ]
    none = prepare_keys(batch, lake.pipeline.ordered[0], reached, None, None, schema)()
    assert none == {}
