"""Small Delta tables that this process reads and commits by itself, without Spark.

Ledger and watermarks have a few rows for each run. Reading or committing them through Spark costs a
job each; delta-rs needs some milliseconds. They stay ordinary Delta tables for every reader.

Times are whole microseconds since 1970 on both sides, and maps are dicts.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import (
    CommitProperties,
    DeltaTable,
    QueryBuilder,
    Schema,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError

from windowing.errors import Busy
from windowing.files import local_path

Row = Mapping[str, Any]

_PROPERTIES = {
    # Text gets no statistics, so that no log contains a value of a row.
    "delta.dataSkippingStatsColumns": "run",
    # A checkpoint of the log costs more than it saves while a table has few commits.
    "delta.checkpointInterval": "50",
}
"""The properties that a control table is created with."""


_MILLISECOND = 1_000
"""Delta cuts the times of its statistics to milliseconds."""
_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")
_LOST_RACE = "Failed to commit transaction"
"""How the message begins when another commit has the version that was to be made."""


_READ_BY_SPARK = {"deletionVectors", "columnMapping"}
"""Features that change which rows and columns the files of a table contain."""
_QUERIED = {"deletionVectors", "columnMapping", "timestampNtz"}
"""Features with which a query of delta-rs finds the rows of a table that Spark finds."""


class TableError(Exception):
    """Raised when a table can't be read or written, because it is not as it was left.

    `path` is the table's; `reason` is the library's message, which may contain values of rows.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason.splitlines()[0]}")


@dataclass(frozen=True)
class Snapshot:
    """The rows of a table at `version`; -1 and no rows where there is no table."""

    version: int
    rows: tuple[Row, ...]


def read_snapshot(path: str) -> Snapshot:
    """Every row of the newest version of the table at `path`."""
    table = _open_table(path)
    if table is None:
        return Snapshot(-1, ())
    unsupported = _READ_BY_SPARK & {*(table.protocol().reader_features or ())}
    if unsupported:
        raise TableError(path, f"the table feature {min(unsupported)} is not supported")
    rows: list[Row] = []
    with _errors_explained(path):
        for uri in table.file_uris():
            # Spark writes INT96 by default. As nanoseconds, such times would end in the year 2262.
            file = pq.ParquetFile(local_path(uri), coerce_int96_timestamp_unit="us")
            rows += _to_rows(file.read())
    return Snapshot(table.version(), tuple(rows))


def read_version(path: str) -> int:
    """The newest version of the table at `path`; -1 where there is none."""
    table = _open_table(path)
    return -1 if table is None else table.version()


@dataclass(frozen=True)
class Metadata:
    """The id of a table, which one created later at the same path has not, and its properties."""

    table_id: str
    settings: Mapping[str, str]


def read_metadata(path: str) -> Metadata:
    """The metadata of the newest version of any table; TableError where it can't be read."""
    with _errors_explained(path):
        found = DeltaTable(path).metadata()
    return Metadata(str(found.id), dict(found.configuration))


def count_rows(path: str, version: int) -> int:
    """How many rows a version of any table has, from its log and its deletion vectors.

    TableError where the log has no statistics of a file, or that version has been removed.
    """
    with _errors_explained(path):
        table = DeltaTable(path, version=version)
        added = pa.table(table.get_add_actions(flatten=True))
        if added.num_rows == 0:
            return 0
        rows = 0
        for count in added.column("num_records").to_pylist():
            if count is None:
                raise TableError(path, f"version {version} has a file without statistics")
            rows += int(count)
        # Asked for them, delta-rs refuses tables with features that don't matter for a count.
        if "deletionVectors" not in (table.protocol().reader_features or ()):
            return rows
        for batch in table.deletion_vectors():
            for selected in pa.record_batch(batch).column("selection_vector").to_pylist():
                rows -= selected.count(False)
    return rows


@dataclass(frozen=True)
class Size:
    """How large the newest version of a table is."""

    rows: int
    files: int
    bytes: int


