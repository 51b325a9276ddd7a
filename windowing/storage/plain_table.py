"""Plain tables: those whose files this process lists, appends to and merges into without Spark.

A table is plain where its files contain just its rows and columns, and where it asks nothing of a
writer but statistics and a change feed. Spark needs a job to choose the files of a table, another
one to find an earlier transaction, and several for a MERGE. Here each takes some milliseconds:
delta-rs reads the log, and a commit is a file of it. So this is done for few rows, and for the
files in which Spark has written many. For every other table Spark does it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable, Schema

from windowing.columns import OP, START
from windowing.errors import TidemarkError
from windowing.location import Location
from windowing.storage.arrow_merge import (
    Clauses,
    Matches,
    count_replaced,
    find_matches,
    replace_rows,
    tell_feed,
)
from windowing.storage.commit_file import (
    CHANGES,
    DataFile,
    add_file,
    note_transaction,
    remove_file,
    tell_changes,
    write_data_file,
)
from windowing.storage.control import (
    TableError,
    commit_actions,
    create_delta,
    errors_explained,
    list_added,
    open_to_read,
)
from windowing.storage.file_rows import read_file_as
from windowing.storage.footers import ParquetFile, read_footer
from windowing.storage.next_commit import list_pruned
from windowing.storage.plain_log import is_plain
from windowing.storage.table_properties import CHANGE_FEED, is_true

MOST_FILES = 1_000
"""How many files are read by their names. For more, Spark chooses those it needs in a job."""

_MILLISECOND = 1_000
"""Delta cuts the times of its statistics to milliseconds: they are up to one too early."""

_COMPARED_ALIKE = (
    pa.types.is_string,
    pa.types.is_integer,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_boolean,
    pa.types.is_decimal,
)
Bounds = Mapping[str, tuple[int | None, int | None]]
"""The least and the greatest time of columns, both inside, in microseconds; None for no bound."""


@dataclass(frozen=True)
class PlainTable:
    """The newest version of a plain table."""

    path: Location
    table: DeltaTable

    @property
    def version(self) -> int:
        """Its number."""
        return self.table.version()

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table, as Arrow has them."""
        return pa.schema(self.table.schema().to_arrow())

    @property
    def schema_json(self) -> str:
        """The columns of the table, as its log has them."""
        return str(self.table.schema().to_json())


def find_plain(path: Location) -> PlainTable | None:
    """The newest version of the table at `path`; None where it isn't plain or can't be opened.

    A path is a local one here. A name of Spark's catalog is none.
    """
    if path.is_in_catalog:
        return None
    try:
        return open_plain(path)
    except (TableError, OSError):
        # Spark says what is wrong with it.
        return None


def open_plain(path: Location) -> PlainTable:
    """The newest version of the table at `path`, which has to be plain; else TableError.

    OSError where the storage does not answer, which is no damage.
    """
    table = open_to_read(path)
    if table is None or not is_plain(table):
        raise TableError(path, "it was changed, or has lost files")
    return PlainTable(path, table)


def list_files(plain: PlainTable, bounds: Bounds) -> list[DataFile] | None:
    """The files in the table's directory that may have a row within all `bounds`.

    That is known by the statistics in the log. None where the log names a file that lies
    elsewhere, as in a clone.
    """
    with errors_explained(plain.path):
        added = list_added(plain.table)
    names = added.column("path").to_pylist() if added.num_rows else []
    if any("%" in name or "/" in name for name in names):
        return None
    return select_files(added, bounds)


def select_files(added: pa.Table, bounds: Bounds) -> list[DataFile]:
    """Those of the files in a log that may have a row within all `bounds`, by their statistics.

    `added` is what delta-rs tells of them. Their names are the paths in the log.
    """
    if not added.num_rows:
        return []
    may_match = [True] * added.num_rows
    for column, (low, high) in bounds.items():
        lows = read_times(added, f"min.{column}")
        highs = read_times(added, f"max.{column}")
        for place, (first, last) in enumerate(zip(lows, highs, strict=True)):
            may_match[place] &= _may_overlap(first, last, low, high)
    files = map(DataFile, added.column("path").to_pylist(), added.column("size_bytes").to_pylist())
    return [file for file, matches in zip(files, may_match, strict=True) if matches]


def _may_overlap(first: int | None, last: int | None, low: int | None, high: int | None) -> bool:
    """Whether a file with these least and greatest times may have one from `low` to `high`.

    None stands for a time that is not known, or for no bound.
    """
    is_before = low is not None and last is not None and last + _MILLISECOND < low
    is_after = high is not None and first is not None and first > high
    return not is_before and not is_after


