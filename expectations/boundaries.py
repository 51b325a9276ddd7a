"""Do windows lie on their grid? One rule, asked of Spark columns where a grid is plain arithmetic, of arrays of windows elsewhere."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.columns import END, START
from windowing.grid.rule import Grid, Run, runs

Instants = npt.NDArray[np.int64]
Index = Callable[[Grid, Any], Any]
"""The number of a grid's last boundary at or before an instant."""


def is_plain(grid: Grid) -> bool:
    """True if the grid is equal steps of UTC."""
    return grid.zone is None and grid.step_us > 0


def on_grid(start: Any, end: Any, index: Index, grid: Grid, size_us: int | None) -> Any:
    """From the beginning of a period to one of its boundaries, or (`size_us`) from a boundary to the same moment `size_us` later.

    The boundaries of a period are its inner ones and its end; without inner ones its end alone. Those that lie at t itself have the
    numbers (index(t - 1), index(t)]: one, none, or several that a clock jump collapsed. Instants are columns or arrays of microseconds;
    so is the answer, of truth values.
    """
    periods = grid.periods
    low, high = index(periods, start - 1), index(periods, start)
    if size_us is None:
        return (
            (low < high)
            & (index(periods, end - 1) == high)
            & (index(grid, end - 1) < index(grid, end))
        )
    ends = replace(periods, origin_us=grid.origin_us + size_us)
    end_low, end_high = index(ends, end - 1), index(ends, end)
    return (low < high) & (end_low < end_high) & (low < end_high) & (end_low < high)


def off_grid(frame: DataFrame, grid: Grid, size_us: int | None) -> int:
    """How many rows of `frame` have a window that isn't on the grid; rows without bounds don't count here.

    Only the distinct windows come to this process, as arrays.
    """
    columns = F.unix_micros(START).alias("start"), F.unix_micros(END).alias("end")
    windows = (
        frame.select(*columns)
        .dropna()
        .groupBy("start", "end")
        .agg(F.count(F.lit(1)).alias("rows"))
        .toArrow()
    )
    start, end, rows = (windows.column(name).to_numpy() for name in ("start", "end", "rows"))
    if not len(rows):
        return 0
    index = _index(int(min(start.min(), end.min())) - 1, int(max(start.max(), end.max())))
    return int(rows[~on_grid(start, end, index, grid, size_us)].sum())


def _index(low_us: int, high_us: int) -> Index:
    """`index` for instants from `low_us` to `high_us`; every grid is laid out once."""
    laid = cache(lambda grid: runs(grid, low_us, high_us))
    return lambda grid, t: _found(laid(grid), t)


def _found(pieces: tuple[Run, ...], t: Instants) -> Instants:
    at = np.array([run.at_us for run in pieces], dtype=np.int64)
    first = np.array([run.first for run in pieces], dtype=np.int64)
    last = np.array([run.last for run in pieces], dtype=np.int64)
    step = np.array([max(run.step_us, 1) for run in pieces], dtype=np.int64)
    per = np.array([run.per for run in pieces], dtype=np.int64)
    inner = np.array([run.inner_us or run.step_us or 1 for run in pieces], dtype=np.int64)
    found = np.searchsorted(at, t, side="right") - 1
    periods, into = np.divmod(t - at[found], step[found])
    k = first[found] + periods * per[found] + into // inner[found]
    spread = np.array([run.step_us > 0 for run in pieces])
    return np.where(spread[found], np.minimum(last[found], k), last[found])
