"""Delta tables by path: the few reads and writes that every stage's table.py is made of."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from delta.tables import DeltaTable, DeltaTableBuilder
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from windowing.columns import PRUNED, quoted
from windowing.grid.zone import moment
from windowing.location import Location
from windowing.storage import delta_log, spark_internals
from windowing.storage.kept_open import has_commit
from windowing.storage.permission import check_permission
from windowing.storage.table_properties import (
    CHECKPOINT_INTERVAL,
    COLUMN_MAPPING,
    LOCAL_TIMES,
    TYPE_WIDENING,
    WITH_STATISTICS,
    is_true,
)

_ODD = re.compile(r"[ ,;{}()\n\t=]")
"""What a column's name may contain only where Delta maps columns."""


def exists(spark: SparkSession, path: Location) -> bool:
    """Whether there is a Delta table at `path`."""
    if path.is_in_catalog:
        return bool(spark.catalog.tableExists(path.sql))
    # Delta would remember that a log without a commit is no table, also after it has become one
    # without Spark.
    return has_commit(path)


def read(spark: SparkSession, path: Location, version: int | None = None) -> DataFrame:
    """The table at `path`, its newest version or the one named."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.table(path.sql) if path.is_in_catalog else reader.load(path.hadoop)


def read_changes(spark: SparkSession, path: Location, first: int, last: int) -> DataFrame:
    """The change feed of versions `first` to `last`, both included, of the table at `path`.

    -> the table's columns + [_change_type, _commit_version, _commit_timestamp]
    """
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    return reader.option("startingVersion", first).option("endingVersion", last).load(path.hadoop)


def create(
    spark: SparkSession, path: Location, schema: T.StructType, properties: Mapping[str, str]
) -> None:
    """Creates the table at `path` with these columns and properties unless it exists."""
    with delta_log.committing(spark, path):
        _build(DeltaTable.createIfNotExists(spark), path, schema, properties)


def append_to_source(
    rows: DataFrame,
    path: Location,
    transaction: tuple[str, int] | None = None,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Appends `rows` in one commit to a table that others write to, too.

    It may follow any version, so it is the `transaction` (application, version) alone that keeps it
    from being made twice. The table gets the columns that it lacks. Where there is none it is
    created with `properties`; unlike CREATE TABLE this allows other files in its directory.
    """
    check_permission()
    options = dict(properties or {})
    if transaction:
        application, number = transaction
        options |= {"txnAppId": application, "txnVersion": str(number)}
    writer = rows.write.format("delta").mode("append").option("mergeSchema", "true")
    writer.options(**options).save(path.hadoop)


def replace(
    spark: SparkSession, path: Location, schema: T.StructType, properties: Mapping[str, str]
) -> None:
    """Replaces the table at `path` by an empty one with other columns."""
    with delta_log.committing(spark, path):
        _build(DeltaTable.replace(spark), path, schema, properties)


def _build(
    builder: DeltaTableBuilder, path: Location, schema: T.StructType, properties: Mapping[str, str]
) -> None:
    builder = builder.location(path.hadoop).addColumns(schema)
    for name, value in properties.items():
        builder = builder.property(name, value)
    builder.execute()


def rows(spark: SparkSession, values: Sequence[Mapping[str, Any]], schema: str) -> DataFrame:
    """A few rows made of values of this process, in one partition."""
    return typed_rows(spark, values, parse_columns(schema))


def typed_rows(
    spark: SparkSession, values: Sequence[Mapping[str, Any]], columns: T.StructType
) -> DataFrame:
    """The same with these columns."""
    # Rows that travel as Arrow need no Python worker, which takes a second to start, and which the
    # executors of a cluster need not have.
    return spark.createDataFrame(arrow_rows(values, columns), columns).coalesce(1)


