"""Windows whose bounds are the same for every key, made from panes: tumbling, sliding and cumulate.

    panes[key, pane_start, parts, judged_by, touched]
        -> placed panes[key, first and last window, parts, touched]
        -> stretches[key, from, to, parts, touched]    windows that contain the same panes
        -> windows[key, start, end, parts, touched]    every window that contains a pane

A pane counts in the windows that contain its first instant and that were not late by the watermark
its run was judged by (window_end + allowed lateness > judged_by). What differs between kinds is
behind `kind_of`.

Several windows may be made in one pass: rows then have a column `__window`, and so do the keys that
they are grouped by (`together.py`).
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Parts, name_parts
from windowing.columns import END, FROM, HIGH, JUDGED, LOW, PANE, START, TO, TOUCHED, WINDOW, Names
from windowing.grid.frame import index
from windowing.grid.range import Range
from windowing.grid.rule import Grid
from windowing.panes.rule import windows_of_pane
from windowing.spec.kinds import Aligned, AlignedWindows, Tumbling
from windowing.windows.grid_kind import kind_of
from windowing.windows.keyed_rows import Ends, list_numbers
from windowing.windows.merge_by_window import merge_by_window
from windowing.windows.merging import Merge
from windowing.windows.sliding import MANY
from windowing.windows.together import (
    add_bounds_of_each,
    drop_repeated_of_each,
    place_in_each,
)


def place_panes(
    panes: DataFrame, windows: AlignedWindows, lateness_us: int | None, within: Range
) -> DataFrame:
    """Adds the first and the last window number that each pane counts in, `__low` and `__high`.

    All event times are inside `within`. Panes that count in no window are left out.
    """
    if len(windows) == 1:
        low, high = _find_numbers(windows[0], lateness_us, within)
        placed = panes.withColumn(LOW, low).withColumn(HIGH, high)
    else:
        placed = place_in_each(panes, windows, lateness_us, within)
    return placed.where(F.col(LOW) <= F.col(HIGH))


def _find_numbers(window: Aligned, lateness_us: int | None, within: Range) -> Ends:
    """The first and the last window number that a pane counts in."""
    kind = kind_of(window)
    step = index(kind.steps, F.unix_micros(PANE), within)
    low, high = kind.find_windows(step)
    if lateness_us is not None:
        last_closed = _find_last_closed(kind.steps, lateness_us, within)
        low = F.greatest(low, kind.find_first_open(last_closed))
    return low, high


def _find_last_closed(steps: Grid, lateness_us: int, within: Range) -> Column:
    """The last boundary at or before judged_by - lateness; null where it lies before `within`.

    judged_by is null where no watermark judged the events: in a first run, or in a backfill.
    """
    first = F.lit(within.low_us)
    last = F.lit(within.high_us)
    closed_us = F.least(F.unix_micros(JUDGED) - lateness_us, last)
    is_known = F.col(JUDGED).isNotNull() & (closed_us >= first)
    last_closed = index(steps, F.greatest(closed_us, first), within)
    return F.when(is_known, last_closed)


def merge_stretches(
    panes: DataFrame,
    windows: AlignedWindows,
    keys: Names,
    kept: Parts,
    lateness_us: int | None,
    within: Range,
) -> DataFrame:
    """Stretches of windows that contain the same panes; all event times are inside `within`.

    panes[keys, pane_start, parts, judged_by, touched] -> [keys, from, to, parts, touched].
    """
    placed = place_panes(panes, windows, lateness_us, within)
    found = []
    for merge, places in find_merges(windows, kept).items():
        is_own = F.col(WINDOW).isin(places)
        own = placed if len(places) == len(windows) else placed.where(is_own)
        found.append(merge(own, keys, kept))
    return reduce(DataFrame.unionByName, found)


def find_merges(windows: AlignedWindows, kept: Parts) -> dict[Merge, list[int]]:
    """By how panes are merged, the places of the windows that this is for.

    Several windows are merged alike as far as that costs little.
    """
    found: dict[Merge, list[int]] = {}
    for place, window in enumerate(windows):
        few = len(windows) > 1 and windows_of_pane(window) < MANY
        merge = merge_by_window if few else kind_of(window).choose_merge(kept)
        found.setdefault(merge, []).append(place)
    return found


def has_one_pane(window: Aligned, cuts: Sequence[Grid]) -> bool:
    """Whether a window is exactly one of the panes that are cut by `cuts`."""
    return isinstance(window, Tumbling) and tuple(cuts) == (window.grid,)


def merge_different_panes(
    panes: DataFrame,
    windows: AlignedWindows,
    cuts: Sequence[Grid],
    keys: Names,
    kept: Parts,
    lateness_us: int | None,
    within: Range,
) -> DataFrame:
    """`merge_stretches` of panes that are cut by `cuts`, where no two are the same pane of a key.

    Where a window is one pane there is nothing to merge then, so no row is sent between tasks.
    """
    are_panes = all(has_one_pane(window, cuts) for window in windows)
    if not are_panes or not all(part.is_same_alone for part in kept):
        return merge_stretches(panes, windows, keys, kept, lateness_us, within)
    placed = place_panes(panes, windows, lateness_us, within)
    bounds = [F.col(LOW).alias(FROM), F.col(HIGH).alias(TO)]
    return placed.select(*keys, *bounds, *name_parts(kept), TOUCHED)


def list_windows(stretches: DataFrame, windows: AlignedWindows, within: Range) -> DataFrame:
    """Every window of `stretches`, each once and without windows of no length.

    [keys, from, to, ...] -> [keys, window_start, window_end, ...].
    """
    each = stretches.withColumn(FROM, list_numbers(FROM, TO)).drop(TO)
    repeated = [kind_of(window).is_repeated(F.col(FROM), within) for window in windows]
    known = [is_repeated for is_repeated in repeated if is_repeated is not None]
    if not known:
        return bound_windows(each, windows, within)
    if len(windows) == 1:
        lasting = each.where(~known[0])
    else:
        lasting = drop_repeated_of_each(each, windows, within)
    return bound_lasting_windows(lasting, windows, within)


def bound_lasting_windows(numbered: DataFrame, windows: AlignedWindows, within: Range) -> DataFrame:
    """`bound_windows` without windows of no length, because a zone's clock may jump over some."""
    bounded = bound_windows(numbered, windows, within)
    return bounded.where(F.col(START) < F.col(END))


def bound_windows(numbered: DataFrame, windows: AlignedWindows, within: Range) -> DataFrame:
    """Numbers become bounds: [keys, from, ...] -> [keys, window_start, window_end, ...]."""
    if len(windows) > 1:
        return add_bounds_of_each(numbered, windows, within).drop(FROM)
    kind = kind_of(windows[0])
    start_us, end_us = kind.find_bounds(F.col(FROM), within)
    bounds = {
        START: F.timestamp_micros(start_us),
        END: F.timestamp_micros(end_us),
    }
    return numbered.withColumns(bounds).drop(FROM)
