"""Merges the panes of each window: one row for each pane and window that contains it.

pane A counts in the windows 0..1  ->  0: A   1: A
pane B counts in the windows 1..2  ->         1: B   2: B
                                       -----------------
windows                                0: A   1: AB  2: B
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Parts
from windowing.columns import FROM, HIGH, LOW, TO, Names
from windowing.windows.keyed_rows import list_numbers
from windowing.windows.merging import merge_groups


def merge_by_window(panes: DataFrame, keys: Names, kept: Parts) -> DataFrame:
    """For windows of few panes, and for parts that can't be subtracted.

    panes[keys, __low, __high, parts, touched] -> [keys, from, to, parts, touched].
    """
    of_each_window = panes.withColumn(FROM, list_numbers(LOW, HIGH))
    merged = merge_groups(of_each_window, [*keys, FROM], kept)
    return merged.withColumn(TO, F.col(FROM))
