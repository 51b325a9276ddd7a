"""Figures about any table, from its log or by a query, without Spark.

They are estimated or counted before a session is there. Times are whole microseconds since 1970.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import QueryBuilder
from deltalake.exceptions import DeltaError

from windowing.location import Location
from windowing.storage.control import (
    TableError,
    errors_explained,
    list_added,
    open_delta,
    open_to_read,
)
from windowing.storage.deletion_marks import count_marked
from windowing.storage.file_figures import FileFigures
from windowing.storage.plain_table import Bounds, read_times, select_files

_QUERIED = {"deletionVectors", "columnMapping", "timestampNtz"}
"""Features with which a query of delta-rs finds the rows of a table that Spark finds."""


def count_rows(path: Location, version: int) -> int:
    """How many rows a version of any table has, from its log and its deletion vectors.

    TableError where the log has no statistics of a file, or that version has been removed.
    """
    with errors_explained(path):
        table = open_delta(path, version)
        added = list_added(table)
        if added.num_rows == 0:
            return 0
        rows = 0
        for count in added.column("num_records").to_pylist():
            if count is None:
                raise TableError(path, f"version {version} has a file without statistics")
            rows += int(count)
        return rows - count_marked(table)


@dataclass(frozen=True)
class Size:
    """How large the newest version of a table is."""

    rows: int
    files: int
    bytes: int


def measure_table(path: Location) -> Size | None:
    """The size of any table, from its log and its deletion vectors; None where there is none.

    TableError where the log has no statistics of a file.
    """
    table = open_to_read(path)
    if table is None:
        return None
    with errors_explained(path):
        added = list_added(table)
    sizes = added.column("size_bytes").to_pylist() if added.num_rows else []
    return Size(count_rows(path, table.version()), len(sizes), sum(sizes))


def list_file_figures(path: Location, version: int, column: str) -> Mapping[str, FileFigures]:
    """By path the files of a version of any table, with the instants of `column`.

    There are none where the log is one that only Spark can read, or has lost that version.
    """
    try:
        with errors_explained(path):
            table = open_delta(path, version)
            added = list_added(table)
    except TableError:
        return {}
    if not added.num_rows:
        return {}
    rows = added.column("num_records").to_pylist()
    lows, highs = _read_instants(added, "min", column), _read_instants(added, "max", column)
    paths = [unquote(name) for name in added.column("path").to_pylist()]
    sizes = added.column("size_bytes").to_pylist()
    return dict(zip(paths, map(FileFigures, rows, lows, highs, sizes), strict=True))


def _read_instants(added: pa.Table, end: str, column: str) -> list[int | None]:
    """The ends of an instant column by file; None for times without a zone.

    A field of a struct has the same name in this table as a column with a dot.
    """
    name = f"{end}.{column}"
    is_known = "." not in column and name in added.column_names
    if not is_known or getattr(added.column(name).type, "tz", None) is None:
        return [None] * added.num_rows
    return read_times(added, name)


@dataclass(frozen=True)
class Group:
    """The rows of a table that have the same `values`; in `filled` of them a column has one."""

    values: tuple[str | None, ...]
    rows: int
    filled: int


def count_groups(path: Location, by: Sequence[str], column: str) -> list[Group]:
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


def find_greatest(path: Location, by: Sequence[str]) -> tuple[int | None, ...] | None:
    """The greatest values of the whole numbers in the columns `by`, the first one counts most.

    A null is less than every number. None where the newest version has no row; TableError where it
    has a feature that only Spark can read.
    """
    names = ", ".join(_quote(name) for name in by)
    order = ", ".join(f"{_quote(name)} desc nulls last" for name in by)
    rows = _run_query(path, f"select {names} from this order by {order} limit 1")
    return tuple(rows[0][name] for name in by) if rows else None


def _run_query(path: Location, query: str) -> list[dict[str, Any]]:
    """The rows of a query about the newest version of the table at `path`, which it calls this.

    It must not read times: delta-rs takes Spark's INT96 as nanoseconds, which wrap around.
    """
    with errors_explained(path):
        table = open_delta(path)
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


def count_bytes(path: Location, within: Bounds) -> int | None:
    """How large the files of any table are that may have a row `within`.

    It is known from the statistics in the log; a file without them counts. None where there is no
    table, or where the log is one that only Spark can read.
    """
    try:
        with errors_explained(path):
            table = open_to_read(path)
            if table is None:
                return None
            added = list_added(table)
    except TableError:
        return None
    return sum(file.bytes for file in select_files(added, within))
