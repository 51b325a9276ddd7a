"""Windows from panes and from fragments, on few rows: the expected rows are written by hand.

Times are minutes after 1970, so that a window is two small numbers.
"""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tests.support.small_lake import at
from windowing.aggregates.algebra import Part, rows_part
from windowing.columns import PANE
from windowing.grid.range import Range
from windowing.grid.rule import Grid
from windowing.spec.duration import MINUTE
from windowing.spec.kinds import CHANGES, Cumulate, OutputPolicy, Sliding, Tumbling
from windowing.windows import aligned, change_points, session, whole
from windowing.windows.gaps import list_empty_windows
from windowing.windows.neighbours import is_touched, keep_near

KEYS = ["key"]
TEN = Tumbling("t", Grid(10 * MINUTE), ())
TWENTY = Sliding("s", Grid(10 * MINUTE), 20 * MINUTE, ())
TWENTY_CHANGES = Sliding("c", Grid(10 * MINUTE), 20 * MINUTE, (), OutputPolicy(CHANGES))
HOUR = Range(0, 60 * MINUTE)
GAP = 10 * MINUTE
PANES = (
    "key string, pane_start timestamp, rows bigint, most bigint, judged_by timestamp, "
    "__touched bigint"
)
FRAGMENTS = "key string, first_event timestamp, last_event timestamp, rows bigint, __touched bigint"
SESSIONS = "key string, window_start timestamp, window_end timestamp, last_event timestamp"


def most() -> Part:
    """A part that cannot be subtracted."""
    return Part("most", F.lit(None), F.max)


def rows_of(frame: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    """The named columns of all rows in order, with minutes after 1970 in place of times."""
    times = [f.name for f in frame.schema.fields if isinstance(f.dataType, T.TimestampType)]
    plain = frame.withColumns({n: (F.unix_seconds(n) / 60).cast("int") for n in times})
    rows = [tuple(row) for row in plain.select(*names).collect()]
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row])


def panes(spark: SparkSession) -> DataFrame:
    rows = [
        ("a", at(0), 1, 7, None, 1),
        ("a", at(10), 2, 5, at(15), 1),
        ("a", at(40), 4, 9, None, 0),
        ("b", at(20), 8, 3, None, 1),
    ]
    return spark.createDataFrame(rows, PANES)


def fragments(spark: SparkSession) -> DataFrame:
    rows = [
        ("a", at(0), at(5), 1, 1),
        ("a", at(15), at(16), 2, 0),
        ("a", at(27), at(27), 4, 1),
        ("a", at(28), at(40), 8, 0),
        ("a", at(30), at(31), 16, 0),
        ("a", at(50), at(50), 32, 0),
        ("b", at(16), at(17), 64, 1),
    ]
    return spark.createDataFrame(rows, FRAGMENTS)


def sessions(spark: SparkSession) -> DataFrame:
    rows = [
        ("a", at(0), at(15), at(5)),
        ("a", at(40), at(52), at(42)),
        ("a", at(70), at(85), at(75)),
        ("b", at(0), at(15), at(5)),
    ]
    return spark.createDataFrame(rows, SESSIONS)


def test_sessions_are_maximal_chains_and_exactly_the_gap_still_belongs(spark: SparkSession) -> None:
    found = session.merge_sessions(fragments(spark), KEYS, GAP, [rows_part()])
    columns = ("key", "window_start", "window_end", "last_event", "rows", "__touched")
    assert rows_of(found, *columns) == [
        ("a", 0, 26, 16, 3, 1),
        ("a", 27, 60, 50, 60, 1),
        ("b", 16, 27, 17, 64, 1),
    ]


def test_chained_numbers_the_chains_of_each_key(spark: SparkSession) -> None:
    found = session.add_chains(fragments(spark), KEYS, GAP)
    assert rows_of(found, "key", "first_event", "__chain") == [
        ("a", 0, 1),
        ("a", 15, 1),
        ("a", 27, 2),
        ("a", 28, 2),
        ("a", 30, 2),
        ("a", 50, 2),
        ("b", 16, 1),
    ]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (15, 15, [0]),
        (16, 16, []),
        (16, 30, [40]),
        (15, 60, [0, 40, 70]),
        (16, 29, []),
        (3, 4, [0]),
    ],
)
def test_a_fragment_touches_the_sessions_of_its_key_within_the_gap(
    spark: SparkSession, first: int, last: int, expected: list[int]
) -> None:
    rows = [("a", at(first), at(last), 1, 1), ("a", at(first), at(last), 1, 1)]
    fresh = spark.createDataFrame(rows, FRAGMENTS)
    found = session.sessions_touched(sessions(spark), fresh, KEYS, GAP)
    assert rows_of(found, "key", "window_start") == [("a", start) for start in expected]


def test_members_lie_inside_a_session_of_their_key(spark: SparkSession) -> None:
    rows = [("a", at(27), at(50), at(40)), ("b", at(0), at(26), at(16))]
    found = session.fragments_of_sessions(
        fragments(spark), spark.createDataFrame(rows, SESSIONS), KEYS
    )
    assert rows_of(found, "key", "first_event") == [("a", 27), ("a", 28), ("a", 30)]


def test_later_adds_microseconds(spark: SparkSession) -> None:
    row = spark.range(1).select(
        F.unix_micros(session.shift_moment(F.timestamp_micros(F.lit(5)), 7))
    )
    assert row.collect()[0][0] == 12


def test_the_global_window_of_a_key_has_no_bounds(spark: SparkSession) -> None:
    found = whole.merge_whole_windows(panes(spark), KEYS, [rows_part(), most()])
    columns = ("key", "window_start", "window_end", "rows", "most", "__touched")
    assert rows_of(found, *columns) == [("a", None, None, 7, 9, 1), ("b", None, None, 8, 3, 1)]


