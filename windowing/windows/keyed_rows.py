"""The rows of each key: in order, up to a row, and compared with other rows of the same key."""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from windowing.columns import FROM, Names
from windowing.rows import are_equal

Ends = tuple[Column, Column]
"""Two instants or two numbers: the first and the last, or the start and the end."""


def order_rows(keys: Names, *by: str) -> WindowSpec:
    """The rows of each key in an order."""
    return Window.partitionBy(*keys).orderBy(*by)


def up_to_row(keys: Names, *by: str) -> WindowSpec:
    """The rows of a key from the first one to this one."""
    in_order = order_rows(keys, *by)
    return in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def keep_matching(rows: DataFrame, others: DataFrame, keys: Names, is_match: Column) -> DataFrame:
    """The `rows`, each once, for which one of `others` has the same key and `is_match` is true.

    `is_match` is about a row as `l` and another one as `r`.
    """
    matches = [*are_equal("l", "r", keys), is_match]
    return rows.alias("l").join(others.alias("r"), matches, "left_semi")


def list_numbers(first: Column | str, last: Column | str) -> Column:
    """A row for each window number from `first` to `last`, both inside."""
    return F.explode(F.sequence(first, last))


def find_next_number(keys: Names) -> Column:
    """The next larger `__from` of the same key; null for the largest one."""
    return F.lead(FROM).over(order_rows(keys, FROM))
