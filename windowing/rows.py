"""Columns of rows by names of any characters, and rows with equal values."""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from windowing.columns import quoted


def column_named(name: str) -> Column:
    """The column that is called so."""
    return F.col(quoted(name))


def are_equal(left: str, right: str, names: Iterable[str]) -> list[Column]:
    """For each column whether a row of the frame `left` has the same value as one of `right`.

    Null is equal to nothing.
    """
    return [_of(left, name) == _of(right, name) for name in names]


def are_same(left: str, right: str, names: Iterable[str]) -> list[Column]:
    """As `are_equal`, but null is the same as null."""
    return [_of(left, name).eqNullSafe(_of(right, name)) for name in names]


def _of(frame: str, name: str) -> Column:
    return F.col(f"{frame}.{quoted(name)}")
