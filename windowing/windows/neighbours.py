"""Which panes and windows on a grid a change of panes reaches."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.columns import END, JUDGED, PANE, START, Names
from windowing.grid.range import Range
from windowing.panes.rule import grid_shape, longest_span
from windowing.spec.kinds import CHANGES, Aligned, AlignedWindows, Cumulate
from windowing.windows.grid_kind import kind_of
from windowing.windows.together import BLOCK, add_block_of_each


def widen_to_needed(window: Aligned, within: Range) -> Range:
    """`within`, widened so that it contains the start of every pane that a recomputation needs.

    Those share a window with an event of `within`, or with the window next to such a window. The
    ends of these windows are inside too, because they decide which panes were late.
    """
    return within.widen(_count_windows_apart(window) * longest_span(window))


def cover_needed(windows: AlignedWindows, within: Range) -> Range:
    """`widen_to_needed` for several windows, of which there is one at least."""
    return reduce(Range.cover, (widen_to_needed(window, within) for window in windows))


def _count_windows_apart(window: Aligned) -> int:
    """How many windows lie between an event and the panes that its windows are computed from.

    With `emit: changes` each window is compared with the one before it, so it is one more.
    """
    return 2 if window.shown.emit == CHANGES else 1


def is_touched(window: Aligned, lateness_us: int | None, within: Range) -> Column:
    """True where window [s.window_start, s.window_end) changes with pane `f`.

    The window contains the pane, which was not late for it. With `emit: changes` it may also be the
    next window. For a join of stored rows `s` with fresh panes `f` [pane_start, judged_by].
    """
    pane = F.unix_micros(f"f.{PANE}")
    judged = F.unix_micros(f"f.{JUDGED}")
    start = F.unix_micros(f"s.{START}")
    end = F.unix_micros(f"s.{END}")
    contains = (start <= pane) & (pane < end)
    if lateness_us is not None:
        in_time = judged.isNull() | (end + lateness_us > judged)
        contains = contains & in_time
    if window.shown.emit != CHANGES:
        return contains
    return contains | starts_next(window, start, pane, within)


def starts_next(window: Aligned, start: Column, time: Column, within: Range) -> Column:
    """True where `start` is that of the first window after `time`, if it is compared with it.

    Both are microseconds.
    """
    next_start = kind_of(window).find_next_start(time, within)
    return F.lit(False) if next_start is None else start == next_start


def keep_near(
    rows: DataFrame,
    time: str,
    fresh: DataFrame,
    windows: AlignedWindows,
    keys: Names,
    within: Range,
) -> DataFrame:
    """The stored `rows` of the same key whose `time` is near a fresh pane.

    By the start of their pane, these are panes that share a window with a fresh one, and with
    `emit: changes` the next window; by the start of their window, windows that contain a fresh
    pane. They are joined by blocks of steps, so a few that need not be read may be among them.
    """
    wide = cover_needed(windows, within)
    blocks = _add_block(fresh, PANE, windows, wide)
    own_block = F.col(BLOCK)
    near = [own_block + distance for distance in _list_distances(windows)]
    near_blocks = F.explode(F.array(*near)).alias(BLOCK)
    wanted = blocks.select(*keys, near_blocks).distinct()
    placed = _add_block(rows, time, windows, wide)
    return placed.join(wanted, [*keys, BLOCK], "left_semi").drop(BLOCK)


def _add_block(rows: DataFrame, time: str, windows: AlignedWindows, within: Range) -> DataFrame:
    """Adds the number of the block that contains the instant in a column."""
    if len(windows) > 1:
        return add_block_of_each(rows, windows, within, time)
    block = kind_of(windows[0]).find_block(F.unix_micros(time), within)
    return rows.withColumn(BLOCK, block)


def _list_distances(windows: AlignedWindows) -> list[int]:
    """How far from its own block, in blocks, the panes lie that share a window with a pane.

    Of several windows the farthest ones count for all.
    """
    return sorted({n for window in windows for n in _list_distances_of(window)})


def _list_distances_of(window: Aligned) -> Sequence[int]:
    """The same for one window."""
    if isinstance(window, Cumulate):
        return (0,)
    if grid_shape(window).size == 1 and window.shown.emit != CHANGES:
        return (0,)
    far = _count_windows_apart(window)
    return range(-far, far + 1)