def measure_table(path: str) -> Size | None:
    """The size of any table, from its log and its deletion vectors; None where there is none.

    TableError where the log has no statistics of a file.
    """
    table = _open_table(path)
    if table is None:
        return None
    with _errors_explained(path):
        added = pa.table(table.get_add_actions(flatten=True))
    sizes = added.column("size_bytes").to_pylist() if added.num_rows else []
    return Size(count_rows(path, table.version()), len(sizes), sum(sizes))


@dataclass(frozen=True)
class Group:
    """The rows of a table that have the same `values`; in `filled` of them a column has one."""

    values: tuple[str | None, ...]
    rows: int
    filled: int


def count_groups(path: str, by: Sequence[str], column: str) -> list[Group]:
    """The rows of the newest version of any table by the text in the columns `by`.

    `filled` counts those with a value in `column`. No more rows than one batch are in memory.
    TableError where the table has a feature that only Spark can read.
    """
    names = ", ".join(_quote(name) for name in by)
    counts = f"count(*) as n, count({_quote(column)}) as filled"
    found = []
    for row in _run_query(path, f"select {names}, {counts} from this group by {names}"):
        values = tuple(row[name] for name in by)
        found.append(Group(values, row["n"], row["filled"]))
    return found


def find_greatest(path: str, by: Sequence[str]) -> tuple[int | None, ...] | None:
    """The greatest values of the whole numbers in the columns `by`, the first one counts most.

    A null is less than every number. None where the newest version has no row; TableError where it
    has a feature that only Spark can read.
    """
    names = ", ".join(_quote(name) for name in by)
    order = ", ".join(f"{_quote(name)} desc nulls last" for name in by)
    rows = _run_query(path, f"select {names} from this order by {order} limit 1")
    return tuple(rows[0][name] for name in by) if rows else None


def _run_query(path: str, query: str) -> list[dict[str, Any]]:
    """The rows of a query about the newest version of the table at `path`, which it calls this.

    It must not read times: delta-rs takes Spark's INT96 as nanoseconds, which wrap around.
    """
    with _errors_explained(path):
        table = DeltaTable(path)
        unknown = {*(table.protocol().reader_features or ())} - _QUERIED
        if unknown:
            raise TableError(path, f"the table feature {min(unknown)} is not supported")
        engine = QueryBuilder().register("this", table)
        try:
            rows: list[dict[str, Any]] = pa.table(engine.execute(query).read_all()).to_pylist()
        except DeltaError:
            raise
        except Exception as error:
            # What fails while rows are read is raised as an Exception of no class of its own.
            raise TableError(path, str(error)) from error
    return rows


