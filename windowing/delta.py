"""Delta tables by path: the few reads and writes every stage's table.py is made of."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from windowing.columns import PRUNED

_MAPPING = "delta.columnMapping.mode"
_WIDENING = "delta.enableTypeWidening"
_ODD = re.compile(r"[ ,;{}()\n\t=]")
"""What a column's name may hold only where Delta maps columns."""


def exists(spark: SparkSession, path: str) -> bool:
    """Whether a Delta table lies at `path` (a path, a URI, or a catalog name)."""
    if "/" not in path:
        return bool(spark.catalog.tableExists(quoted(path)))
    table = getattr(spark._jvm, "io.delta.tables.DeltaTable")
    return bool(table.isDeltaTable(spark._jsparkSession, path))


def quoted(name: str) -> str:
    """A name of the catalog, each part in backticks."""
    return ".".join(f"`{part}`" for part in name.split("."))


def read(spark: SparkSession, path: str, version: int | None = None) -> DataFrame:
    """The table at `path`, its newest version or the one named."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(path) if "/" in path else reader.table(quoted(path))


def snapshot(spark: SparkSession, path: str) -> Any:
    """The newest version of the table at `path`, as Delta holds it."""
    return logs(spark).forTableWithSnapshot(spark._jsparkSession, _place(spark, path))._2()


def log_of(spark: SparkSession, path: str) -> Any:
    """The log of the table at `path`, as Delta holds it."""
    return logs(spark).forTable(spark._jsparkSession, _place(spark, path))


def logs(spark: SparkSession) -> Any:
    """What Delta says of logs in general."""
    return getattr(spark._jvm, "org.apache.spark.sql.delta.DeltaLog")


def version(spark: SparkSession, path: str) -> int:
    """The newest version of the table at `path`; -1 when there is none."""
    return int(snapshot(spark, path).version())


def known_version(spark: SparkSession, path: str) -> int:
    """The newest version of the table at `path` that this JVM has seen or made, without another look at its log; -1 when there is none."""
    return int(log_of(spark, path).unsafeVolatileSnapshot().version())


def known_schema(spark: SparkSession, path: str) -> T.StructType:
    """The columns of that version with what Delta's log keeps of each, which reading the table does not show."""
    known = log_of(spark, path).unsafeVolatileSnapshot()
    return T.StructType.fromJson(json.loads(known.metadata().schema().json()))


def home(spark: SparkSession, path: str) -> Path:
    """The directory of the table at `path`."""
    return local_path(str(log_of(spark, path).dataPath()))


def committed(spark: SparkSession, path: str, version: int) -> int | None:
    """When `version` of the table at `path` was written, by its writer's clock, microseconds; None where the log doesn't say any more."""
    if not (file := home(spark, path) / "_delta_log" / f"{version:020}.json").exists():
        return None
    with file.open(encoding="utf-8") as lines:
        found = (json.loads(line).get("commitInfo") for line in lines)
        return next(
            (info["timestamp"] * 1000 for info in found if info and "timestamp" in info), None
        )


def table_id(spark: SparkSession, path: str) -> str:
    """What tells this table from another one created later at the same path."""
    return str(snapshot(spark, path).metadata().id())


def setting(spark: SparkSession, path: str, name: str) -> str | None:
    """A property of the table at `path`; None where it is not set."""
    found = snapshot(spark, path).metadata().configuration().get(name)
    return str(found.get()) if found.isDefined() else None


def size(spark: SparkSession, path: str) -> tuple[int, int]:
    """Files and bytes of the newest version of the table at `path`."""
    newest = snapshot(spark, path)
    told = newest.checksumOpt()
    if told.isDefined():
        return int(told.get().numFiles()), int(told.get().tableSizeBytes())
    return int(newest.numOfFiles()), int(newest.sizeInBytes())


def is_new(spark: SparkSession, path: str) -> bool:
    """Whether the table was made and never written to; a clone is full although it was never written to."""
    return version(spark, path) <= 0 and size(spark, path)[0] == 0


def create(
    spark: SparkSession, path: str, schema: T.StructType, properties: Mapping[str, str]
) -> None:
    """Makes the table at `path` with these columns and properties unless it is there."""
    if exists(spark, path):
        return
    builder = DeltaTable.createIfNotExists(spark).location(path).addColumns(schema)
    for name, value in properties.items():
        builder = builder.property(name, value)
    builder.execute()


def rows(spark: SparkSession, values: Sequence[Mapping[str, Any]], schema: str) -> DataFrame:
    """A few rows made here, in one partition; they travel as Arrow, so no Python worker is started."""
    parsed = T.DataType.fromDDL(schema)
    if not isinstance(parsed, T.StructType):
        raise TypeError(f"{schema!r} is not a list of columns")
    table = pa.Table.from_pylist(
        [dict(v) for v in values], schema=to_arrow_schema(parsed, timestamp_utc=True)
    )
    return spark.createDataFrame(table, parsed).coalesce(1)


