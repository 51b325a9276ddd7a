"""Empty windows of a grid: which outputs show them, and which windows of a key they are."""

from typing import TypeGuard

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Parts, name_parts
from windowing.columns import FROM, HIGH, LOW, ROWS, TO, TOUCHED, Names
from windowing.grid.range import Range
from windowing.grid.rule import index
from windowing.panes.rule import grid_shape
from windowing.spec.kinds import OnSteps, Window
from windowing.windows.aligned import place_panes
from windowing.windows.keyed_rows import list_numbers

OLD_LOW, OLD_HIGH = "__old_low", "__old_high"


def shows_empty_windows(window: Window) -> TypeGuard[OnSteps]:
    """Whether the output of `window` shows empty windows."""
    return window.shown.empty_limit is not None


def window_extents(
    panes: DataFrame, window: OnSteps, keys: Names, lateness_us: int | None, within: Range
) -> DataFrame:
    """The first and the last window number that contain a pane: [keys, __low, __high].

    panes[keys, pane_start, judged_by, ...] -> one row for each key, both numbers inside.
    """
    placed = place_panes(panes, [window], lateness_us, within)
    first = F.min(LOW).alias(LOW)
    last = F.max(HIGH).alias(HIGH)
    return placed.groupBy(*keys).agg(first, last)


def ranges_between(found: DataFrame, keys: Names) -> DataFrame:
    """The window numbers by which extents have grown, as ranges with both ends inside.

    [keys, __low, __high, __old_low, __old_high] -> [keys, __low, __high].
    """
    is_new = F.col(OLD_LOW).isNull()
    before_old = F.col(OLD_LOW) - 1
    after_old = F.col(OLD_HIGH) + 1
    new = found.where(is_new).select(*keys, LOW, HIGH)
    earlier = found.select(*keys, LOW, before_old.alias(HIGH))
    later = found.select(*keys, after_old.alias(LOW), HIGH)
    grown = new.unionByName(earlier).unionByName(later)
    return grown.where(F.col(LOW) <= F.col(HIGH))


def list_empty_windows(
    extents: DataFrame, filled: DataFrame, keys: Names, kept: Parts
) -> DataFrame:
    """The windows of `extents` that are not in `filled`: 0 rows, null parts, and touched.

    extents[keys, __low, __high] x filled[keys, from, to, parts, touched] -> columns of `filled`.
    """
    of_extents = extents.select(*keys, list_numbers(LOW, HIGH).alias(FROM)).distinct()
    present = filled.select(*keys, list_numbers(FROM, TO).alias(FROM))
    empty = of_extents.join(present, [*keys, FROM], "left_anti")
    values = {TO: F.col(FROM), ROWS: F.lit(0), TOUCHED: F.lit(1)}
    for name in name_parts(kept):
        values.setdefault(name, F.lit(None))
    typed = {}
    for name, value in values.items():
        typed[name] = value.cast(filled.schema[name].dataType)
    return empty.withColumns(typed)


def last_closed(window: OnSteps, watermark_us: int) -> int:
    """The number of the last window whose end is at or before the watermark."""
    form = grid_shape(window)
    return (index(form.grid, watermark_us) - form.size) // form.slide
