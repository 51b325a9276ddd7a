"""Delta tables by path: the few reads and writes that every stage's table.py is made of."""

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

from windowing.columns import PRUNED, quoted
from windowing.files import committed_us, has_commit, local_path

_MAPPING = "delta.columnMapping.mode"
_WIDENING = "delta.enableTypeWidening"
_ODD = re.compile(r"[ ,;{}()\n\t=]")
"""What a column's name may contain only where Delta maps columns."""
_ELSEWHERE = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*:/")
"""How the URI of a table begins that does not lie on a local disk."""


def exists(spark: SparkSession, path: str) -> bool:
    """Whether a Delta table lies at `path` (a path, a URI, or a catalog name)."""
    if "/" not in path:
        return bool(spark.catalog.tableExists(quote_name(path)))
    if not _ELSEWHERE.match(path):
        # Delta would remember that a log without a commit is no table, also after it has become
        # one without Spark.
        return has_commit(local_path(path))
    table = getattr(spark._jvm, "io.delta.tables.DeltaTable")
    return bool(table.isDeltaTable(spark._jsparkSession, path))


def quote_name(name: str) -> str:
    """A name of the catalog, each part in backticks."""
    return ".".join(f"`{part}`" for part in name.split("."))


def read(spark: SparkSession, path: str, version: int | None = None) -> DataFrame:
    """The table at `path`, its newest version or the one named."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(path) if "/" in path else reader.table(quote_name(path))


def read_streamed_batch(spark: SparkSession, stream: SparkSession, rows: DataFrame) -> DataFrame:
    """The rows of a batch that a stream of the session `stream` passed on, as a table is read.

    Spark passes rows on one by one with all their columns. A read of the batch's files leaves out
    the columns that a query does not need. Where the batch is not simply files, it is `rows` as
    they are passed on. In both cases queries of them have the settings of `spark`.
    """
    relation = _find_relation_of_batch(stream)
    if relation is not None:
        # Its own session says into how many tasks the files are split.
        own = _in_session(relation, spark)
        found = DataFrame(spark._jsparkSession.baseRelationToDataFrame(own), spark)
        if found.schema == rows.schema:
            return found
    passed_on = rows._jdf.queryExecution().toRdd()
    of_spark = spark._jsparkSession.internalCreateDataFrame(passed_on, rows._jdf.schema(), False)
    return DataFrame(of_spark, spark)


def _find_relation_of_batch(stream: SparkSession) -> Any:
    """The files that the stream which calls this thread has chosen for its batch; None as above."""
    number = stream.sparkContext.getLocalProperty("sql.streaming.queryId")
    query = stream._jsparkSession.streams().get(number) if number else None
    if query is None:
        return None
    # The sink, a renaming of all columns, and the files.
    plan = query.streamingQuery().lastExecution().logical()
    for above in ("WriteToMicroBatchDataSourceV1", "Project"):
        if plan.getClass().getSimpleName() != above:
            return None
        plan = plan.children().head()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = plan.relation()
    files = getattr(relation, "location", None)
    is_batch = files is not None and files().getClass().getSimpleName() == "TahoeBatchFileIndex"
    return relation if is_batch else None


def list_batch_files(stream: SparkSession) -> list[Path] | None:
    """The Parquet files whose rows are those of the batch that the stream has passed on.

    None where they contain other rows too, name columns otherwise than the table does, or are not
    on a local disk. It has to be asked by the thread that the stream calls.
    """
    relation = _find_relation_of_batch(stream)
    if relation is None or relation.fileFormat().metadata().columnMappingMode().name() != "none":
        return None
    chosen = relation.location()
    files = chosen.addFiles()
    if any(files.apply(n).deletionVector() is not None for n in range(files.size())):
        return None
    uris = [str(uri) for uri in chosen.inputFiles()]
    if not all(uri.startswith("file:/") for uri in uris):
        return None
    return [local_path(uri) for uri in uris]


def _in_session(relation: Any, spark: SparkSession) -> Any:
    """The same files, read with the settings of `spark`."""
    return relation.copy(
        relation.location(),
        relation.partitionSchema(),
        relation.dataSchema(),
        relation.bucketSpec(),
        relation.fileFormat(),
        relation.options(),
        spark._jsparkSession,
    )


def snapshot(spark: SparkSession, path: str) -> Any:
    """The newest version of the table at `path`, as an object of Delta."""
    directory = _find_directory(spark, path)
    log_and_snapshot = logs(spark).forTableWithSnapshot(spark._jsparkSession, directory)
    return log_and_snapshot._2()


def log_of(spark: SparkSession, path: str) -> Any:
    """The log of the table at `path`, as an object of Delta."""
    return logs(spark).forTable(spark._jsparkSession, _find_directory(spark, path))


def logs(spark: SparkSession) -> Any:
    """Delta's cache of logs, through which it opens each of them."""
    return getattr(spark._jvm, "org.apache.spark.sql.delta.DeltaLog")


def version(spark: SparkSession, path: str) -> int:
    """The newest version of the table at `path`; -1 when there is none."""
    return int(snapshot(spark, path).version())


def known_version(spark: SparkSession, path: str) -> int:
    """The newest version of the table at `path` that this JVM has seen or made; -1 for none.

    The log is not read again, so this costs nothing.
    """
    return int(log_of(spark, path).unsafeVolatileSnapshot().version())


