"""Small Delta tables that this process reads and commits by itself, without Spark.

Ledger and watermarks have a few rows for each run. Reading or committing them through Spark costs a
job each; here it takes some milliseconds. delta-rs reads their logs, and an append is a file of
the log. They stay ordinary Delta tables for every reader.

Times are whole microseconds since 1970 on both sides, and maps are dicts.
"""

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from windowing.location import S3, Location
from windowing.storage.commit_file import (
    Action,
    add_file,
    create_commit,
    superseded,
    write_kept_file,
)
from windowing.storage.file_rows import to_micros
from windowing.storage.files import has_empty_commit, locate_commit, locate_uri
from windowing.storage.footers import open_parquet
from windowing.storage.kept_open import (
    copy_data,
    locate_file,
    note_version,
    reuse_table,
    reuse_version,
    write_checkpoint,
)
from windowing.storage.log_lines import LOG
from windowing.storage.next_commit import check_next, commit_next, list_pruned
from windowing.storage.permission import check_permission
from windowing.storage.plain_log import is_plain
from windowing.storage.s3_settings import read_s3_settings
from windowing.storage.system_errors import find_cause_to_show, find_system_error
from windowing.storage.table_properties import CHECKPOINT_INTERVAL, WITH_STATISTICS

Row = Mapping[str, Any]
_PROPERTIES = {
    # Text gets no statistics, so that no log contains a value of a row.
    WITH_STATISTICS: "run",
    # A checkpoint of the log costs more than it saves while a table has few commits.
    CHECKPOINT_INTERVAL: "50",
}
"""The properties that a control table is created with."""
_NO_URL = "Could not parse"
"""How delta-rs says that a place can't be one, by the error of a table that is not there."""
_LOST_RACE = "Failed to commit transaction"
"""How the message begins when another commit has the version that was to be made."""
_ONCE = CommitProperties(max_commit_retries=0)
"""A commit that fails where another one has the next version, instead of taking a later one."""
_KEEPS_COMMITS = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
"""A commit that deletes no older ones.

That would list every file of the log, and delta-rs would also delete a version that has expired by
its age alone, although it was the newest one until now.
"""
_READ_BY_SPARK = {"deletionVectors", "columnMapping"}
"""Features that change which rows and columns the files of a table contain."""


class TableError(Exception):
    """Raised when a table can't be read or written, because it is not as it was left.

    `path` is the table's; `reason` is the library's message, which may contain values of rows.
    """

    def __init__(self, path: Location, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason.splitlines()[0]}")


@dataclass(frozen=True)
class Contents:
    """The files of a table at `version`, each with its rows; -1 and no files without a table."""

    version: int
    files: tuple[pa.Table, ...]


def read_rows(path: Location) -> list[Row]:
    """Every row of the newest version of the table at `path`; none where there is no table."""
    return [row for file in read_contents(path).files for row in to_rows(file)]


def read_contents(path: Location) -> Contents:
    """The files of the newest version of the table at `path`, in no order.

    Rows are values of Arrow here, and `to_rows` makes plain ones of them. That takes 30 times as
    long as reading them, so whoever needs a few of many rows selects them before.
    """
    table = open_to_read(path)
    if table is None:
        return Contents(-1, ())
    check_features(path, table, _READ_BY_SPARK)
    with errors_explained(path):
        files = tuple(map(_read_file, find_nearest(path, list_files(path, table))))
    return Contents(table.version(), files)


def check_features(path: Location, table: DeltaTable, unsupported: Set[str]) -> None:
    """Raises TableError where the table has one of the features `unsupported`."""
    found = unsupported & {*(table.protocol().reader_features or ())}
    if found:
        raise TableError(path, f"the table feature {min(found)} is not supported")


def find_highest(found: Contents, column: str) -> int | None:
    """The highest value of a column of whole numbers or times; None where there is no value."""
    highest = [pc.max(file[column]).as_py() for file in found.files]
    return max((value for value in highest if value is not None), default=None)


def select_rows(found: Contents, column: str, least: int) -> list[Row]:
    """The rows whose `column`, of whole numbers or times, is at least `least`, as plain values."""
    rows: list[Row] = []
    for file in found.files:
        rows += to_rows(file.filter(pc.greater_equal(file[column], least)))
    return rows


def read_version(path: Location) -> int:
    """The newest version of the table at `path`; -1 where there is none."""
    table = open_to_read(path)
    return -1 if table is None else table.version()


