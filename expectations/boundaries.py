"""Whether windows lie on their grid.

The rule is the same for Spark columns, where a grid is plain arithmetic, and for NumPy arrays of
the distinct windows, where boundaries depend on a zone or on calendar months.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.columns import END, START
from windowing.grid.boundaries import Boundaries
from windowing.grid.rule import Grid

Index = Callable[[Grid, Any], Any]
"""The number of a grid's last boundary at or before an instant."""


def is_plain(grid: Grid) -> bool:
    """True if the grid is equal steps of UTC."""
    return grid.zone is None and grid.step_us > 0


def on_grid(start: Any, end: Any, index: Index, grid: Grid, size_us: int | None) -> Any:
    """Whether each window [start, end) has bounds of `grid` that belong together.

    Without `size_us` a window lasts from the beginning of a period to one of its boundaries: its
    inner boundaries and its end, or its end alone if there are no inner ones. With `size_us` it
    lasts from a boundary to the same moment `size_us` later.

    The boundaries at the instant t itself have the numbers (index(t - 1), index(t)]. These are
    none, one, or several where a clock jump made boundaries coincide.

    `start` and `end` are columns or arrays of microseconds; the result is one of truth values.
    """
    periods = grid.periods
    before_start = index(periods, start - 1)
    at_start = index(periods, start)
    starts_on_grid = before_start < at_start
    if size_us is None:
        ends_in_same_period = index(periods, end - 1) == at_start
        ends_on_boundary = index(grid, end - 1) < index(grid, end)
        return starts_on_grid & ends_in_same_period & ends_on_boundary
    ends = replace(periods, origin_us=grid.origin_us + size_us)
    before_end = index(ends, end - 1)
    at_end = index(ends, end)
    ends_on_grid = before_end < at_end
    # Start and end belong together if they share a boundary number: (a, b] and (c, d] overlap.
    return starts_on_grid & ends_on_grid & (before_start < at_end) & (before_end < at_start)


def find_off_grid(frame: DataFrame, grid: Grid, size_us: int | None) -> pa.Table:
    """The windows of `frame` that aren't on the grid, and how many rows each has.

    [window_start, window_end] -> [start, end, rows], in microseconds. Rows without bounds are left
    out. Only the distinct windows are read into this process.
    """
    start_us = F.unix_micros(START).alias("start")
    end_us = F.unix_micros(END).alias("end")
    row_count = F.count(F.lit(1)).alias("rows")
    bounded = frame.select(start_us, end_us).dropna()
    windows = bounded.groupBy("start", "end").agg(row_count).toArrow()
    start = windows.column("start").to_numpy()
    end = windows.column("end").to_numpy()
    if len(start) == 0:
        return windows
    earliest_us = int(min(start.min(), end.min()))
    latest_us = int(max(start.max(), end.max()))

    @cache
    def lay_out(grid: Grid) -> Boundaries:
        # on_grid asks for the boundaries up to one microsecond before each bound.
        return Boundaries(grid, earliest_us - 1, latest_us)

    is_on_grid = on_grid(start, end, lambda g, t: lay_out(g).find_numbers(t), grid, size_us)
    return windows.filter(pa.array(~is_on_grid))


def count_off_grid(frame: DataFrame, grid: Grid, size_us: int | None) -> int:
    """How many rows of `frame` have a window that isn't on the grid."""
    return pc.sum(find_off_grid(frame, grid, size_us)["rows"]).as_py() or 0


def select_off_grid(frame: DataFrame, grid: Grid, size_us: int | None) -> DataFrame:
    """The rows of `frame` whose window isn't on the grid."""
    windows = find_off_grid(frame, grid, size_us).select(["start", "end"])
    wrong = frame.sparkSession.createDataFrame(windows)
    is_wrong = (F.unix_micros(START) == wrong["start"]) & (F.unix_micros(END) == wrong["end"])
    return frame.join(wrong, is_wrong, "left_semi")
