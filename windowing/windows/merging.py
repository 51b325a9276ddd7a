"""Partial aggregates merged by group, as panes and fragments are where windows are made of them."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Part
from windowing.columns import TOUCHED


def merge_groups(rows: DataFrame, group: Sequence[str], kept: Sequence[Part]) -> DataFrame:
    """One row for each group, touched where one of its rows was.

    rows[group, parts, touched] -> [group, parts, touched].
    """
    merged = [part.merged() for part in kept]
    return rows.groupBy(*group).agg(*merged, F.max(TOUCHED).alias(TOUCHED))