def test_a_pane_counts_in_the_windows_that_hold_it_and_were_not_late(spark: SparkSession) -> None:
    columns = ("key", "pane_start", "__low", "__high")
    forever = aligned.place_panes(panes(spark), [TWENTY], None, HOUR)
    # Window n is [10 n, 10 n + 20).
    everywhere = [("a", 0, -1, 0), ("a", 10, 0, 1), ("a", 40, 3, 4), ("b", 20, 1, 2)]
    assert rows_of(forever, *columns) == everywhere
    late = panes(spark).withColumn("judged_by", F.lit(at(20)))
    # [0, 20) has ended by 20, and [10, 30) has not.
    kept = aligned.place_panes(late, [TWENTY], 0, HOUR)
    assert rows_of(kept, *columns) == [("a", 10, 1, 1), ("a", 40, 3, 4), ("b", 20, 1, 2)]


@pytest.mark.parametrize("parts", [[rows_part], [rows_part, most]], ids=["invertible", "merged"])
def test_sliding_windows_hold_their_panes(
    spark: SparkSession, parts: list[Callable[[], Part]]
) -> None:
    kept = [part() for part in parts]
    runs = aligned.merge_stretches(panes(spark), [TWENTY], KEYS, kept, None, HOUR)
    found = aligned.list_windows(runs, [TWENTY], HOUR)
    assert rows_of(found, "key", "window_start", "window_end", "rows") == [
        ("a", -10, 10, 1),
        ("a", 0, 20, 3),
        ("a", 10, 30, 2),
        ("a", 30, 50, 4),
        ("a", 40, 60, 4),
        ("b", 10, 30, 8),
        ("b", 20, 40, 8),
    ]


def test_tumbling_windows_leave_out_what_was_late(spark: SparkSession) -> None:
    late = panes(spark).withColumn("judged_by", F.lit(at(20)))
    runs = aligned.merge_stretches(late, [TEN], KEYS, [rows_part()], 0, HOUR)
    found = aligned.list_windows(runs, [TEN], HOUR)
    expected = [("a", 40, 50, 4), ("b", 20, 30, 8)]
    assert rows_of(found, "key", "window_start", "window_end", "rows") == expected


def test_points_are_where_the_value_may_change(spark: SparkSession) -> None:
    runs = aligned.merge_stretches(
        panes(spark), [TWENTY_CHANGES], KEYS, [rows_part(), most()], None, HOUR
    )
    found = change_points.list_points(runs, TWENTY_CHANGES, KEYS, [rows_part(), most()], HOUR)
    assert rows_of(found.where("key = 'a'"), "window_start", "rows", "most", "__before") == [
        (-20, None, None, True),
        (-10, 1, 7, False),
        (0, 3, 7, False),
        (10, 2, 5, False),
        (20, None, None, False),
        (30, 4, 9, False),
        (50, None, None, False),
    ]


def test_empty_windows_are_those_of_an_extent_that_hold_nothing(spark: SparkSession) -> None:
    runs = aligned.merge_stretches(panes(spark), [TEN], KEYS, [rows_part(), most()], None, HOUR)
    extents = spark.createDataFrame(
        [("a", 0, 2), ("a", 2, 4), ("b", 2, 2)], "key string, __low bigint, __high bigint"
    )
    found = list_empty_windows(extents, runs, KEYS, [rows_part(), most()])
    assert rows_of(found, "key", "__from", "__to", "rows", "most", "__touched") == [
        ("a", 2, 2, 0, None, 1),
        ("a", 3, 3, 0, None, 1),
    ]


@pytest.mark.parametrize(
    ("window", "expected"), [(TWENTY, [0, 10]), (TWENTY_CHANGES, [0, 10, 20])], ids=["held", "next"]
)
def test_a_fresh_pane_touches_the_stored_windows_that_hold_it(
    spark: SparkSession, window: Sliding, expected: list[int]
) -> None:
    rows = [("a", at(n), at(n + 20), None) for n in (-10, 0, 10, 20, 30)]
    stored = spark.createDataFrame(rows, SESSIONS).alias("s")
    fresh = panes(spark).where("key = 'a' and rows = 2").alias("f")
    found = stored.join(fresh, is_touched(window, None, HOUR)).select("s.window_start")
    assert rows_of(found, "window_start") == [(n,) for n in expected]


def test_stored_panes_beside_a_fresh_one_share_its_key_and_neighbourhood(
    spark: SparkSession,
) -> None:
    fresh = panes(spark).where("key = 'a' and rows = 1")
    found = keep_near(panes(spark), PANE, fresh, [TEN], KEYS, HOUR)
    assert rows_of(found, "key", "pane_start") == [("a", 0)]
    found = keep_near(panes(spark), PANE, fresh, [TWENTY], KEYS, HOUR)
    assert rows_of(found, "key", "pane_start") == [("a", 0), ("a", 10)]


def test_the_period_of_a_cumulate_window_is_exact_beyond_the_integers_of_a_double(
    spark: SparkSession,
) -> None:
    """As in the year 2445, with steps of a microsecond.

    A double would put the last one into the next period.
    """
    window = Cumulate("c", Grid(step_us=3, inner_us=1), ())
    period = 5_000_000_000_000_400
    numbers = [period * 3 + 1, period * 3 + 2, period * 3 + 3]
    rows = spark.createDataFrame([(n,) for n in numbers], "__from long")
    found = rows.select(change_points._find_group(window).alias("group")).collect()
    assert [row["group"] for row in found] == [period, period, period]