def read_committed(path: Location, application: str) -> int | None:
    """The highest number that `application` has committed to any table under; None for none."""
    table = open_to_read(path)
    return None if table is None else table.transaction_version(application)


@dataclass(frozen=True)
class Metadata:
    """The id of a table, which one created later at the same path has not, and its properties."""

    table_id: str
    settings: Mapping[str, str]


def read_metadata(path: Location, version: int) -> Metadata:
    """The metadata of a version of any table; TableError where it can't be read."""
    with errors_explained(path):
        found = open_version(path, version).metadata()
    return Metadata(str(found.id), dict(found.configuration))


def create_table(path: Location, schema: pa.Schema) -> None:
    """Creates the table at `path`, without a row, unless it exists."""
    if open_to_read(path) is None:
        _create_table(path, schema)


def append_rows(path: Location, schema: pa.Schema, rows: Sequence[Row], after: int) -> int:
    """Appends `rows` in one commit right after the version `after`, and returns their version.

    The table is created if `after` is -1. Busy if another commit came first.
    """
    table = open_to_read(path)
    if table is None and after == -1:
        table = _create_table(path, schema)
    elif table is None or table.version() != after:
        raise superseded(path)
    return _commit_append(table, path, schema, rows)


def replace_rows(path: Location, schema: pa.Schema, rows: Sequence[Row], predicate: str) -> None:
    """Replaces the rows for which `predicate` is true by `rows`, in one commit.

    Busy if another commit comes first.
    """
    create_table(path, schema)
    with errors_explained(path):
        table = open_delta(path)
    with committing(path, table):
        write_deltalake(
            table,
            _to_arrow(rows, schema),
            mode="overwrite",
            predicate=predicate,
            schema_mode="merge",
            commit_properties=_ONCE,
            post_commithook_properties=_KEEPS_COMMITS,
        )


def open_to_read(path: Location) -> DeltaTable | None:
    """`open_table` for callers whose commit, if they make one, is a file of the log."""
    with errors_explained(path):
        return reuse_table(path, open_table)


def open_table(path: Location) -> DeltaTable | None:
    """The newest version of the table at `path`; None where there is none."""
    # DeltaTable.is_deltatable lists every file of the log.
    if path.is_local and not (path / LOG).local.is_dir():
        return None
    with errors_explained(path):
        try:
            opened = open_delta(path)
        except TableNotFoundError as error:
            if _NO_URL in str(error):
                raise
            return None
    if path.is_local and has_empty_commit(path, opened.version()):
        raise TableError(path, "a commit is empty")
    return opened


def open_delta(path: Location, version: int | None = None) -> DeltaTable:
    """A version of the table at `path`, by default the newest. It raises what delta-rs raises."""
    return DeltaTable(path.text, version=version, storage_options=_options_of(path))


def open_version(path: Location, version: int) -> DeltaTable:
    """A version of the table at `path`, of which the log alone is read. It raises as delta-rs."""
    return reuse_version(path, version) or open_delta(path, version)


def _options_of(path: Location) -> dict[str, str] | None:
    """What delta-rs has to know of the storage that `path` is on."""
    is_on_s3 = path.text.startswith(S3)
    return read_s3_settings(os.environ).for_rust() if is_on_s3 else None


def create_delta(path: Location, schema: Schema, properties: Mapping[str, str]) -> DeltaTable:
    """Creates the table at `path`, which must not exist. It raises what delta-rs raises.

    Of the table that it returns the log alone may be read.
    """
    check_next(path, 0)
    # On shared storage delta-rs would look 13 times whether there is a table.
    made, content = _create_elsewhere(schema, properties)
    create_commit(path, 0, content)
    note_version(path, 0)
    return made


def compose_creation(schema: Schema, properties: Mapping[str, str]) -> bytes:
    """The lines of the commit that would create such a table."""
    _, content = _create_elsewhere(schema, properties)
    # The last line of delta-rs has no end.
    return content.rstrip() + b"\n"


def _create_elsewhere(schema: Schema, properties: Mapping[str, str]) -> tuple[DeltaTable, bytes]:
    with TemporaryDirectory(prefix="tidemark-table-") as home:
        made = DeltaTable.create(home, schema, configuration=dict(properties))
        return made, locate_commit(Location(home), 0).local.read_bytes()