def no_rows(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """No rows at all, with these columns."""
    return spark.createDataFrame(arrow_rows([], schema), schema)


def arrow_rows(values: Sequence[Mapping[str, Any]], columns: T.StructType) -> pa.Table:
    """The same rows in this process."""
    schema = spark_internals.arrow_schema(columns)
    return pa.Table.from_pylist([dict(value) for value in values], schema=schema)


def write_instant(us: int) -> str:
    """An instant as Spark's text for it: microseconds since 1970."""
    return f"timestamp_ltz'{moment(us).isoformat(sep=' ')}'"


def parse_columns(schema: str) -> T.StructType:
    """The columns that Spark's text for a schema names."""
    parsed = T.DataType.fromDDL(schema)
    if not isinstance(parsed, T.StructType):
        raise TypeError(f"{schema!r} is not a list of columns")
    return parsed


def properties(schema: T.StructType) -> dict[str, str]:
    """The properties that every table of a pipeline is created with."""
    pruned = []
    for field in schema.fields:
        is_time_or_number = isinstance(field.dataType, (T.TimestampType, T.LongType))
        if field.name in PRUNED and is_time_or_number:
            pruned.append(field.name)
    found = {
        # Statistics of keys are left out, so that no log contains the values of one.
        WITH_STATISTICS: ",".join(pruned),
        # Whoever opens a table reads the commits since the last checkpoint of its log. That is
        # Delta's own interval; that of delta-rs is 100.
        CHECKPOINT_INTERVAL: "10",
    }
    if any(_ODD.search(name) for name in _field_names(schema)):
        found[COLUMN_MAPPING] = "name"
    return found


def _field_names(kind: T.DataType) -> Iterator[str]:
    """The names of all fields, nested ones too."""
    if isinstance(kind, T.StructType):
        for field in kind.fields:
            yield field.name
            yield from _field_names(field.dataType)
    if isinstance(kind, T.ArrayType):
        yield from _field_names(kind.elementType)
    if isinstance(kind, T.MapType):
        yield from _field_names(kind.keyType)
        yield from _field_names(kind.valueType)


def append(
    rows: DataFrame,
    path: Location,
    transaction: tuple[str, int] | None = None,
    *,
    widen: bool = False,
) -> None:
    """Appends `rows` in one commit and creates the table if it does not exist.

    With a `transaction` (application, version) the append is idempotent. The table is then one of a
    pipeline's and is created with their `properties`. `widen` adds columns that the table lacks,
    because the source may have new ones.
    """
    if widen:
        widen_names(rows.sparkSession, path, rows.schema)
    writer = rows.write.format("delta").mode("append").option("mergeSchema", str(widen).lower())
    if transaction is not None:
        application, number = transaction
        writer = writer.option("txnAppId", application).option("txnVersion", number)
        writer = writer.options(**properties(rows.schema))
    with delta_log.committing(rows.sparkSession, path):
        writer.save(path.hadoop)


def widen_names(spark: SparkSession, path: Location, schema: T.StructType) -> None:
    """Turns on column mapping of the table at `path` where a name in `schema` needs it.

    A table that does not exist yet, or that maps its columns already, stays as it is.
    """
    if COLUMN_MAPPING not in properties(schema):
        return
    if not has_commit(path) or delta_log.setting(spark, path, COLUMN_MAPPING) in ("name", "id"):
        return
    set_property(spark, path, COLUMN_MAPPING, "name")


def set_property(spark: SparkSession, path: Location, name: str, value: str) -> None:
    """Sets one property of the table at `path`, in a commit of its own."""
    with delta_log.committing(spark, path):
        spark.sql(f"alter table {path.sql} set tblproperties ('{name}' = '{value}')")


def follow_types(spark: SparkSession, path: Location, wanted: Mapping[str, T.DataType]) -> None:
    """Widens columns of the table at `path` to the types that are `wanted`.

    A reader needs Delta's table feature `typeWidening` from then on. Raises what Delta raises for a
    change of type that is no widening.
    """
    behind: dict[str, T.DataType] = {}
    for field in read(spark, path).schema.fields:
        kind = wanted.get(field.name, field.dataType)
        behind |= _changed_leaves(quoted(field.name), field.dataType, kind)
    if behind and not is_true(delta_log.setting(spark, path, TYPE_WIDENING)):
        set_property(spark, path, TYPE_WIDENING, "true")
    if any("timestamp_ntz" in kind.simpleString() for kind in behind.values()):
        # Delta enables this one by itself for new tables only.
        set_property(spark, path, LOCAL_TIMES, "supported")
    for name, kind in behind.items():
        with delta_log.committing(spark, path):
            spark.sql(f"alter table {path.sql} alter column {name} type {kind.simpleString()}")


def _changed_leaves(name: str, old: T.DataType, new: T.DataType) -> dict[str, T.DataType]:
    """The new types where two types of a column differ, by the path that ALTER COLUMN expects."""
    if isinstance(old, T.ArrayType) and isinstance(new, T.ArrayType):
        return _changed_leaves(f"{name}.element", old.elementType, new.elementType)
    if isinstance(old, T.MapType) and isinstance(new, T.MapType):
        keys = _changed_leaves(f"{name}.key", old.keyType, new.keyType)
        return keys | _changed_leaves(f"{name}.value", old.valueType, new.valueType)
    if isinstance(old, T.StructType) and isinstance(new, T.StructType):
        later = {field.name: field.dataType for field in new.fields}
        found: dict[str, T.DataType] = {}
        for field in old.fields:
            kind = later.get(field.name, field.dataType)
            found |= _changed_leaves(f"{name}.{quoted(field.name)}", field.dataType, kind)
        return found
    return {} if old == new else {name: new}


def reason(error: AnalysisException) -> str:
    """The first line of Spark's message, without its plan."""
    return str(error).splitlines()[0].strip()
