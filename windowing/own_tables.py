"""A pipeline's own tables: few rows without Spark where the table is plain, otherwise by Spark.

Both ways give the same rows. Whatever is asked of a table's log is answered without Spark, too.
"""

import json
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from windowing import delta, plain_table
from windowing.files import local_path, newest_version
from windowing.plain_table import Bounds, Clauses, File, PlainTable

FEW_ROWS = plain_table.FEW_ROWS
_DEFAULTS = "spark.databricks.delta.properties.defaults."
"""How settings of a session begin that give new tables properties."""


def read(spark: SparkSession, path: str, within: Bounds | None = None) -> DataFrame:
    """The newest version of the table at `path`; rows that are not `within` may be left out.

    Spark takes a job to choose the files of a table, and another one for its protocol where the
    last commit is not Spark's own. So the files of a plain table are chosen here, by the bounds.
    """
    plain = plain_table.find_plain(path)
    files = None if plain is None else plain_table.list_files(plain, within or {})
    if plain is None or not files or len(files) > plain_table.MOST_FILES:
        return delta.read(spark, path)
    # The name of a directory may contain what would be a pattern.
    reader = spark.read.schema(_schema_of(plain)).option("__globPaths__", "false")
    return reader.parquet(*(file.path for file in files))


def schema(spark: SparkSession, path: str) -> T.StructType:
    """The columns of the table at `path`."""
    plain = plain_table.find_plain(path)
    return delta.read(spark, path).schema if plain is None else _schema_of(plain)


def _schema_of(plain: PlainTable) -> T.StructType:
    return T.StructType.fromJson(json.loads(plain.schema_json))


def version(path: str) -> int:
    """The newest version of the table at `path`; -1 when there is none."""
    newest = newest_version(local_path(path))
    return -1 if newest is None else newest


def size(spark: SparkSession, path: str) -> tuple[int, int]:
    """Files and bytes of the newest version of the table at `path`."""
    files = find_files(path)
    if files is not None:
        return len(files), sum(file.bytes for file in files)
    newest = delta.snapshot(spark, path)
    checksum = newest.checksumOpt()
    if checksum.isDefined():
        # Without the checksum file Delta runs a Spark job to count.
        return int(checksum.get().numFiles()), int(checksum.get().tableSizeBytes())
    return int(newest.numOfFiles()), int(newest.sizeInBytes())


def find_files(path: str, within: Bounds | None = None) -> list[File] | None:
    """The files that may have rows `within` the bounds; None where the table is not plain."""
    plain = plain_table.find_plain(path)
    return None if plain is None else plain_table.list_files(plain, within or {})


def is_new(spark: SparkSession, path: str) -> bool:
    """Whether the table was created and never written to.

    A clone has files although it was never written to.
    """
    return version(path) <= 0 and size(spark, path)[0] == 0


def create(
    spark: SparkSession, path: str, columns: T.StructType, properties: Mapping[str, str]
) -> None:
    """Creates the table at `path` with these columns and properties unless it exists."""
    if delta.exists(spark, path):
        return
    if _is_simple(spark, columns, properties):
        plain_table.create(path, columns.json(), properties)
    else:
        delta.create(spark, path, columns, properties)


def _is_simple(spark: SparkSession, columns: T.StructType, properties: Mapping[str, str]) -> bool:
    """Whether a new table is plain, and no setting of the session gives it other properties."""
    if not properties.keys() <= plain_table.PROPERTIES or any(f.metadata for f in columns.fields):
        return False
    return _DEFAULTS not in str(spark._jsparkSession.conf().getAll())


def append_few(
    rows: DataFrame, path: str, sort: str, transaction: tuple[str, int] | None = None
) -> None:
    """`delta.append` of few rows, which are sorted by the column `sort`.

    Where the table is not plain, or has other columns, Spark commits them.
    """
    spark = rows.sparkSession
    if transaction is not None and not delta.exists(spark, path):
        # A table of state begins with its first rows.
        columns = _as_stored(rows.schema)
        properties = delta.properties(columns)
        if _is_simple(spark, columns, properties):
            plain_table.create(path, columns.json(), properties)
    plain = plain_table.find_plain(path)
    if plain is None or {*plain.schema.names} != {*rows.columns}:
        delta.append(rows.sortWithinPartitions(sort), path, transaction)
    elif transaction is None or not plain_table.has_committed(plain, *transaction):
        plain_table.append(plain, collect(rows).sort_by(sort), transaction)


def append_collected(spark: SparkSession, rows: pa.Table, path: str, sort: str) -> None:
    """`append_few` of rows that are in the memory of this process."""
    plain = plain_table.find_plain(path)
    if plain is None or {*plain.schema.names} != {*rows.column_names}:
        delta.append(spark.createDataFrame(rows).sortWithinPartitions(sort), path)
    else:
        plain_table.append(plain, rows.sort_by(sort))


def merge_few(changed: DataFrame, path: str, clauses: Clauses, most_bytes: int) -> bool:
    """Applies few changed rows in one commit; False where Spark has to do it, and nothing is done.

    `changed` are the columns of the table and an operation. No more than `most_bytes` of its files
    are rewritten.
    """
    plain = plain_table.find_plain(path)
    if plain is None or {*plain.schema.names, clauses.op} != {*changed.columns}:
        return False
    if not plain_table.can_merge(plain, clauses, most_bytes):
        return False
    plain_table.merge(plain, collect(changed), clauses)
    return True


def collect(rows: DataFrame) -> pa.Table:
    """All `rows` in the memory of this process."""
    return rows.toArrow()


def _as_stored(columns: T.StructType) -> T.StructType:
    """The columns as a table has them: everything may be null."""
    return T.StructType([T.StructField(f.name, _nullable(f.dataType)) for f in columns.fields])


def _nullable(kind: T.DataType) -> T.DataType:
    match kind:
        case T.StructType():
            return _as_stored(kind)
        case T.ArrayType():
            return T.ArrayType(_nullable(kind.elementType), containsNull=True)
        case T.MapType():
            return T.MapType(_nullable(kind.keyType), _nullable(kind.valueType))
        case _:
            return kind
