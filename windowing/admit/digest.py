"""A digest of a whole source row: it identifies equal rows and orders copies that differ.

Digests are stored: with ids, with buffered events and with refused rows. The digest of a row must
stay the same while the source changes around it. So it depends neither on columns that are added,
which are NULL in earlier rows, nor on the type of a column that is widened: Spark hashes the
integer 7 and the long 7 differently.
"""

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import DIGEST, kept_name
from windowing.rows import column_named

EarlierTypes = Mapping[str, tuple[T.DataType, ...]]
"""By column whose type the source has widened: the types that it had before, oldest first."""
_NOT_HASHED = ("map<", "variant")
"""Maps have no order, and Spark does not hash variants."""
EMPTIED = "__emptied"
"""The digest of a row whose own columns have expired by `retention.refused`.

A table has this column from the first such row on.
"""


def with_row_digest(
    rows: DataFrame, earlier: EarlierTypes, parts: Collection[str] = ()
) -> DataFrame:
    """Adds the digest of each row. rows -> rows + [__digest bigint].

    It does not depend on `parts`, columns that come and go with aggregates and windows.
    """
    own_names = {name: name for name in hashed_columns(rows.schema) if name not in parts}
    return rows.withColumn(DIGEST, row_digest(own_names, earlier))


def row_digest(columns: Mapping[str, str], earlier: EarlierTypes) -> Column:
    """The digest of a row; `columns` are by their name in the source the columns of the frame."""
    digest = F.lit(0).cast("bigint")
    for name, column in columns.items():
        part = _value_digest(name, column_named(column), earlier.get(name, ()))
        # XOR is commutative, so that the order of columns does not matter.
        digest = digest.bitwiseXOR(part)
    return digest


def hashed_columns(schema: T.StructType) -> list[str]:
    """The names of the columns that a digest is computed from."""
    return [field.name for field in schema.fields if _is_hashed(field.dataType)]


def nested_columns(schema: T.StructType) -> list[str]:
    """Those of them that have fields or elements, which a source may add to."""
    nested = (T.StructType, T.ArrayType)
    hashed = hashed_columns(schema)
    return [name for name in hashed if isinstance(schema[name].dataType, nested)]


def _is_hashed(kind: T.DataType) -> bool:
    name = kind.simpleString()
    return not any(part in name for part in _NOT_HASHED)


def _value_digest(name: str, value: Column, earlier: Sequence[T.DataType]) -> Column:
    """The part of one column. NULL counts as a column that is not there."""
    digest = F.xxhash64(F.lit(name), value)
    for kind in reversed(earlier):
        # A value that fits an earlier type is hashed as that type, as it was before the widening.
        narrow = value.try_cast(kind)
        earlier_digest = F.xxhash64(F.lit(name), narrow)
        digest = F.when(narrow.eqNullSafe(value), earlier_digest).otherwise(digest)
    return F.when(value.isNotNull(), digest).otherwise(F.lit(0).cast("bigint"))


def digest_of(refused: DataFrame, schema: T.StructType, earlier: EarlierTypes) -> Column:
    """The digest of the source row that a refused row is.

    It is the stored one, or else computed from its columns that are in `schema`, because rows that
    were refused before digests were stored have none.
    """
    stored_digests = [F.col(name) for name in (DIGEST, EMPTIED) if name in refused.columns]
    present = {}
    for name in hashed_columns(schema):
        stored_name = kept_name(name)
        if stored_name in refused.columns:
            present[name] = stored_name
    return F.coalesce(*stored_digests, row_digest(present, earlier))
