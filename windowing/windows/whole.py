"""The global window: one for each key, for all time; its bounds are null.

panes[key, rows, parts, touched] -> windows[key, start, end, rows, parts, touched]
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Parts
from windowing.columns import END, START, Names
from windowing.windows.merging import merge_groups


def merge_whole_windows(panes: DataFrame, keys: Names, kept: Parts) -> DataFrame:
    """One row for each key of `panes`."""
    merged = merge_groups(panes, keys, kept)
    never = F.lit(None).cast("timestamp_ltz")
    return merged.withColumns({START: never, END: never})
