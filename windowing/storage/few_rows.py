"""Rows that are few enough for the memory of this process: by their number and by their bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import quoted
from windowing.grid.range import Range

_FEW_ROWS = 200_000
_FEW_LARGE_ROWS = 20_000
_FEW_BYTES = 200_000_000
"""Of all texts and other values that have no fixed size. A JVM has a heap of 1 GB or more."""
_FIXED_BYTES = 16
"""What a value of fixed size takes in a list, at most."""
_LARGE = "__large"


@dataclass(frozen=True)
class Collected:
    """Few rows that were collected, with their columns as Spark has them."""

    spark: SparkSession
    rows: pa.Table
    schema: T.StructType

    def select(self, names: Sequence[str]) -> "Collected":
        """The rows with these columns alone."""
        columns = T.StructType([self.schema[name] for name in names])
        return Collected(self.spark, self.rows.select(names), columns)

    def rename(self, names: Mapping[str, str]) -> "Collected":
        """The rows with other names for some columns."""
        fields = [
            T.StructField(names.get(field.name, field.name), field.dataType, field.nullable)
            for field in self.schema.fields
        ]
        rows = self.rows.rename_columns([field.name for field in fields])
        return Collected(self.spark, rows, T.StructType(fields))

    def where(self, is_kept: pa.Array | pa.ChunkedArray) -> "Collected":
        """The rows for which `is_kept` is true."""
        return Collected(self.spark, self.rows.filter(is_kept), self.schema)

    def to_spark(self) -> DataFrame:
        """The rows in one task of Spark; times and decimals stay as they are."""
        return self.spark.createDataFrame(self.rows, self.schema).coalesce(1)


def are_few(most: int | None) -> bool:
    """Whether at `most` so many rows may be collected; None is a number that is not known."""
    return most is not None and most <= _FEW_ROWS


def collect(rows: DataFrame, most: int | None) -> Collected | None:
    """What `collect_few` collects, with what Spark needs to go on with it."""
    collected = collect_few(rows, most)
    return None if collected is None else Collected(rows.sparkSession, collected, rows.schema)


def collect_few(rows: DataFrame, most: int | None) -> pa.Table | None:
    """All `rows`, at `most` so many, in the memory of this process; None where they are too large.

    None stands for a number that is not known; then nothing is collected, as where it is too high.
    No row may take more than its share of the bytes that there are for all. One that does is
    collected without its values, so that no more than these bytes ever are.
    """
    if most is None or most > _find_limit(rows.schema):
        return None
    share = _FEW_BYTES // max(most, 1)
    sizes = {
        field.name: size
        for field in rows.schema.fields
        if (size := measure_bytes(quoted(field.name), field.dataType)) is not None
    }
    if not sizes:
        return rows.toArrow()
    is_large = f"{' + '.join(sizes.values())} > {share}"
    columns = [
        f"if({is_large}, null, {quoted(name)}) as {quoted(name)}" if name in sizes else quoted(name)
        for name in rows.columns
    ]
    collected = rows.selectExpr(*columns, f"{is_large} as {_LARGE}").toArrow()
    if pc.any(collected[_LARGE]).as_py():
        return None
    return collected.drop_columns([_LARGE])


def _find_limit(columns: T.StructType) -> int:
    """How many rows are few. A sketch, a list or a struct may take as much as many numbers."""
    large = (T.ArrayType, T.BinaryType, T.MapType, T.StructType)
    has_large = any(isinstance(field.dataType, large) for field in columns.fields)
    return _FEW_LARGE_ROWS if has_large else _FEW_ROWS


def measure_bytes(value: str, kind: T.DataType, depth: int = 0) -> str | None:
    """Spark's text for how many bytes a value takes; None where all values take the same.

    A null takes none.
    """
    size: str | None = None
    element = f"e{depth}"
    match kind:
        case T.StringType() | T.BinaryType():
            size = f"octet_length({value})"
        case T.StructType():
            fields = [
                measure_bytes(f"{value}.{quoted(field.name)}", field.dataType, depth)
                for field in kind.fields
            ]
            return " + ".join(field for field in fields if field is not None) or None
        case T.ArrayType():
            each = measure_bytes(element, kind.elementType, depth + 1)
            added = f"aggregate({value}, 0, (bytes, {element}) -> bytes + {each})"
            size = added if each is not None else f"size({value}) * {_FIXED_BYTES}"
        case T.MapType():
            keys = measure_bytes(f"map_keys({value})", T.ArrayType(kind.keyType), depth)
            values = measure_bytes(f"map_values({value})", T.ArrayType(kind.valueType), depth)
            return f"{keys} + {values}"
    return None if size is None else f"coalesce({size}, 0)"


def span_of(rows: DataFrame, low_us: Column, high_us: Column) -> Range | None:
    """The least and the greatest time of rows, computed now; None where there is none."""
    ends = rows.agg(F.min(low_us), F.max(high_us)).first()
    return None if ends is None or ends[0] is None else Range(*ends)
