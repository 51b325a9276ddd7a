"""A pipeline's own tables: few rows without Spark where the table is plain, otherwise by Spark.

Both ways give the same rows. Whatever is asked of a table's log is answered without Spark, too.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from windowing.columns import OP
from windowing.location import Location
from windowing.storage import delta, delta_log, plain_table, spark_internals, staged_files
from windowing.storage.arrow_merge import Clauses
from windowing.storage.commit_file import DataFile, superseded
from windowing.storage.control import TableError, open_to_read
from windowing.storage.few_rows import Collected, collect_few
from windowing.storage.kept_open import copy_data, find_noted_version, has_commit, newest_version
from windowing.storage.master import is_local
from windowing.storage.plain_log import PROPERTIES, is_simple_schema
from windowing.storage.plain_table import Bounds, PlainTable

_AS_STORED = {
    # A setting of the session could turn dates before 1900 into those of another calendar.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
"""Options with which Spark reads Parquet files as they are."""
_PATTERN = re.compile(r"[*?{}\[\]\\]")
"""What Spark takes for a pattern in the path of a file, but Delta does not in that of a table."""
Rows = DataFrame | Collected
"""Rows that Spark computes when they are written, or that are in this process already."""
EVERY_ROW: Bounds = {}
"""The bounds of a query that needs a whole table."""
_SMALL_BYTES = 64 * 1024 * 1024
"""Up to this size reading a whole table takes no longer than finding the files that are needed."""
_COPIED_BYTES = 16 * 1024 * 1024
"""Up to this size the files of a query are copied from shared storage as a whole."""
_DEFAULTS = "spark.databricks.delta.properties.defaults."
"""How settings of a session begin that give new tables properties."""


@dataclass(frozen=True)
class Snapshot:
    """A version of a table; -1 where there is no table.

    What is to change in the table follows from one, so a commit names it, and is refused where
    another one has come first. `plain` opens that version where the table is plain.
    """

    path: Location
    version: int
    plain: PlainTable | None

    @property
    def transaction(self) -> None:
        """A commit that follows a version needs none."""


@dataclass(frozen=True)
class Once:
    """A commit to the table at `path` that an application makes once under each number."""

    path: Location
    application: str
    number: int

    @property
    def transaction(self) -> tuple[str, int]:
        """Application and number."""
        return self.application, self.number


After = Snapshot | Once
"""What a commit has to know of those before it."""


def open_snapshot(path: Location) -> Snapshot:
    """The newest version of the table at `path`."""
    plain = plain_table.find_plain(path)
    return Snapshot(path, newest_version(path) if plain is None else plain.version, plain)


def find(spark: SparkSession, path: Location, within: Bounds | None = None) -> DataFrame | None:
    """What `read` returns; None where there is no table."""
    snapshot = open_snapshot(path)
    return None if snapshot.version < 0 else read_snapshot(spark, snapshot, within)


def read(spark: SparkSession, path: Location, within: Bounds | None = None) -> DataFrame:
    """The newest version of the table at `path`, as `read_snapshot` reads it."""
    return read_snapshot(spark, open_snapshot(path), within)


def read_snapshot(
    spark: SparkSession, snapshot: Snapshot, within: Bounds | None = None
) -> DataFrame:
    """The rows of `snapshot`; those that are not `within` may be left out.

    Spark takes a job to choose the files of a table, and another one for its protocol where the
    last commit is not Spark's own. So the files of a plain table are chosen here, by the bounds.
    None stands for bounds that are not known; Spark then chooses those of a large table by the
    conditions of the query. Where another commit comes meanwhile, Spark may read that one; none
    then follows `snapshot`.
    """
    files = choose_files(snapshot, within)
    if snapshot.plain is None or not files:
        return delta.read(spark, snapshot.path)
    return read_files(spark, schema_of(snapshot.plain), locate_files(spark, snapshot, files))


def read_files(spark: SparkSession, columns: T.StructType, paths: Sequence[str]) -> DataFrame:
    """The rows of Parquet files with these columns, as they are stored."""
    return spark.read.schema(columns).options(**_AS_STORED).parquet(*paths)


def locate_files(spark: SparkSession, snapshot: Snapshot, files: Sequence[DataFile]) -> list[str]:
    """Where Spark reads the files."""
    copied = _copy_files(spark, snapshot, files)
    return copied or [(snapshot.path / file.name).hadoop for file in files]


def _copy_files(
    spark: SparkSession, snapshot: Snapshot, files: Sequence[DataFile]
) -> list[str] | None:
    """Few small files on shared storage as files of this machine, for a JVM that is on it, too.

    Spark would ask for each of them five times and more, and this process asks once.
    """
    if snapshot.path.is_local or not is_local(spark.sparkContext.master or ""):
        return None
    if sum(file.bytes for file in files) > _COPIED_BYTES:
        return None
    copied = copy_data(snapshot.path, [file.name for file in files]) or []
    if any(_PATTERN.search(str(file)) for file in copied):
        return None
    return [f"file:{file}" for file in copied]


def choose_files(snapshot: Snapshot, within: Bounds | None) -> list[DataFile] | None:
    """The files that Spark reads by their names; none where it has to choose them."""
    if snapshot.plain is None or _PATTERN.search(snapshot.path.text):
        return None
    files = plain_table.list_files(snapshot.plain, within or EVERY_ROW)
    if files is None or len(files) > plain_table.MOST_FILES:
        return None
    is_large = within is None and sum(file.bytes for file in files) > _SMALL_BYTES
    return None if is_large else files


def find_setting(snapshot: Snapshot, name: str) -> str | None:
    """A property of the table; None where it is not set, or where there is no table.

    The log of a plain table was read when it was opened. Any other is opened once more, unless the
    command has it open.
    """
    if snapshot.version < 0:
        return None
    if snapshot.plain is not None:
        return snapshot.plain.table.metadata().configuration.get(name)
    try:
        table = open_to_read(snapshot.path)
    except TableError:
        return delta_log.setting(SparkSession.active(), snapshot.path, name)
    return None if table is None else table.metadata().configuration.get(name)


def schema(spark: SparkSession, path: Location) -> T.StructType:
    """The columns of the table at `path`."""
    plain = plain_table.find_plain(path)
    return delta.read(spark, path).schema if plain is None else schema_of(plain)


def schema_of(plain: PlainTable) -> T.StructType:
    """The columns of a plain table as Spark has them."""
    return T.StructType.fromJson(json.loads(plain.schema_json))


def known_version(path: Location) -> int:
    """The newest version of the table that this command has made or has begun with.

    What another program commits meanwhile is not among them, so the next look finds it.
    """
    newest, noted = newest_version(path), find_noted_version(path)
    # A table that was deleted and made again begins anew.
    return newest if noted is None else min(noted, newest)


def check_newest(snapshot: Snapshot) -> None:
    """Raises Busy where another commit than the one of `snapshot` is the newest."""
    if newest_version(snapshot.path) != snapshot.version:
        raise superseded(snapshot.path)


def _is_due(plain: PlainTable, after: After) -> bool:
    """Whether rows are still to be appended; not where the same commit was made before.

    Raises what `_check_follows` does.
    """
    if isinstance(after, Once):
        return not plain_table.has_committed(plain, after.application, after.number)
    _check_follows(plain, after)
    return True


def _check_follows(plain: PlainTable, snapshot: Snapshot) -> None:
    """Raises Busy where the version that a commit follows is not the newest any more.

    That is the commit of a writer whose JVM has died, so that it no longer holds the lock.
    """
    if plain.version != snapshot.version:
        raise superseded(snapshot.path)


def size(spark: SparkSession, path: Location) -> tuple[int, int]:
    """Files and bytes of the newest version of the table at `path`."""
    plain = plain_table.find_plain(path)
    files = None if plain is None else plain_table.list_files(plain, {})
    if files is not None:
        return len(files), sum(file.bytes for file in files)
    return delta_log.size(spark, path)


def is_new(spark: SparkSession, snapshot: Snapshot) -> bool:
    """Whether the table was created and never written to.

    A clone has files although it was never written to.
    """
    return snapshot.version <= 0 and size(spark, snapshot.path)[0] == 0


def create(
    spark: SparkSession, path: Location, columns: T.StructType, properties: Mapping[str, str]
) -> None:
    """Creates the table at `path` with these columns and properties unless it exists."""
    if has_commit(path):
        return
    if _is_simple(spark, columns, properties):
        plain_table.create(path, columns.json(), properties)
    else:
        delta.create(spark, path, columns, properties)


def _is_simple(spark: SparkSession, columns: T.StructType, properties: Mapping[str, str]) -> bool:
    """Whether a new table is plain, and no setting of the session gives it other properties."""
    if not properties.keys() <= PROPERTIES:
        return False
    if not is_simple_schema(columns.json()):
        return False
    return _DEFAULTS not in spark_internals.list_settings(spark)


def append_many(rows: DataFrame, after: After, *, widen: bool = False) -> None:
    """Appends `rows` in one commit: Spark writes them.

    It would write statistics of each row for the log, which the files of a plain table contain
    already. So they are committed here. With `widen` the table gets the columns that it lacks.
    """
    # On other storage files can't be renamed, so a commit could not name them where they lie.
    by_spark = widen or not after.path.is_local
    plain = None if by_spark else _open_to_append(rows, after)
    if plain is None:
        _append_by_spark(rows, after, widen=widen)
    elif _is_due(plain, after):
        files = staged_files.write_files(rows, after.path)
        # Another commit may have come first, of a writer whose JVM had died.
        plain = _find_fitting(after.path, rows.schema)
        if plain is None:
            raise superseded(after.path)
        # Where that was the same batch, VACUUM deletes the files.
        if _is_due(plain, after):
            plain_table.add_files(plain, files, after.transaction)


def _append_by_spark(rows: DataFrame, after: After, *, widen: bool) -> None:
    if isinstance(after, Snapshot):
        check_newest(after)
    delta.append(rows, after.path, after.transaction, widen=widen)


def append(rows: Rows, after: After, sort: str, most: int | None) -> None:
    """Appends `rows`, at `most` so many, in one commit; large files are in order of `sort`.

    None stands for a number that is not known. Few rows are sorted and written by this process;
    where the table is not plain or has other columns, or where there are many, Spark does it.
    """
    plain = _open_to_append(rows, after)
    if plain is not None and not _is_due(plain, after):
        return
    if plain is None or (collected := _collect_few(rows, most)) is None:
        append_many(to_spark(rows).sortWithinPartitions(sort), after)
        return
    sorted_rows = collected.sort_by(sort)
    plain_table.append(plain, sorted_rows, after.transaction)


def _collect_few(rows: Rows, most: int | None) -> pa.Table | None:
    """What `collect_few` returns, of rows that may have been collected before."""
    return rows.rows if isinstance(rows, Collected) else collect_few(rows, most)


def to_spark(rows: Rows) -> DataFrame:
    """The rows for Spark, wherever they are."""
    return rows.to_spark() if isinstance(rows, Collected) else rows


def _session_of(rows: Rows) -> SparkSession:
    return rows.spark if isinstance(rows, Collected) else rows.sparkSession


def append_values(
    spark: SparkSession, path: Location, values: Sequence[Mapping[str, Any]], schema: str
) -> None:
    """Appends a few rows made of values of this process, in one commit.

    Spark does it where the table is not plain, has other columns, or does not exist yet.
    """
    columns = delta.parse_columns(schema)
    plain = _find_fitting(path, columns)
    if plain is None:
        delta.append(delta.rows(spark, values, schema), path)
    else:
        plain_table.append(plain, delta.arrow_rows(values, columns))


def _open_to_append(rows: Rows, after: After) -> PlainTable | None:
    """The plain table that `rows` are appended to; None where Spark has to append them.

    A table of state begins with its first rows, and is created here.
    """
    spark, path = _session_of(rows), after.path
    if isinstance(after, Once) and not has_commit(path):
        columns = _as_stored(rows.schema)
        properties = delta.properties(columns)
        if _is_simple(spark, columns, properties):
            plain_table.create(path, columns.json(), properties)
    return _find_fitting(path, rows.schema)


def _find_fitting(path: Location, columns: T.StructType) -> PlainTable | None:
    """The plain table at `path` with just these columns; None where there is no such table."""
    plain = plain_table.find_plain(path)
    return plain if plain is not None and _has_columns(plain, columns) else None


def merge_few(changed: Rows, on: Snapshot, clauses: Clauses, most: int, most_bytes: int) -> bool:
    """Applies few changed rows in one commit; False where Spark has to do it, and nothing is done.

    `changed` are the columns of the table and an operation, in at `most` so many rows. No more than
    `most_bytes` of its files are rewritten.
    """
    stored = T.StructType([each for each in changed.schema.fields if each.name != OP])
    plain = plain_table.find_plain(on.path)
    if plain is None or not _has_columns(plain, stored):
        return False
    if not plain_table.can_merge(plain, clauses, most_bytes):
        return False
    _check_follows(plain, on)
    collected = _collect_few(changed, most)
    if collected is None:
        return False
    plain_table.merge(plain, collected, clauses)
    return True


def _has_columns(plain: PlainTable, columns: T.StructType) -> bool:
    """Whether the table has just these columns, of the same types, in any order."""
    stored = {field.name: _nullable(field.dataType) for field in schema_of(plain).fields}
    return stored == {field.name: _nullable(field.dataType) for field in columns.fields}


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
