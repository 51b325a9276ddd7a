"""The rows of each key: in order, up to a row, and compared with other rows of the same key."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F


def order_rows(keys: Sequence[str], *by: str) -> WindowSpec:
    """The rows of each key in an order."""
    return Window.partitionBy(*keys).orderBy(*by)


def up_to_row(keys: Sequence[str], *by: str) -> WindowSpec:
    """The rows of a key from the first one to this one."""
    return order_rows(keys, *by).rowsBetween(Window.unboundedPreceding, Window.currentRow)


def keep_matching(
    rows: DataFrame, others: DataFrame, keys: Sequence[str], is_match: Column
) -> DataFrame:
    """The `rows`, each once, for which one of `others` has the same key and `is_match` is true.

    `is_match` is about a row as `l` and another one as `r`.
    """
    same_key = [F.col(f"l.`{key}`") == F.col(f"r.`{key}`") for key in keys]
    return rows.alias("l").join(others.alias("r"), [*same_key, is_match], "left_semi")