def _quote(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def count_bytes_between(path: str, column: str, low_us: int, high_us: int) -> int | None:
    """How large the files are that may have a `column` from `low_us` to `high_us`, both inside.

    It is known from the statistics in the log of any table. A file without them counts. None where
    the log is one that only Spark can read.
    """
    files = _list_files(path)
    if files is None:
        return None
    if not files.num_rows:
        return 0
    lows = _read_times(files, f"min.{column}")
    highs = _read_times(files, f"max.{column}")
    bytes_found = 0
    for size, first, last in zip(files.column("size_bytes").to_pylist(), lows, highs, strict=True):
        is_before = last is not None and last + _MILLISECOND < low_us
        is_after = first is not None and first - _MILLISECOND > high_us
        if not is_before and not is_after:
            bytes_found += int(size)
    return bytes_found


def count_bytes(path: str) -> int | None:
    """How large all files of any table are; None where the log is one that only Spark can read."""
    files = _list_files(path)
    if files is None:
        return None
    return sum(files.column("size_bytes").to_pylist()) if files.num_rows else 0


def _list_files(path: str) -> pa.Table | None:
    """The files of the newest version of a table, with their statistics; None as above."""
    try:
        with _errors_explained(path):
            return pa.table(DeltaTable(local_path(path)).get_add_actions(flatten=True))
    except TableError:
        return None


def _read_times(files: pa.Table, statistic: str) -> list[int | None]:
    """The times of a statistic in microseconds, for each file; None where it has none."""
    if statistic not in files.column_names:
        return [None] * files.num_rows
    times = files.column(statistic)
    if not pa.types.is_timestamp(times.type):
        return [None] * files.num_rows
    found: list[int | None] = times.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    return found


def create_table(path: str, schema: pa.Schema) -> None:
    """Creates the table at `path`, without a row, unless it exists."""
    if _open_table(path) is None:
        _create_table(path, schema)


def append_rows(path: str, schema: pa.Schema, rows: Sequence[Row], after: int) -> int:
    """Appends `rows` in one commit right after the version `after`, and returns their version.

    The table is created if `after` is -1. Busy if another commit came first.
    """
    table = _open_table(path)
    if table is None:
        table = _create_table(path, schema)
    elif table.version() != after:
        raise _superseded(path)
    _commit_append(table, path, schema, rows)
    return table.version()


def append_once(
    path: str, schema: pa.Schema, rows: Sequence[Row], application: str, number: int
) -> None:
    """Appends `rows` unless `application` has committed this number, or a higher one, before.

    The table is created if it does not exist. Busy if another commit comes first.
    """
    table = _open_table(path)
    if table is None:
        table = _create_table(path, schema)
    last = table.transaction_version(application)
    if last is None or last < number:
        _commit_append(table, path, schema, rows, Transaction(application, number))


def replace_rows(path: str, schema: pa.Schema, rows: Sequence[Row], predicate: str) -> None:
    """Replaces the rows for which `predicate` is true by `rows`, in one commit.

    Busy if another commit comes first.
    """
    table = _open_table(path)
    if table is None:
        table = _create_table(path, schema)
    with _errors_explained(path):
        write_deltalake(
            table,
            _to_arrow(rows, schema),
            mode="overwrite",
            predicate=predicate,
            schema_mode="merge",
            commit_properties=_once(),
        )


def _open_table(path: str) -> DeltaTable | None:
    """The newest version of the table at `path`; None where there is none."""
    with _errors_explained(path):
        if not DeltaTable.is_deltatable(path):
            return None
        return DeltaTable(path)


def _create_table(path: str, schema: pa.Schema) -> DeltaTable:
    """Creates the table at `path`, which must not exist."""
    Path(path).mkdir(parents=True, exist_ok=True)
    with _errors_explained(path):
        return DeltaTable.create(path, Schema.from_arrow(schema), configuration=_PROPERTIES)


def _commit_append(
    table: DeltaTable,
    path: str,
    schema: pa.Schema,
    rows: Sequence[Row],
    *transactions: Transaction,
) -> None:
    with _errors_explained(path):
        write_deltalake(
            table,
            _to_arrow(rows, schema),
            mode="append",
            # Columns that someone added stay, and are null.
            schema_mode="merge",
            commit_properties=_once(*transactions),
        )


def _once(*transactions: Transaction) -> CommitProperties:
    """A commit that fails where another one has the next version, instead of taking a later one."""
    return CommitProperties(app_transactions=list(transactions), max_commit_retries=0)


@contextmanager
def _errors_explained(path: str) -> Iterator[None]:
    """Busy for a commit that came second, TableError for a table that is not as it was left.

    OSError carries the number of the system's error.
    """
    try:
        yield
    except OSError as error:
        # delta-rs gives the number in the text alone.
        number = _SYSTEM_ERROR.search(str(error))
        if number is None or isinstance(error, FileNotFoundError):
            raise TableError(path, str(error)) from error
        raise OSError(int(number[1]), os.strerror(int(number[1])), path) from error
    except CommitFailedError as error:
        if str(error).startswith(_LOST_RACE):
            raise _superseded(path) from error
        raise TableError(path, str(error)) from error
    except (DeltaError, pa.ArrowException) as error:
        raise TableError(path, str(error)) from error


def _superseded(path: str) -> Busy:
    return Busy(f"{path}: another writer committed first; try again when it has finished")


def _to_arrow(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def _to_rows(found: pa.Table) -> list[Row]:
    """Rows as plain values."""
    for place, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):
            in_micros = found.column(place).cast(pa.timestamp("us", field.type.tz))
            found = found.set_column(place, field.name, in_micros.cast(pa.int64()))
    maps = [field.name for field in found.schema if pa.types.is_map(field.type)]
    rows: list[Row] = []
    for row in found.to_pylist():
        # Arrow gives the entries of a map as pairs.
        rows.append(row | {name: dict(row[name]) for name in maps if row[name] is not None})
    return rows