def read_times(added: pa.Table, statistic: str) -> list[int | None]:
    """The times of a statistic in microseconds, for each file; None where it has none."""
    if statistic not in added.column_names:
        return [None] * added.num_rows
    times = added.column(statistic)
    if not pa.types.is_timestamp(times.type):
        return [None] * added.num_rows
    found: list[int | None] = times.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    return found


def create(path: Location, schema_json: str, properties: Mapping[str, str]) -> PlainTable:
    """Creates the table at `path`, which must not exist, with columns as a log has them."""
    with errors_explained(path):
        table = create_delta(path, Schema.from_json(schema_json), properties)
    return PlainTable(path, table)


def has_committed(plain: PlainTable, application: str, number: int) -> bool:
    """Whether `application` has committed this number, or a higher one."""
    last = plain.table.transaction_version(application)
    return last is not None and last >= number


def append(plain: PlainTable, rows: pa.Table, transaction: tuple[str, int] | None = None) -> None:
    """Appends `rows`, which have the columns of the table, in one commit after its version.

    The commit carries the `transaction`. Busy if another commit comes first.
    """
    schema = plain.schema
    fitted = rows.select(schema.names).cast(schema)
    with errors_explained(plain.path):
        _commit_files(plain, [write_data_file(plain.path, fitted)], transaction)


def add_files(
    plain: PlainTable, files: Sequence[Location], transaction: tuple[str, int] | None
) -> None:
    """`append` of rows that are in `files`, which lie in the directory of the table.

    Files without rows are deleted. Their statistics are those that Delta would write.
    """
    filled = []
    for file in map(read_footer, files):
        if file.rows:
            filled.append(file)
        else:
            file.path.local.unlink()
    with errors_explained(plain.path):
        _commit_files(plain, filled, transaction)


def _commit_files(
    plain: PlainTable, files: Sequence[ParquetFile], transaction: tuple[str, int] | None
) -> None:
    noted = [] if transaction is None else [note_transaction(*transaction)]
    pruned = list_pruned(plain.table)
    added = [add_file(file, pruned) for file in files]
    commit_actions(plain.path, plain.table, "WRITE", [*noted, *added])


def merge(plain: PlainTable, changed: pa.Table, clauses: Clauses) -> None:
    """Applies `changed`, the columns of the table and an operation, in one commit.

    The files that contain a changed row are written anew, as one file. Busy if another commit comes
    first. Raises TidemarkError, and nothing is written, where a row to change is not stored, or is
    stored twice.
    """
    schema = plain.schema
    with_operation = schema.append(pa.field(OP, pa.string()))
    fitted = changed.select(with_operation.names).cast(with_operation)
    with errors_explained(plain.path):
        touched = _read_touched(plain, fitted, clauses)
        stored = pa.concat_tables([schema.empty_table(), *touched.values()])
        matches = find_matches(stored, fitted, clauses)
        _check_matches(plain, fitted, matches)
        written = replace_rows(stored, fitted, matches)
        actions = [remove_file(file) for file in touched]
        home = plain.path
        if written.num_rows:
            actions.append(add_file(write_data_file(home, written), list_pruned(plain.table)))
        if is_true(plain.table.metadata().configuration.get(CHANGE_FEED)):
            feed = tell_feed(stored, fitted, matches)
            actions.append(tell_changes(write_data_file(home / CHANGES, feed)))
        commit_actions(home, plain.table, "MERGE", actions)


def _read_touched(
    plain: PlainTable, changed: pa.Table, clauses: Clauses
) -> dict[DataFile, pa.Table]:
    """The files that contain a row to update or delete, with their rows."""
    found = {}
    for file in list_files(plain, _bounds_of(clauses)) or []:
        rows = read_file_as(plain.path / file.name, plain.schema)
        if len(find_matches(rows, changed, clauses).stored):
            found[file] = rows
    return found


def _check_matches(plain: PlainTable, changed: pa.Table, matches: Matches) -> None:
    """Raises TidemarkError unless every row to change is stored, and is stored once."""
    due = count_replaced(changed)
    if not due == len(matches.stored) == len(matches.stored.unique()):
        raise TidemarkError(
            f"internal error: {plain.path}: {due} stored rows were to change, and "
            f"{len(matches.stored)} were found; nothing was written"
        )


def can_merge(plain: PlainTable, clauses: Clauses, most_bytes: int) -> bool:
    """Whether `merge` finds the rows that Spark finds, and reads at most so many bytes.

    Spark and Arrow compare text, whole numbers and times alike.
    """
    types = plain.schema
    if not all(_is_compared_alike(types.field(name).type) for name in clauses.identity):
        return False
    files = list_files(plain, _bounds_of(clauses))
    return files is not None and sum(file.bytes for file in files) <= most_bytes


def _bounds_of(clauses: Clauses) -> Bounds:
    return {} if clauses.extent is None else {START: clauses.extent}


def _is_compared_alike(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in _COMPARED_ALIKE)