def _create_table(path: Location, schema: pa.Schema) -> DeltaTable:
    """Creates the table at `path`, which must not exist."""
    with errors_explained(path):
        return create_delta(path, Schema.from_arrow(schema), _PROPERTIES)


def _commit_append(
    table: DeltaTable,
    path: Location,
    schema: pa.Schema,
    rows: Sequence[Row],
) -> int:
    stored = {field.name: field.type for field in table.schema().fields}
    appended = Schema.from_arrow(schema).fields
    with errors_explained(path):
        # Somebody may have written the table anew; delta-rs casts to its types, or refuses.
        if is_plain(table) and all(stored.get(each.name) == each.type for each in appended):
            file = write_kept_file(path, _to_arrow(rows, schema))
            commit_actions(path, table, "WRITE", [add_file(file, list_pruned(table))])
            return table.version() + 1
        table = open_delta(path, table.version())
    with committing(path, table):
        write_deltalake(
            table,
            _to_arrow(rows, schema),
            mode="append",
            # Columns that someone added stay, and are null.
            schema_mode="merge",
            commit_properties=_ONCE,
            post_commithook_properties=_KEEPS_COMMITS,
        )
    return table.version()


def commit_actions(
    path: Location, table: DeltaTable, operation: str, actions: Sequence[Action]
) -> None:
    """Makes the next version of a table, of which the one that is open here does not learn.

    The log gets a log checkpoint as often as its properties say.
    """
    commit_next(path, table, operation, actions)
    number = table.version() + 1
    interval = table.metadata().configuration.get(CHECKPOINT_INTERVAL, "100")
    if number % int(interval) == 0:
        checkpoint_log(path, number)


def checkpoint_log(path: Location, version: int) -> None:
    """Writes a log checkpoint of the newest version of a table."""
    if not write_checkpoint(path, version):
        check_permission()
        open_delta(path).create_checkpoint()


@contextmanager
def committing(path: Location, table: DeltaTable) -> Iterator[None]:
    """Inside, one commit is made through `table`; its version is one that this command has made.

    Raises what `errors_explained` raises.
    """
    check_next(path, table.version() + 1)
    with errors_explained(path):
        yield
    note_version(path, table.version())


@contextmanager
def errors_explained(path: Location) -> Iterator[None]:
    """Busy for a commit that came second, TableError for a table that is not as it was left.

    OSError carries the number of the system's error.
    """
    try:
        yield
    except CommitFailedError as error:
        if str(error).startswith(_LOST_RACE):
            raise superseded(path) from error
        raise _explain(path, error) from find_cause_to_show(path, error)
    except (OSError, DeltaError, pa.ArrowException) as error:
        raise _explain(path, error) from find_cause_to_show(path, error)
    except BaseException as error:
        # A failed assertion of delta-rs is no Exception, and its class has no name to import.
        if type(error).__name__ == "PanicException":
            raise TableError(path, str(error)) from error
        raise


def _explain(path: Location, error: Exception) -> TableError | OSError:
    return find_system_error(path, error) or TableError(path, str(error))


def _to_arrow(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def _read_file(path: Location) -> pa.Table:
    """The rows of one file, with times as whole microseconds."""
    with open_parquet(path) as file:
        return to_micros(file.read(use_threads=False))


def list_added(table: DeltaTable) -> pa.Table:
    """What the log says of each file of a version, its statistics among it."""
    return pa.table(table.get_add_actions(flatten=True))


def list_files(path: Location, table: DeltaTable) -> list[Location]:
    """The data files of a version. Its URIs are percent-encoded, where a space is `%20`."""
    return [locate_uri(locate_file(path, unquote(uri))) for uri in table.file_uris()]


def find_nearest(path: Location, files: Sequence[Location]) -> Sequence[Location]:
    """The same files, or on shared storage their copies on this machine."""
    if path.is_local or any(file.parent != path for file in files):
        return files
    copied = copy_data(path, [file.name for file in files])
    return files if copied is None else [Location(str(file)) for file in copied]


def to_rows(found: pa.Table) -> list[Row]:
    """Rows of `read_contents` as plain values."""
    maps = [field.name for field in found.schema if pa.types.is_map(field.type)]
    rows: list[Row] = []
    for row in found.to_pylist():
        # Arrow gives the entries of a map as pairs.
        rows.append(row | {name: dict(row[name]) for name in maps if row[name] is not None})
    return rows
