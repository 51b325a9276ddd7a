"""Columns of rows by names of any characters, and rows with equal values."""

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import quoted

JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
"""How values are written, whatever a session says of nulls and fractions of a second."""


def column_named(name: str) -> Column:
    """The column that is called so."""
    return F.col(quoted(name))


def write_json(
    rows: DataFrame, columns: Iterable[str], options: Mapping[str, str] = JSON
) -> Column:
    """The values of columns of `rows` as JSON, decimals as text, so that no digit is lost."""
    kinds = {field.name: field.dataType for field in rows.schema.fields}
    values = []
    for name in columns:
        value = column_named(name)
        is_decimal = isinstance(kinds[name], T.DecimalType)
        values.append(value.cast("string").alias(name) if is_decimal else value)
    return F.to_json(F.struct(*values), {**options})


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


def is_true(condition: Column) -> Column:
    """The condition, which is false where it is null."""
    return F.coalesce(condition, F.lit(False))


def is_number_of_java(text: Column) -> Column:
    """Whether a text is such as 12f or 0x1p3, which Spark casts to numbers because Java does."""
    return text.rlike(r"[0-9.][dDfF][\x00-\x20]*$") | text.rlike("0[xX]")


def read_double(text: Column) -> Column:
    """A text as a double; NULL for what is none."""
    return F.when(~is_number_of_java(text), text.try_cast("double"))


def not_finite(number: Column) -> Column:
    """True for NaN and both infinities."""
    return F.isnan(number) | is_infinite(number)


def is_infinite(number: Column) -> Column:
    """Whether a floating number, if there is one, is beyond all others."""
    return is_true(F.abs(number) == F.lit(float("inf")))
