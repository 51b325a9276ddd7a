"""Partial aggregates merged by group, as panes and fragments are where windows are made of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Part
from windowing.columns import TOUCHED

Merge = Callable[[DataFrame, Sequence[str], Sequence[Part]], DataFrame]
"""Merges placed panes to stretches of windows that contain the same ones.

placed[keys, __low, __high, parts, touched] -> [keys, from, to, parts, touched]; a pane counts in
the windows from `__low` to `__high`, and all these ends are inside. Windows without a pane are in
no stretch. Windows with equal merges are merged together.
"""


@dataclass(frozen=True)
class WideMerge:
    """A merge that has to know in how many windows a pane is at most, which are `wide`."""

    merge: Callable[[DataFrame, Sequence[str], Sequence[Part], int], DataFrame]
    wide: int

    def __call__(self, placed: DataFrame, keys: Sequence[str], kept: Sequence[Part]) -> DataFrame:
        """Placed panes -> stretches."""
        return self.merge(placed, keys, kept, self.wide)


def merge_groups(rows: DataFrame, group: Sequence[str], kept: Sequence[Part]) -> DataFrame:
    """One row for each group, touched where one of its rows was.

    rows[group, parts, touched] -> [group, parts, touched].
    """
    merged = [part.merged() for part in kept]
    return rows.groupBy(*group).agg(*merged, F.max(TOUCHED).alias(TOUCHED))
