"""A digest of a whole source row, by which equal rows are recognised and copies that differ are put in order.

Digests are stored: with ids, with buffered events and with refused rows. The digest of a row must stay the same while
the source changes around it, so it does not depend on columns that are added (they are NULL in earlier rows) or on the
type of a column that is widened (Spark hashes the integer 7 and the long 7 differently).
"""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import DIGEST, kept_name

EarlierTypes = Mapping[str, tuple[T.DataType, ...]]
"""By column whose type the source has widened: the types that it had before, oldest first."""
_NOT_HASHED = ("map<", "variant")
"""Maps have no order, and Spark does not hash variants."""
EMPTIED = "__emptied"
"""The digest of a row whose own columns `retention.refused` has taken; a table has it from the first such row on."""


def with_row_digest(rows: DataFrame, earlier: EarlierTypes) -> DataFrame:
    """Adds the digest of each row. rows -> rows + [__digest bigint]."""
    return rows.withColumn(
        DIGEST, row_digest({name: name for name in hashed_columns(rows.schema)}, earlier)
    )


def row_digest(columns: Mapping[str, str], earlier: EarlierTypes) -> Column:
    """The digest of a row whose values are in `columns`: name in the source -> column of the frame."""
    each = [
        _value_digest(name, F.col(f"`{column}`"), earlier.get(name, ()))
        for name, column in columns.items()
    ]
    return reduce(lambda a, b: a.bitwiseXOR(b), each, F.lit(0).cast("bigint"))


def hashed_columns(schema: T.StructType) -> list[str]:
    """The names of the columns that a digest is made of."""
    return [
        f.name
        for f in schema.fields
        if not any(kind in f.dataType.simpleString() for kind in _NOT_HASHED)
    ]


def _value_digest(name: str, value: Column, earlier: Sequence[T.DataType]) -> Column:
    """The part of one column. NULL counts as a column that is not there."""
    digest = F.xxhash64(F.lit(name), value)
    for kind in reversed(earlier):
        # What an earlier type can hold is hashed as that type, as it was before the widening.
        narrow = value.try_cast(kind)
        digest = F.when(narrow.eqNullSafe(value), F.xxhash64(F.lit(name), narrow)).otherwise(digest)
    return F.when(value.isNotNull(), digest).otherwise(F.lit(0).cast("bigint"))


def digest_of(refused: DataFrame, schema: T.StructType, earlier: EarlierTypes) -> Column:
    """The digest of the source row that a refused row is: as stored, or made of its columns that are among `schema`.

    Rows that were refused before digests were stored have none.
    """
    stored = [F.col(name) for name in (DIGEST, EMPTIED) if name in refused.columns]
    names = {name: kept_name(name) for name in hashed_columns(schema)}
    there = {name: kept for name, kept in names.items() if kept in refused.columns}
    computed = row_digest(there, earlier)
    return F.coalesce(*stored, computed)