def properties(schema: T.StructType) -> dict[str, str]:
    """What every table of a pipeline is made with.

    Its log keeps the least and greatest values of the run and of columns that say when, and of no others; it is summed up every 50
    commits, since that costs a small table a job each time, and Delta's own 10 would be every tenth run. Names that only a table with
    mapped columns can have make it one.
    """
    pruned = [
        f.name
        for f in schema.fields
        if f.name in PRUNED and isinstance(f.dataType, (T.TimestampType, T.LongType))
    ]
    mapped = {_MAPPING: "name"} if any(_ODD.search(name) for name in _names(schema)) else {}
    return {
        "delta.dataSkippingStatsColumns": ",".join(pruned),
        "delta.checkpointInterval": "50",
        **mapped,
    }


def _names(kind: T.DataType) -> Iterator[str]:
    """The names of all fields, nested ones too."""
    for field in kind.fields if isinstance(kind, T.StructType) else ():
        yield field.name
        yield from _names(field.dataType)
    if isinstance(kind, T.ArrayType):
        yield from _names(kind.elementType)
    if isinstance(kind, T.MapType):
        yield from (*_names(kind.keyType), *_names(kind.valueType))


def append(
    rows: DataFrame, path: str, transaction: tuple[str, int] | None = None, *, widen: bool = False
) -> None:
    """Appends `rows` in one commit, making the table if need be; with a transaction (application, version) a repetition writes nothing.

    `widen` lets columns that the source has got since join the table. With a transaction the table is one of a pipeline's, and
    is made with their `properties`.
    """
    if widen:
        widen_names(rows.sparkSession, path, rows.schema)
    writer = rows.write.format("delta").mode("append").option("mergeSchema", str(widen).lower())
    if transaction is not None:
        writer = (
            writer.option("txnAppId", transaction[0])
            .option("txnVersion", transaction[1])
            .options(**properties(rows.schema))
        )
    writer.save(path)


def widen_names(spark: SparkSession, path: str, schema: T.StructType) -> None:
    """Has the table at `path` map its columns, if it is there and does not yet, and `schema` has a name that only such a table can have."""
    if (
        _MAPPING not in properties(schema)
        or not exists(spark, path)
        or setting(spark, path, _MAPPING) in ("name", "id")
    ):
        return
    spark.sql(f"alter table delta.`{path}` set tblproperties ('{_MAPPING}' = 'name')")


def follow_types(spark: SparkSession, path: str, wanted: Mapping[str, T.DataType]) -> None:
    """Columns of the table at `path` that are of another type get the `wanted` one, which must be a widening.

    A reader needs Delta's table feature `typeWidening` from then on. Raises what Delta raises for a type that can't follow.
    """
    behind: dict[str, T.DataType] = {}
    for field in read(spark, path).schema.fields:
        behind |= _changed_leaves(
            f"`{field.name}`", field.dataType, wanted.get(field.name, field.dataType)
        )
    if behind and setting(spark, path, _WIDENING) != "true":
        spark.sql(f"alter table delta.`{path}` set tblproperties ('{_WIDENING}' = 'true')")
    if any("timestamp_ntz" in kind.simpleString() for kind in behind.values()):
        # Delta enables this one by itself for new tables only.
        spark.sql(
            f"alter table delta.`{path}` set tblproperties ('delta.feature.timestampNtz' = 'supported')"
        )
    for name, kind in behind.items():
        spark.sql(f"alter table delta.`{path}` alter column {name} type {kind.simpleString()}")


def _changed_leaves(name: str, old: T.DataType, new: T.DataType) -> dict[str, T.DataType]:
    """What differs between two types of a column, by the path that ALTER COLUMN knows it by."""
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
            found |= _changed_leaves(f"{name}.`{field.name}`", field.dataType, kind)
        return found
    return {} if old == new else {name: new}


def forget(spark: SparkSession, directory: Path) -> None:
    """The JVM keeps nothing of the tables in `directory`, which are about to go."""
    for log in directory.rglob("_delta_log"):
        logs(spark).invalidateCache(
            spark._jsparkSession, getattr(spark._jvm, "org.apache.hadoop.fs.Path")(str(log.parent))
        )


def aside(path: Path, kept: str) -> Path:
    """A path beside `path` that nothing lies at: `kept` with the first free number for `{n}`."""
    return next(p for n in range(1, 10**6) if not (p := path.with_name(kept.format(n=n))).exists())


def reason(error: AnalysisException) -> str:
    """The first sentence of what Spark says, without its plan."""
    return str(error).splitlines()[0].strip()


def local_path(uri: str) -> Path:
    """The directory of a local path or file: URI."""
    return Path(uri.removeprefix("file://").removeprefix("file:"))


def _place(spark: SparkSession, path: str) -> str:
    """The directory of the table at `path`, which may be a name of the catalog."""
    if "/" in path:
        return path
    return str(spark.sql(f"describe detail {quoted(path)}").select("location").collect()[0][0])
