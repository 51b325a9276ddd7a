"""Partial aggregates merged by group, as panes and fragments are where windows are made of them."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Parts, merge_parts
from windowing.columns import TOUCHED, Names

Merge = Callable[[DataFrame, Names, Parts], DataFrame]
"""Merges placed panes to stretches of windows that contain the same ones.

placed[keys, __low, __high, parts, touched] -> [keys, from, to, parts, touched]; a pane counts in
the windows from `__low` to `__high`, and all these ends are inside. Windows without a pane are in
no stretch. Windows with equal merges are merged together.
"""


@dataclass(frozen=True)
class WideMerge:
    """A merge that has to know in how many windows a pane is at most, which are `wide`."""

    merge: Callable[[DataFrame, Names, Parts, int], DataFrame]
    wide: int

    def __call__(self, placed: DataFrame, keys: Names, kept: Parts) -> DataFrame:
        """Placed panes -> stretches."""
        return self.merge(placed, keys, kept, self.wide)


def mark_touched(rows: DataFrame) -> DataFrame:
    """Partial aggregates that are all touched: rows -> rows + [touched]."""
    return rows.withColumn(TOUCHED, F.lit(1).cast("bigint"))


def merge_groups(rows: DataFrame, group: Names, kept: Parts) -> DataFrame:
    """One row for each group, touched where one of its rows was.

    rows[group, parts, touched] -> [group, parts, touched].
    """
    touched = F.max(TOUCHED).alias(TOUCHED)
    return rows.groupBy(*group).agg(*merge_parts(kept), touched)
