"""Windows of many panes, beside a plain loop over windows and panes."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.small_lake import at
from windowing.aggregates.algebra import Part, rows_part
from windowing.grid.range import Range
from windowing.grid.rule import Grid
from windowing.spec.duration import MINUTE
from windowing.spec.kinds import CHANGES, OutputPolicy, Sliding, Tumbling
from windowing.windows import aligned

PANES = (
    "key string, pane_start timestamp, rows bigint, least int, most string, "
    "judged_by timestamp, __touched bigint"
)
WITHIN = Range(-500 * MINUTE, 1_000 * MINUTE)
SHAPES = {"20 by 1": (20, 1), "45 by 2": (45, 2), "16 by 1": (16, 1), "60 by 3": (60, 3)}
"""Size and slide in minutes; in `45 by 2` a pane is in 22 windows or in 23."""

Pane = tuple[str, int, int, int | None, str | None, int | None, int]
Windows = dict[tuple[str, int], tuple[int, int | None, str | None, int]]


def kept() -> list[Part]:
    """The parts of the panes; two of them cannot be subtracted."""
    least = Part("least", F.lit(None), F.min, join=F.least)
    most = Part("most", F.lit(None), F.max, join=F.greatest)
    return [rows_part(), least, most]


def draw_panes(seed: int) -> Iterator[Pane]:
    """Few and many panes beside each other, of which some were late for some windows."""
    draw = random.Random(seed)
    for key in "abc":
        for _ in range(draw.choice((1, 5, 60))):
            minute = draw.choice((draw.randrange(30), draw.randrange(-200, 400)))
            judged = draw.choice((None, None, minute + draw.randrange(-5, 25)))
            least = draw.choice((None, draw.randrange(100)))
            most = draw.choice((None, "é", f"{draw.randrange(100)}"))
            yield key, minute, draw.randrange(1, 9), least, most, judged, draw.randrange(2)


def frame_of(spark: SparkSession, panes: list[Pane]) -> DataFrame:
    rows = []
    for key, minute, n, least, most, judged, touched in panes:
        rows.append((key, at(minute), n, least, most, at(judged), touched))
    return spark.createDataFrame(rows, PANES)


def loop_over_windows(panes: list[Pane], size: int, slide: int) -> Windows:
    """Every window with every pane that it contains and that was not late for it."""
    found: dict[tuple[str, int], list[Pane]] = {}
    for pane in panes:
        key, minute, judged = pane[0], pane[1], pane[5]
        for start in range(-600, 1_000, slide):
            contains = start <= minute < start + size
            in_time = judged is None or start + size > judged
            if contains and in_time:
                found.setdefault((key, start), []).append(pane)
    windows: Windows = {}
    for place, inside in found.items():
        least = min((p[3] for p in inside if p[3] is not None), default=None)
        most = max((p[4] for p in inside if p[4] is not None), default=None)
        windows[place] = (sum(p[2] for p in inside), least, most, max(p[6] for p in inside))
    return windows


def windows_of(found: DataFrame) -> Windows:
    minute = (F.unix_seconds("window_start") / 60).cast("int")
    columns = ("key", minute.alias("minute"), "rows", "least", "most", "__touched")
    rows: list[Any] = found.select(*columns).collect()
    windows: Windows = {(row[0], row[1]): tuple(row[2:]) for row in rows}
    assert len(windows) == len(rows)
    return windows


@pytest.mark.parametrize("shape", SHAPES)
def test_windows_of_many_panes_are_those_of_a_plain_loop(spark: SparkSession, shape: str) -> None:
    size, slide = SHAPES[shape]
    window = Sliding("w", Grid(slide * MINUTE), size * MINUTE, ())
    for seed in range(4):
        panes = list(draw_panes(seed))
        runs = aligned.merge_stretches(frame_of(spark, panes), [window], ["key"], kept(), 0, WITHIN)
        # Both are unsigned bytes in UTF-8, so text is ordered alike.
        found = windows_of(aligned.list_windows(runs, [window], WITHIN))
        assert found == loop_over_windows(panes, size, slide), seed


def test_windows_of_many_panes_may_have_no_key(spark: SparkSession) -> None:
    window = Sliding("w", Grid(MINUTE), 20 * MINUTE, ())
    panes: list[Pane] = [("", *pane[1:]) for pane in draw_panes(7)]
    rows = frame_of(spark, panes).drop("key")
    runs = aligned.merge_stretches(rows, [window], [], kept(), 0, WITHIN)
    found = aligned.list_windows(runs, [window], WITHIN).withColumn("key", F.lit(""))
    assert windows_of(found) == loop_over_windows(panes, 20, 1)


def test_windows_of_many_panes_that_show_changes_have_the_same_values(spark: SparkSession) -> None:
    window = Sliding("w", Grid(MINUTE), 20 * MINUTE, (), OutputPolicy(CHANGES))
    panes = list(draw_panes(3))
    runs = aligned.merge_stretches(frame_of(spark, panes), [window], ["key"], kept(), 0, WITHIN)
    assert windows_of(aligned.list_windows(runs, [window], WITHIN)) == loop_over_windows(
        panes, 20, 1
    )


def test_single_panes_are_the_windows_that_merging_them_gives(spark: SparkSession) -> None:
    window = Tumbling("w", Grid(MINUTE), ())
    once = {(pane[0], pane[1]): pane for seed in range(3) for pane in draw_panes(seed)}
    panes = list(once.values())
    assert aligned.has_one_pane(window, [Grid(MINUTE)])
    assert all(part.is_same_alone for part in kept())
    rows = frame_of(spark, panes)
    runs = aligned.merge_different_panes(rows, [window], [Grid(MINUTE)], ["key"], kept(), 0, WITHIN)
    found = windows_of(aligned.list_windows(runs, [window], WITHIN))
    merged = aligned.merge_stretches(rows, [window], ["key"], kept(), 0, WITHIN)
    assert found == windows_of(aligned.list_windows(merged, [window], WITHIN))
    assert found == loop_over_windows(panes, 1, 1)


def test_a_window_is_not_one_pane_where_panes_are_finer_or_begin_elsewhere() -> None:
    hourly = Tumbling("w", Grid(60 * MINUTE), ())
    assert aligned.has_one_pane(hourly, [Grid(60 * MINUTE)])
    assert not aligned.has_one_pane(hourly, [Grid(MINUTE)])
    assert not aligned.has_one_pane(hourly, [Grid(60 * MINUTE), Grid(60 * MINUTE, 0, MINUTE)])
    sliding = Sliding("s", Grid(60 * MINUTE), 60 * MINUTE, ())
    assert not aligned.has_one_pane(sliding, [Grid(60 * MINUTE)])
