"""Do windows lie on their grid? One rule, asked of Spark columns where a grid is plain arithmetic, of arrays of windows elsewhere."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.grid.rule import Grid, runs

Instants = npt.NDArray[np.int64]


def is_plain(grid: Grid) -> bool:
    """True if the grid is equal steps of UTC."""
    return grid.zone is None and grid.step_us > 0


def on_grid(start: Any, end: Any, index: Callable[[Grid, Any], Any], grid: Grid, size_us: int | None) -> Any:
    """Tumbling (no size): a boundary and the next one. Sliding: some k has its boundary at `start` and, `size_us` later, its end.

    `index(grid, t)` is the number of the last boundary at or before t, so those at t itself are (index(t - 1), index(t)]: one, none,
    or several that a clock jump collapsed. Instants are columns or arrays of microseconds; so is the answer, of truth values.
    """
    low, high = index(grid, start - 1), index(grid, start)
    if size_us is None:
        return (low < high) & (index(grid, end - 1) == high) & (index(grid, end) > high)
    ends = replace(grid, origin_us=grid.origin_us + size_us)
    end_low, end_high = index(ends, end - 1), index(ends, end)
    return (low < high) & (end_low < end_high) & (low < end_high) & (end_low < high)


def off_grid(frame: DataFrame, grid: Grid, size_us: int | None) -> int:
    """How many rows of `frame` have a window that isn't on the grid; rows without bounds don't count here.

    Only the distinct windows come to this process, as arrays.
    """
    columns = F.unix_micros("window_start").alias("start"), F.unix_micros("window_end").alias("end")
    windows = frame.select(*columns).dropna().groupBy("start", "end").agg(F.count(F.lit(1)).alias("rows")).toArrow()
    start, end, rows = (windows.column(name).to_numpy() for name in ("start", "end", "rows"))
    return int(rows[~on_grid(start, end, _index, grid, size_us)].sum()) if len(rows) else 0


def _index(grid: Grid, t: Instants) -> Instants:
    pieces = runs(grid, int(t.min()), int(t.max()))
    at = np.array([run.at_us for run in pieces], dtype=np.int64)
    first = np.array([run.first for run in pieces], dtype=np.int64)
    last = np.array([run.last for run in pieces], dtype=np.int64)
    step = np.array([run.step_us for run in pieces], dtype=np.int64)
    found = np.searchsorted(at, t, side="right") - 1
    steps = (t - at[found]) // np.maximum(step[found], 1)
    return np.where(step[found] > 0, np.minimum(last[found], first[found] + steps), last[found])
