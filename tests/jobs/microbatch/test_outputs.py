"""What is written to an output, and what is not: stored and expected rows are given by hand."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.microbatch.aligned import gather_windows
from jobs.microbatch.context import RunContext
from jobs.microbatch.outputs import (
    Recomputed,
    derive_output,
    prepare_output,
    prepare_shown,
    rederive_output,
)
from tests.support.counted_changes import count_rows, wrote
from tests.support.small_lake import Row, SmallLake, at, just_after, small_lake, span
from windowing.columns import WINDOW
from windowing.merge import table as outputs
from windowing.merge.rule import complete_table
from windowing.spec.kinds import Aligned
from windowing.spec.load import load_pipeline
from windowing.storage import delta

TENS = {"kind": "tumbling", "size": "10 minutes"}
PAIRS = {"kind": "count", "count": 2, "emit": "on_close"}
VALUED = (
    "key string, window_start timestamp, window_end timestamp, n bigint, total bigint, "
    "__overflow boolean"
)
STORED: tuple[Row, ...] = (
    ("same", 0, 10, 1, 5, 3, 1),
    ("other", 0, 10, 1, 5, 3, 1),
    ("emptied", 0, 10, 1, 5, 0, 1),
    ("kept", 0, 10, 1, 5, 0, 1),
)
"""[key, start, end, n, total, revision, run]"""


def valued(lake: SmallLake, *rows: tuple[Any, ...]) -> DataFrame:
    """Recomputed windows [0, 10): (key, n, total, whether a sum overflowed)."""
    named = (
        {
            "key": key,
            "window_start": at(0),
            "window_end": at(10),
            "n": n,
            "total": total,
            "__overflow": lost,
        }
        for key, n, total, lost in rows
    )
    return delta.rows(lake.spark, list(named), VALUED)


def show(batch: RunContext, window: Aligned, new: DataFrame) -> dict[str, int]:
    """Writes what recomputed windows change; returns their counts."""
    steps = prepare_shown(batch, [window], Recomputed(new, span(0, 9)))
    assert steps is not None
    (step,) = steps
    return step()


def test_only_rows_that_differ_are_written_and_their_revision_rises_by_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    """`same` has its values already; `kept` was not recomputed. NULL differs from 5."""
    lake = small_lake(spark, tmp_path, {"tens": TENS})
    lake.fill("tens", *STORED)
    new = valued(
        lake,
        ("same", 1, 5, False),
        ("other", 2, 9, False),
        ("emptied", 1, None, False),
        ("new", 1, 1, False),
    )
    window = lake.pipeline.aligned[0]
    assert count_rows(show(lake.batch(6), window, new)) == wrote("tens", 1, 2)
    expected = [
        ("emptied", 0, 10, 1, None, 1, 7),
        ("kept", 0, 10, 1, 5, 0, 1),
        ("new", 0, 10, 1, 1, 0, 7),
        ("other", 0, 10, 2, 9, 4, 7),
        ("same", 0, 10, 1, 5, 3, 1),
    ]
    assert lake.rows("tens") == expected
    before = lake.version("tens")
    assert count_rows(show(lake.batch(7), window, new)) == wrote("tens", 0)
    assert lake.version("tens") == before


def test_the_change_feed_has_both_images_of_a_correction(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = small_lake(spark, tmp_path, {"tens": TENS})
    lake.fill("tens", *STORED)
    since = lake.version("tens") + 1
    new = valued(lake, ("same", 1, 5, False), ("other", 2, 9, False))
    show(lake.batch(6), lake.pipeline.aligned[0], new)
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    feed = reader.option("startingVersion", since).load(lake.pipeline.table("tens").text)
    rows = feed.select("key", "total", "revision", "_change_type").collect()
    assert sorted(tuple(row) for row in rows) == [
        ("other", 5, 3, "update_preimage"),
        ("other", 9, 4, "update_postimage"),
    ]


def test_a_sum_that_is_lost_is_counted_each_time_and_written_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = small_lake(spark, tmp_path, {"tens": TENS})
    window = lake.pipeline.aligned[0]
    lost = valued(lake, ("a", 2, None, True), ("b", 1, 1, False))
    assert count_rows(show(lake.batch(0), window, lost)) == wrote("tens", 2, overflow=1)
    before = lake.version("tens")
    assert count_rows(show(lake.batch(1), window, lost)) == wrote("tens", 0, overflow=1)
    assert lake.version("tens") == before
    assert lake.rows("tens") == [("a", 0, 10, 2, None, 0, 1), ("b", 0, 10, 1, 1, 0, 1)]


def test_the_output_of_complete_windows_is_derived_from_their_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    """W goes from 10 to 30; the run was the third and accepted events of a from 5 on.

    Shown are windows that are complete and ended by 30: 0 and 1 of a, and 0 of b. 2 of a is
    complete and ends after W, 1 of b has ended and is incomplete. `stale` has no window any more,
    and ended before W without an event of this run, so it is not compared. c was not shown in time
    and is not compared either.
    """
    lake = small_lake(spark, tmp_path, {"pairs": PAIRS})
    end = just_after
    # [key, start, end, index, n, total, closed by, revision, run]
    lake.fill(
        "_windows_pairs",
        ("a", 1, end(5), 0, 2, 3, 5, 1, 3),
        ("a", 6, end(29), 1, 2, 9, 29, 0, 3),
        ("a", 29, end(30), 2, 2, 9, 30, 0, 3),
        ("b", 12, end(19), 0, 2, 4, 19, 0, 1),
        ("b", 20, end(20), 1, 1, 4, None, 0, 1),
        ("c", 2, end(3), 0, 2, 4, 3, 0, 1),
    )
    # [key, start, end, index, n, total, revision, run]
    stale = ("stale", 2, end(3), 0, 2, 2, 0, 1)
    lake.fill("pairs", ("a", 1, end(2), 0, 2, 2, 0, 1), stale)
    closing = lake.closing(3, 10, 30, (5, 30))
    window = lake.pipeline.ordered[0]
    assert count_rows(derive_output(closing, window)) == {
        "pairs.inserted": 2,
        "pairs.updated": 1,
        "pairs.deleted": 0,
        "pairs.overflow": 0,
    }
    shown = [
        ("a", 1, end(5), 0, 2, 3, 1, 3),
        ("a", 6, end(29), 1, 2, 9, 0, 3),
        ("b", 12, end(19), 0, 2, 4, 0, 3),
    ]
    assert lake.rows("pairs") == [*shown, stale]
    # Deriving it again as a whole compares all windows.
    assert rederive_output(closing, window)["pairs.deleted"] == 1
    assert lake.rows("pairs") == [*shown, ("c", 2, end(3), 0, 2, 4, 0, 3)]


def test_of_a_table_of_complete_windows_only_overflows_are_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = small_lake(spark, tmp_path, {"pairs": PAIRS})
    target = complete_table(lake.pipeline, lake.pipeline.ordered[0])
    assert target.path == lake.pipeline.table("_windows_pairs")
    columns = (
        "__op string, key string, window_start timestamp, window_end timestamp, window_index "
        "bigint, n bigint, total bigint, closed_by timestamp, revision bigint, __begun timestamp, "
        "__overflow boolean"
    )
    row = {"key": "a", "window_start": at(1), "window_end": at(2), "window_index": 0}
    more = {"__op": "I", "n": 1, "revision": 0, "__begun": at(1), "__overflow": False}
    changed = delta.rows(spark, [row | more], columns)
    window = lake.pipeline.ordered[0]
    found = prepare_output(lake.batch(0), window, outputs.open_output(target), changed)()
    assert found == {}
    lost = delta.rows(spark, [row | more | {"key": "b", "__overflow": True}], columns)
    found = prepare_output(lake.batch(1), window, outputs.open_output(target), lost)()
    assert found == {"pairs.overflow": 1}
    assert lake.rows("_windows_pairs") == [
        ("a", 1, 2, 0, 1, None, None, 0, 1),
        ("b", 1, 2, 0, 1, None, None, 0, 2),
    ]


def test_windows_of_one_pass_are_compared_each_with_its_own_output(
    spark: SparkSession, tmp_path: Path
) -> None:
    """`tens` has both windows and one of them differs; `twenties` has none yet."""
    windows = {"tens": TENS, "twenties": {"kind": "tumbling", "size": "20 minutes"}}
    lake = small_lake(spark, tmp_path, windows)
    lake.fill("tens", ("a", 0, 10, 1, 5, 3, 1), ("b", 0, 10, 1, 5, 3, 1))
    tens = valued(lake, ("a", 1, 5, False), ("b", 1, 6, False)).withColumn(WINDOW, F.lit(0))
    twenties = valued(lake, ("a", 1, None, True)).withColumn(WINDOW, F.lit(1))
    new = tens.unionByName(twenties)
    by_name = {window.name: window for window in lake.pipeline.aligned}
    both = [by_name["tens"], by_name["twenties"]]
    steps = prepare_shown(lake.batch(6), both, Recomputed(new, span(0, 9), most=3))
    assert steps is not None
    written = {name: n for step in steps for name, n in step().items()}
    assert count_rows(written) == wrote("tens", 0, 1) | wrote("twenties", 1, overflow=1)
    assert lake.rows("tens") == [("a", 0, 10, 1, 5, 3, 1), ("b", 0, 10, 1, 6, 4, 7)]
    assert lake.rows("twenties") == [("a", 0, 10, 1, None, 0, 7)]
    # Too many rows for this process, or nobody knows how many: each window has to come alone.
    for most in (1_000_000, None):
        assert prepare_shown(lake.batch(7), both, Recomputed(new, span(0, 9), most)) is None


ALONE = [("alert",), ("filled",), ("all",)]


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, [("tens", "hours", "rolling", "day"), ("sums",)]),
        # They touch at most 62,000 windows of the first three, and 144,000 of `day`.
        (1_000, [("tens", "hours", "rolling"), ("day",), ("sums",)]),
        (200_001, [("tens",), ("hours",), ("rolling",), ("day",), ("sums",)]),
    ],
)
def test_windows_that_are_computed_together_are_alike_and_few(
    most: int, expected: list[tuple[str, ...]]
) -> None:
    windows = {
        "tens": TENS,
        "hours": {"kind": "tumbling", "size": "1 hour", "zone": "Asia/Tokyo"},
        "rolling": {"kind": "sliding", "size": "1 hour", "slide": "1 minute"},
        "day": {"kind": "cumulate", "max_size": "1 day", "step": "10 minutes"},
        "sums": {"kind": "tumbling", "size": "1 hour", "aggregates": ["total"]},
        "alert": {"kind": "tumbling", "size": "1 hour", "having": "n > 3"},
        "filled": {"kind": "tumbling", "size": "1 hour", "empty": True},
        "all": {"kind": "global"},
    }
    spec = {
        "name": "p",
        "lake": "/lake",
        "source": {"table": "/t", "event_time": "ts", "key": ["key"]},
        "aggregates": {"n": "count()", "total": "sum(value)"},
        "windows": windows,
    }
    found = gather_windows(load_pipeline(spec).windows, most)
    assert {*(tuple(window.name for window in group) for group in found)} == {*expected, *ALONE}
