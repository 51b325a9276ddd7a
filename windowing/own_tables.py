"""A pipeline's own tables: few rows without Spark where the table is plain, otherwise by Spark.

Both ways give the same rows. Whatever is asked of a table's log is answered without Spark, too.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from windowing import delta, plain_table, staged_files
from windowing.errors import Busy
from windowing.files import local_path, newest_version
from windowing.plain_table import Bounds, Clauses, PlainTable

_AS_STORED = {
    # A setting of the session could turn dates before 1900 into those of another calendar.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
"""Options with which Spark reads Parquet files as they are."""
_FEW_ROWS = 200_000
_FEW_LARGE_ROWS = 20_000
_known: dict[str, int] = {}
"""By path, the newest version of each table that this process has made or looked at."""
_compared: dict[str, int] = {}
"""By path, the version of each table whose rows this process has read last, or made since.

What is to change in a table follows from that version.
"""
_PATTERN = re.compile(r"[*?{}\[\]\\]")
"""What Spark takes for a pattern in the path of a file, but Delta does not in that of a table."""
_CHANGED = "{}: another writer changed the table; try again when it has finished"
_DEFAULTS = "spark.databricks.delta.properties.defaults."
"""How settings of a session begin that give new tables properties."""


def read(spark: SparkSession, path: str, within: Bounds | None = None) -> DataFrame:
    """The newest version of the table at `path`; rows that are not `within` may be left out.

    Spark takes a job to choose the files of a table, and another one for its protocol where the
    last commit is not Spark's own. So the files of a plain table are chosen here, by the bounds.
    """
    plain = plain_table.find_plain_to_read(path)
    _note_compared(path, plain)
    files = None if plain is None else plain_table.list_files(plain, within or {})
    if plain is None or not files or len(files) > plain_table.MOST_FILES or _PATTERN.search(path):
        return delta.read(spark, path)
    reader = spark.read.schema(_schema_of(plain)).options(**_AS_STORED)
    return reader.parquet(*(file.path for file in files))


def schema(spark: SparkSession, path: str) -> T.StructType:
    """The columns of the table at `path`."""
    plain = plain_table.find_plain_to_read(path)
    return delta.read(spark, path).schema if plain is None else _schema_of(plain)


def _schema_of(plain: PlainTable) -> T.StructType:
    return T.StructType.fromJson(json.loads(plain.schema_json))


def version(path: str) -> int:
    """The newest version of the table at `path`; -1 when there is none."""
    _known[path] = _find_newest(path)
    return _known[path]


def known_version(path: str) -> int:
    """The newest version of the table that this process has made or looked at.

    What another program commits meanwhile is not among them, so the next look finds it.
    """
    newest = _find_newest(path)
    # A table that was deleted and made again begins anew.
    _known[path] = min(_known.get(path, newest), newest)
    return _known[path]


def read_to_compare(spark: SparkSession, path: str) -> DataFrame:
    """`delta.read` of the newest version, from which follows what is to change in the table."""
    _compare_with_newest(path)
    return delta.read(spark, path)


def _compare_with_newest(path: str) -> int:
    _compared[path] = _find_newest(path)
    return _compared[path]


def _note_compared(path: str, plain: PlainTable | None) -> None:
    if plain is None:
        _compared.pop(path, None)
    else:
        _compared[path] = plain.version


def _note_commit(path: str, version: int) -> None:
    _known[path] = version
    _compared[path] = version


def _check_unchanged(plain: PlainTable) -> None:
    """Raises Busy where the table is at another version than the one that was read.

    That is the commit of a writer whose JVM has died, so that it no longer holds the lock.
    """
    if plain.version != _compared.get(plain.path, plain.version):
        raise Busy(_CHANGED.format(plain.path))


def _is_due(plain: PlainTable, transaction: tuple[str, int] | None) -> bool:
    """Whether rows are still to be appended; not where their transaction was committed before.

    Rows without a transaction follow the version that was read. Raises Busy where that has changed.
    """
    if transaction is not None:
        return not plain_table.has_committed(plain, *transaction)
    _check_unchanged(plain)
    return True


def _find_newest(path: str) -> int:
    newest = newest_version(local_path(path))
    return -1 if newest is None else newest


def size(spark: SparkSession, path: str) -> tuple[int, int]:
    """Files and bytes of the newest version of the table at `path`."""
    plain = plain_table.find_plain_to_read(path)
    files = None if plain is None else plain_table.list_files(plain, {})
    if files is not None:
        return len(files), sum(file.bytes for file in files)
    newest = delta.snapshot(spark, path)
    checksum = newest.checksumOpt()
    if checksum.isDefined():
        # Without the checksum file Delta runs a Spark job to count.
        return int(checksum.get().numFiles()), int(checksum.get().tableSizeBytes())
    return int(newest.numOfFiles()), int(newest.sizeInBytes())


def is_new(spark: SparkSession, path: str) -> bool:
    """Whether the table was created and never written to.

    A clone has files although it was never written to.
    """
    return _compare_with_newest(path) <= 0 and size(spark, path)[0] == 0


def is_few(rows: DataFrame, most: int | None) -> bool:
    """Whether `rows`, at `most` so many, fit into the memory of this process.

    None stands for a number that is not known. A sketch, a list or a struct may take as much memory
    as many numbers.
    """
    large = (T.ArrayType, T.BinaryType, T.MapType, T.StructType)
    has_large = any(isinstance(field.dataType, large) for field in rows.schema.fields)
    return most is not None and most <= (_FEW_LARGE_ROWS if has_large else _FEW_ROWS)


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
    if not properties.keys() <= plain_table.PROPERTIES:
        return False
    if not plain_table.is_simple_schema(columns.json()):
        return False
    return _DEFAULTS not in str(spark._jsparkSession.conf().getAll())


def append_many(
    rows: DataFrame, path: str, transaction: tuple[str, int] | None = None, *, widen: bool = False
) -> None:
    """`delta.append`: Spark writes the rows.

    It would write statistics of each row for the log, which the files of a plain table contain
    already. So they are committed here.
    """
    plain = None if widen else _open_to_append(rows, path, transaction)
    if plain is None:
        _append_by_spark(rows, path, transaction, widen=widen)
    elif _is_due(plain, transaction):
        files = staged_files.write_files(rows, path)
        # Another commit may have come first, of a writer whose JVM had died.
        plain = _find_fitting(path, rows.schema)
        if plain is None:
            raise Busy(_CHANGED.format(path))
        # Where that was the same batch, VACUUM deletes the files.
        if _is_due(plain, transaction):
            _note_commit(path, plain_table.add_files(plain, files, transaction))


def _append_by_spark(
    rows: DataFrame, path: str, transaction: tuple[str, int] | None, *, widen: bool = False
) -> None:
    """`delta.append`."""
    delta.append(rows, path, transaction, widen=widen)
    remember_commit(rows.sparkSession, path)


def remember_commit(spark: SparkSession, path: str) -> None:
    """Has to be called after each commit to the table at `path` by Spark."""
    _note_commit(path, delta.known_version(spark, path))


def append_few(
    rows: DataFrame, path: str, sort: str, transaction: tuple[str, int] | None = None
) -> None:
    """`append_many` of few rows, which are sorted by the column `sort`.

    Where the table is not plain, or has other columns, Spark commits them.
    """
    # It is opened before the rows are collected, so that nothing can be committed in between.
    plain = _open_to_append(rows, path, transaction)
    if plain is None:
        _append_by_spark(rows.sortWithinPartitions(sort), path, transaction)
    elif _is_due(plain, transaction):
        collected = collect(rows).sort_by(sort)
        _note_commit(path, plain_table.append(plain, collected, transaction))


def append_values(
    spark: SparkSession, path: str, values: Sequence[Mapping[str, Any]], schema: str
) -> None:
    """Appends a few rows made of values of this process, in one commit.

    Spark does it where the table is not plain, has other columns, or does not exist yet.
    """
    columns = delta.parse_columns(schema)
    plain = _find_fitting(path, columns)
    if plain is None:
        _append_by_spark(delta.rows(spark, values, schema), path, None)
    else:
        _note_commit(path, plain_table.append(plain, delta.arrow_rows(values, columns)))


def _open_to_append(
    rows: DataFrame, path: str, transaction: tuple[str, int] | None
) -> PlainTable | None:
    """The plain table at `path`; None where Spark has to append `rows` to it.

    A table of state begins with its first rows, and is created here.
    """
    spark = rows.sparkSession
    if transaction is not None and not delta.exists(spark, path):
        columns = _as_stored(rows.schema)
        properties = delta.properties(columns)
        if _is_simple(spark, columns, properties):
            plain_table.create(path, columns.json(), properties)
    return _find_fitting(path, rows.schema)


def _find_fitting(path: str, columns: T.StructType) -> PlainTable | None:
    """The plain table at `path` with just these columns; None where there is no such table."""
    plain = plain_table.find_plain(path)
    return plain if plain is not None and _has_columns(plain, columns) else None


def append_counted(rows: DataFrame, path: str, sort: str, flag: str) -> tuple[int, int] | None:
    """Appends few rows in one commit, without their column `flag`; nothing where there is none.

    Returns how many rows there are, and for how many `flag` is true. None where Spark has to append
    them, and nothing is done.
    """
    plain = _find_fitting(path, rows.drop(flag).schema)
    if plain is None:
        return None
    collected = collect(rows)
    if collected.num_rows:
        stored = collected.drop_columns([flag]).sort_by(sort)
        _check_unchanged(plain)
        _note_commit(path, plain_table.append(plain, stored))
    return collected.num_rows, collected[flag].to_pylist().count(True)


def merge_few(changed: DataFrame, path: str, clauses: Clauses, most_bytes: int) -> bool:
    """Applies few changed rows in one commit; False where Spark has to do it, and nothing is done.

    `changed` are the columns of the table and an operation. No more than `most_bytes` of its files
    are rewritten.
    """
    plain = _find_fitting(path, changed.drop(clauses.op).schema)
    if plain is None or not plain_table.can_merge(plain, clauses, most_bytes):
        return False
    _check_unchanged(plain)
    _note_commit(path, plain_table.merge(plain, collect(changed), clauses))
    return True


def _has_columns(plain: PlainTable, columns: T.StructType) -> bool:
    """Whether the table has just these columns, of the same types, in any order."""
    stored = {field.name: _nullable(field.dataType) for field in _schema_of(plain).fields}
    return stored == {field.name: _nullable(field.dataType) for field in columns.fields}


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