def known_schema(spark: SparkSession, path: str) -> T.StructType:
    """The columns of that version with their metadata, which reading the table does not show."""
    known = log_of(spark, path).unsafeVolatileSnapshot()
    schema_json = known.metadata().schema().json()
    return T.StructType.fromJson(json.loads(schema_json))


def home(spark: SparkSession, path: str) -> Path:
    """The directory of the table at `path`."""
    return local_path(str(log_of(spark, path).dataPath()))


def committed(spark: SparkSession, path: str, version: int) -> int | None:
    """When `version` of the table at `path` was written, microseconds by its writer's clock.

    It is None where the commit file was deleted or has no time.
    """
    return committed_us(home(spark, path), version)


def known_table_id(spark: SparkSession, path: str) -> str:
    """The id that a table created later at the same path does not have.

    It is that of the newest version that this JVM has seen or made. The log is not read again.
    """
    return str(log_of(spark, path).unsafeVolatileSnapshot().metadata().id())


def setting(spark: SparkSession, path: str, name: str) -> str | None:
    """A property of the table at `path`; None where it is not set."""
    found = snapshot(spark, path).metadata().configuration().get(name)
    return str(found.get()) if found.isDefined() else None


def create(
    spark: SparkSession, path: str, schema: T.StructType, properties: Mapping[str, str]
) -> None:
    """Creates the table at `path` with these columns and properties unless it exists."""
    if exists(spark, path):
        return
    builder = DeltaTable.createIfNotExists(spark).location(path).addColumns(schema)
    for name, value in properties.items():
        builder = builder.property(name, value)
    builder.execute()


def rows(spark: SparkSession, values: Sequence[Mapping[str, Any]], schema: str) -> DataFrame:
    """A few rows made of values of this process, in one partition."""
    columns = parse_columns(schema)
    # Rows that travel as Arrow need no Python worker, which takes a second to start.
    return spark.createDataFrame(arrow_rows(values, columns), columns).coalesce(1)


def arrow_rows(values: Sequence[Mapping[str, Any]], columns: T.StructType) -> pa.Table:
    """The same rows in this process."""
    arrow_schema = to_arrow_schema(columns, timestamp_utc=True)
    return pa.Table.from_pylist([dict(value) for value in values], schema=arrow_schema)


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
        "delta.dataSkippingStatsColumns": ",".join(pruned),
        # Whoever opens a table reads the commits since the last checkpoint of its log. That is
        # Delta's own interval; that of delta-rs is 100.
        "delta.checkpointInterval": "10",
    }
    if any(_ODD.search(name) for name in _field_names(schema)):
        found[_MAPPING] = "name"
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
    rows: DataFrame, path: str, transaction: tuple[str, int] | None = None, *, widen: bool = False
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
    writer.save(path)


def widen_names(spark: SparkSession, path: str, schema: T.StructType) -> None:
    """Turns on column mapping of the table at `path` where a name in `schema` needs it.

    A table that does not exist yet, or that maps its columns already, stays as it is.
    """
    if _MAPPING not in properties(schema):
        return
    if not exists(spark, path) or setting(spark, path, _MAPPING) in ("name", "id"):
        return
    set_property(spark, path, _MAPPING, "name")


def set_property(spark: SparkSession, path: str, name: str, value: str) -> None:
    """Sets one property of the table at `path`, in a commit of its own."""
    spark.sql(f"alter table delta.`{path}` set tblproperties ('{name}' = '{value}')")


def follow_types(spark: SparkSession, path: str, wanted: Mapping[str, T.DataType]) -> None:
    """Widens columns of the table at `path` to the types that are `wanted`.

    A reader needs Delta's table feature `typeWidening` from then on. Raises what Delta raises for a
    change of type that is no widening.
    """
    behind: dict[str, T.DataType] = {}
    for field in read(spark, path).schema.fields:
        kind = wanted.get(field.name, field.dataType)
        behind |= _changed_leaves(quoted(field.name), field.dataType, kind)
    if behind and setting(spark, path, _WIDENING) != "true":
        set_property(spark, path, _WIDENING, "true")
    if any("timestamp_ntz" in kind.simpleString() for kind in behind.values()):
        # Delta enables this one by itself for new tables only.
        set_property(spark, path, "delta.feature.timestampNtz", "supported")
    for name, kind in behind.items():
        spark.sql(f"alter table delta.`{path}` alter column {name} type {kind.simpleString()}")


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


def forget(spark: SparkSession, directory: Path) -> None:
    """Removes the tables in `directory`, which are about to be deleted, from the JVM's cache."""
    for log in directory.rglob("_delta_log"):
        table = getattr(spark._jvm, "org.apache.hadoop.fs.Path")(str(log.parent))
        logs(spark).invalidateCache(spark._jsparkSession, table)


def reason(error: AnalysisException) -> str:
    """The first line of Spark's message, without its plan."""
    return str(error).splitlines()[0].strip()


def _find_directory(spark: SparkSession, path: str) -> str:
    """The directory of the table at `path`, which may be a name of the catalog."""
    if "/" in path:
        return path
    detail = spark.sql(f"describe detail {quote_name(path)}")
    (row,) = detail.select("location").collect()
    return str(row["location"])
