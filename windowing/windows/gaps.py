"""Empty windows: which outputs show them, and between which windows of a key they lie."""

from collections.abc import Sequence
from typing import TypeGuard

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.columns import HIGH, LOW
from windowing.grid.rule import index
from windowing.panes.frame import Range
from windowing.panes.rule import grid_shape
from windowing.spec.kinds import Sliding, Tumbling, Window
from windowing.windows import sliding

Filled = Tumbling | Sliding
OLD_LOW, OLD_HIGH = "__old_low", "__old_high"


def shows_empty_windows(window: Window) -> TypeGuard[Filled]:
    """Whether the output of `window` shows empty windows."""
    return isinstance(window, Tumbling | Sliding) and window.shown.empty_limit is not None


def window_extents(
    panes: DataFrame, window: Filled, keys: Sequence[str], lateness_us: int | None, within: Range
) -> DataFrame:
    """The first and the last window number that contain a pane: [keys, __low, __high].

    panes[keys, pane_start, judged_by, ...] -> one row for each key, both numbers inside.
    """
    placed = sliding.placed(panes, window, lateness_us, within)
    return placed.groupBy(*keys).agg(F.min(LOW).alias(LOW), F.max(HIGH).alias(HIGH))


def ranges_between(found: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The window numbers by which extents have grown, as ranges with both ends inside.

    [keys, __low, __high, __old_low, __old_high] -> [keys, __low, __high].
    """
    new = found.where(F.col(OLD_LOW).isNull()).select(*keys, LOW, HIGH)
    earlier = found.select(*keys, LOW, (F.col(OLD_LOW) - 1).alias(HIGH))
    later = found.select(*keys, (F.col(OLD_HIGH) + 1).alias(LOW), HIGH)
    grown = new.unionByName(earlier).unionByName(later)
    return grown.where(F.col(LOW) <= F.col(HIGH))


def last_closed(window: Filled, watermark_us: int) -> int:
    """The number of the last window whose end is at or before the watermark."""
    form = grid_shape(window)
    return (index(form.grid, watermark_us) - form.size) // form.slide
