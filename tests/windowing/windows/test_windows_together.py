"""Windows that are made in one pass are those that each makes alone."""

from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.windowing.windows.test_windows_blocks import draw_panes, frame_of, kept
from windowing.aggregates.algebra import Part, rows_part
from windowing.columns import PANE, START, WINDOW
from windowing.grid.range import Range
from windowing.grid.rule import Grid
from windowing.spec.duration import DAY, HOUR, MINUTE
from windowing.spec.kinds import Aligned, Cumulate, Sliding, Tumbling
from windowing.windows import aligned
from windowing.windows.neighbours import cover_needed, keep_near
from windowing.windows.together import identify, spread

pytestmark = pytest.mark.slow

WINDOWS: tuple[Aligned, ...] = (
    Tumbling("tens", Grid(10 * MINUTE), ()),
    Tumbling("hours", Grid(HOUR, 0, 7 * MINUTE), ()),
    Tumbling("days", Grid(DAY, zone="Asia/Kolkata"), ()),
    Tumbling("months", Grid(0, 1, zone="America/New_York"), ()),
    Sliding("few", Grid(10 * MINUTE), 25 * MINUTE, ()),
    Sliding("many", Grid(2 * MINUTE, zone="Europe/London"), 45 * MINUTE, ()),
    Sliding("as_many", Grid(MINUTE), 23 * MINUTE, ()),
    Cumulate("so_far", Grid(HOUR, inner_us=15 * MINUTE), ()),
    Cumulate("day_so_far", Grid(DAY, zone="Asia/Tokyo", inner_us=HOUR), ()),
)
TIMES = Range(-200 * MINUTE, 420 * MINUTE)
Found = set[tuple[Any, ...]]


def find(rows: DataFrame, *names: str) -> Found:
    found = [tuple(row) for row in rows.select("key", *names).collect()]
    assert len(found) == len(set(found))
    return set(found)


def make(panes: DataFrame, windows: Sequence[Aligned], parts: Sequence[Part]) -> DataFrame:
    within = cover_needed(windows, TIMES)
    keys = identify(["key"], windows)
    copies = spread(panes, windows, range(len(windows)))
    runs = aligned.merge_stretches(copies, windows, keys, parts, 0, within)
    return aligned.list_windows(runs, windows, within)


@pytest.mark.parametrize("invertible", [True, False])
def test_windows_of_one_pass_are_those_of_a_pass_each(
    spark: SparkSession, invertible: object
) -> None:
    parts = [rows_part()] if invertible else kept()
    panes = frame_of(spark, list(draw_panes(1)))
    names = ("window_start", "window_end", *(part.name for part in parts))
    # How often a window is touched depends on the merge, but not whether it is.
    together = make(panes, WINDOWS, parts).withColumn("is_touched", F.col("__touched") > 0)
    alone = []
    for place, window in enumerate(WINDOWS):
        of_window = make(panes, [window], parts).withColumn("is_touched", F.col("__touched") > 0)
        alone.append(of_window.withColumn(WINDOW, F.lit(place)))
    expected = find(reduce(DataFrame.unionByName, alone), WINDOW, *names, "is_touched")
    assert find(together, WINDOW, *names, "is_touched") == expected
    assert {row[1] for row in expected} == set(range(len(WINDOWS)))


def test_panes_and_windows_near_fresh_ones_are_found_for_each_window(spark: SparkSession) -> None:
    panes = frame_of(spark, list(draw_panes(3)))
    fresh, before = panes.limit(3), panes.select("key", "pane_start").distinct()
    times = fresh.agg(F.min(F.unix_micros("pane_start")), F.max(F.unix_micros("pane_start")))
    (low, high) = times.collect()[0]
    within = Range(low, high)
    places, keys = (0, 1, 4, 7), identify(["key"], WINDOWS)
    fresh_copies = spread(fresh, WINDOWS, range(len(WINDOWS)))
    copies = spread(before, WINDOWS, places)
    starts = copies.withColumnRenamed("pane_start", "window_start")
    found = find(keep_near(copies, PANE, fresh_copies, WINDOWS, keys, within), WINDOW, "pane_start")
    around = find(
        keep_near(starts, START, fresh_copies, WINDOWS, keys, within), WINDOW, "window_start"
    )
    assert around == found
    expected: set[tuple[str, int, datetime]] = set()
    for place in places:
        alone = keep_near(before, PANE, fresh, [WINDOWS[place]], ["key"], within)
        expected |= {(key, place, at) for key, at in find(alone, "pane_start")}
    # A few more may be found, because the farthest blocks of any window count for all.
    assert found >= expected
    assert found != find(copies, WINDOW, "pane_start")
