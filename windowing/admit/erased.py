"""Rows of erased keys and values, which are kept out of whatever is read or rebuilt.

A key is known by a salted digest of its values, and so is a value of another column. A digest has
to stay the same while the source widens the type of a column, and to differ where two values are
shown alike. So it depends on what is stored, not on the type: the integer 7, the long 7, the double
7.0 and the decimal 7.00 are one value.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import own_name
from windowing.ledger.erased import Erasures
from windowing.rows import column_named, is_true

_WHOLE_DOUBLES = 2**53
"""Below it every whole number is a double, so a column of integers may have become one."""


def digest_values(values: Mapping[str, tuple[Column, T.DataType]], salt: str) -> Column:
    """The digest of a key or a value, by the names of its columns in the source.

    It is null where one of them is null, and does not depend on their order.
    """
    parts = [F.lit(salt)]
    for name in sorted(values):
        value, kind = values[name]
        sort, text = _write_value(value, kind)
        # The lengths tell where a part ends, so that no two keys are written alike.
        length = F.length(text).cast("string")
        parts += [F.lit(f"{len(name)}:{name}{sort}"), length, F.lit(":"), text]
    return F.sha2(F.concat(*parts), 256)


def _write_value(value: Column, kind: T.DataType) -> tuple[str, Column]:
    """A letter for the sort of the type, which widening never changes, and the value as a text."""
    match kind:
        case T.BooleanType():
            return "b", value.cast("string")
        case T.DateType():
            return "d", F.unix_date(value).cast("string")
        case T.TimestampType():
            return "t", F.unix_micros(value).cast("string")
        case T.TimestampNTZType():
            # A column of days may have become one of local times, of which midnight is the day.
            day = value.cast("date")
            is_midnight = value == day.cast("timestamp_ntz")
            days = F.unix_date(day).cast("string")
            return "d", F.when(is_midnight, days).otherwise(value.cast("string"))
        case T.DoubleType():
            is_whole = (value == F.floor(value)) & (F.abs(value) < _WHOLE_DOUBLES)
            whole = F.when(is_whole, value).cast("bigint").cast("string")
            return "n", F.coalesce(whole, value.cast("string"))
        case T.DecimalType():
            # With ANSI a decimal is written without an exponent.
            without_zeros = F.regexp_replace(value.cast("string"), r"(\.\d*?)0*$", "$1")
            return "n", F.regexp_replace(without_zeros, r"\.$", "")
        case T.StringType():
            return "s", value
        case _:
            return "n", value.cast("string")


def without_erased(rows: DataFrame, keys: Sequence[str], erased: Erasures) -> DataFrame:
    """The rows without those of erased keys and values, also those whose key has a null."""
    found = _find_erased(rows, keys, erased, own_name)
    return rows if found is None else rows.where(~found)


def only_erased(
    rows: DataFrame,
    keys: Sequence[str],
    erased: Erasures,
    stored_as: Callable[[str], str] = own_name,
) -> DataFrame:
    """The rows of erased keys and values; `stored_as` names a column of the source in the frame."""
    found = _find_erased(rows, keys, erased, stored_as)
    return rows.limit(0) if found is None else rows.where(found)


def _find_erased(
    rows: DataFrame, keys: Sequence[str], erased: Erasures, stored_as: Callable[[str], str]
) -> Column | None:
    """True for rows of erased keys and values and false for others; None where nothing is erased.

    A value of a column that the frame does not have is in none of its rows.
    """
    conditions = [_has_digest(rows, keys, erased, None, stored_as)]
    for column in erased.columns:
        if stored_as(column) in rows.columns:
            conditions.append(_has_digest(rows, [column], erased, column, stored_as))
    found = [condition for condition in conditions if condition is not None]
    return reduce(or_, found) if found else None


def _has_digest(
    rows: DataFrame,
    names: Sequence[str],
    erased: Erasures,
    column: str | None,
    stored_as: Callable[[str], str],
) -> Column | None:
    """True where the values of `names` were erased as those of `column`, or as a key if None.

    None where nothing of that is erased.
    """
    digests = erased.digests_of(column)
    if erased.salt is None or not digests:
        return None
    values = {}
    for name in names:
        stored = stored_as(name)
        values[name] = column_named(stored), rows.schema[stored].dataType
    digest = digest_values(values, erased.salt)
    # A null was never erased, and neither was a key with one.
    return is_true(digest.isin(*digests))
