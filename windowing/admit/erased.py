"""Rows of erased keys, which are kept out of whatever is read or rebuilt.

A key is known by a salted digest of its values. It has to stay the same while the source widens the
type of a column, and to differ where two values are shown alike. So it depends on what is stored,
not on the type: the integer 7, the long 7 and the decimal 7.00 are one value.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import quoted
from windowing.ledger.erased import ErasedKeys

ERASED = "erased"
"""The outcome of a row whose key was erased: it is counted and stored nowhere."""


def key_digest(values: Mapping[str, tuple[Column, T.DataType]], salt: str) -> Column:
    """The digest of a key, by its columns' names in the source; null where one of them is null.

    It does not depend on the order of the columns.
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
        case T.DecimalType():
            # With ANSI a decimal is written without an exponent.
            without_zeros = F.regexp_replace(value.cast("string"), r"(\.\d*?)0*$", "$1")
            return "n", F.regexp_replace(without_zeros, r"\.$", "")
        case T.StringType():
            return "s", value
        case _:
            return "n", value.cast("string")


def without_erased(rows: DataFrame, keys: Sequence[str], erased: ErasedKeys) -> DataFrame:
    """The rows of keys that were not erased, also those whose key has a null."""
    found = _find_erased(rows, {key: key for key in keys}, erased)
    return rows if found is None else rows.where(~found)


def only_erased(rows: DataFrame, columns: Mapping[str, str], erased: ErasedKeys) -> DataFrame:
    """The rows of erased keys; `columns` are by key column of the source those of the frame."""
    found = _find_erased(rows, columns, erased)
    return rows.limit(0) if found is None else rows.where(found)


def _find_erased(rows: DataFrame, columns: Mapping[str, str], erased: ErasedKeys) -> Column | None:
    """True for rows of erased keys and false for all others; None where no key is erased."""
    if erased.salt is None or not erased.digests:
        return None
    values = {}
    for name, column in columns.items():
        values[name] = F.col(quoted(column)), rows.schema[column].dataType
    digest = key_digest(values, erased.salt)
    # A key with a null was never erased.
    return F.coalesce(digest.isin(*sorted(erased.digests)), F.lit(False))
