"""Plain tables: those whose files this process lists, appends to and merges into without Spark.

A table is plain where its files contain just its rows and columns, and where it asks nothing of a
writer but statistics and a change feed. Spark needs a job to choose the files of a table, another
one to find an earlier transaction, and several for a MERGE. delta-rs needs some milliseconds for
each, so it does this for few rows, and commits the files in which Spark has written many. For
every other table Spark does.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import (
    CommitProperties,
    DeltaTable,
    Schema,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.transaction import AddAction

from windowing import file_statistics
from windowing.control import (
    KEEPS_COMMITS,
    TableError,
    commit_once,
    errors_explained,
    has_int96,
    open_table,
    open_to_read,
)
from windowing.files import local_path
from windowing.kept_open import Opener

MOST_FILES = 1_000
"""How many files are read by their names. For more, Spark chooses those it needs in a job."""

_FEATURES = {"appendOnly", "changeDataFeed", "invariants", "timestampNtz"}
"""Table features that Delta lists for tables to which it writes as to one without features."""
PROPERTIES = {
    "delta.checkpointInterval",
    "delta.dataSkippingStatsColumns",
    "delta.deletedFileRetentionDuration",
    "delta.enableChangeDataFeed",
    "delta.enableDeletionVectors",
    "delta.feature.timestampNtz",
    "delta.logRetentionDuration",
}
"""Properties that delta-rs follows, or that don't matter to a writer."""
_TIMES_KEPT = ("delta.deletedFileRetentionDuration", "delta.logRetentionDuration")
_MORE_THAN_A_TYPE = re.compile(r'"nullable":false|"metadata":\{(?!\}|"comment":"[^"]*"\})')
_ANY_TIME = "interval 30 days"
_SIMPLE_TIME = re.compile(r"interval \d+ (hour|day|week)s?")
"""How a time is written that delta-rs reads as Spark does. It takes others for its own default."""
_MILLISECOND = 1_000
"""Delta cuts the times of its statistics to milliseconds: they are up to one too early."""
_INSTANT = 'Timestamp(Microsecond, Some("UTC"))'
_PRUNED = "delta.dataSkippingStatsColumns"
_COMPRESSION = WriterProperties(compression="ZSTD", compression_level=3)

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

    path: str
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


@dataclass(frozen=True)
class File:
    """A file of a table, and how large it is."""

    path: str
    bytes: int


@dataclass(frozen=True)
class Clauses:
    """How changed rows find the rows of a table, and what is done then.

    Those with equal `identity` are the same row. The column `op` of a changed row says whether it
    is one to `insert` or to `delete`; every other one is an update. An inserted row is never taken
    for a stored one. `extent` are the least and the greatest `time` of the stored rows that may
    match; None where there are no such bounds.
    """

    identity: Sequence[str]
    op: str
    insert: str
    delete: str
    time: str
    extent: tuple[int, int] | None


def find_plain(path: str) -> PlainTable | None:
    """The newest version of the table at `path`; None where it isn't plain or can't be opened.

    A path is a local one here. A name of Spark's catalog is none.
    """
    return _find_plain(path, open_table)


def find_plain_to_read(path: str) -> PlainTable | None:
    """`find_plain` for callers that write nothing through what they get."""
    return _find_plain(path, open_to_read)


def _find_plain(path: str, opens: Opener) -> PlainTable | None:
    if "/" not in path:
        return None
    try:
        table = opens(path)
        if table is None or not _is_plain(table):
            return None
    except (TableError, OSError):
        # Spark says what is wrong with it.
        return None
    return PlainTable(path, table)


def _is_plain(table: DeltaTable) -> bool:
    protocol = table.protocol()
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    metadata = table.metadata()
    settings = metadata.configuration
    return (
        features <= _FEATURES
        and settings.keys() <= PROPERTIES
        and settings.get("delta.enableDeletionVectors", "false") == "false"
        and all(_SIMPLE_TIME.fullmatch(settings.get(name, _ANY_TIME)) for name in _TIMES_KEPT)
        and not metadata.partition_columns
        and is_simple_schema(str(table.schema().to_json()))
    )


def is_simple_schema(schema_json: str) -> bool:
    """Whether columns, as a log has them, are no more than names and types.

    Those that are generated, collated, of a type that was widened, or never null are more.
    """
    return not _MORE_THAN_A_TYPE.search(schema_json)


def list_files(plain: PlainTable, bounds: Bounds) -> list[File] | None:
    """The files that may have a row within all `bounds`, by the statistics in the log.

    None where the log names a file that lies elsewhere, as in a clone.
    """
    with errors_explained(plain.path):
        added = pa.table(plain.table.get_add_actions(flatten=True))
    if not added.num_rows:
        return []
    may_match = [True] * added.num_rows
    for column, (low, high) in bounds.items():
        lows = read_times(added, f"min.{column}")
        highs = read_times(added, f"max.{column}")
        for place, (first, last) in enumerate(zip(lows, highs, strict=True)):
            may_match[place] &= may_overlap(first, last, low, high)
    directory = local_path(plain.path)
    found = []
    names, sizes = added.column("path").to_pylist(), added.column("size_bytes").to_pylist()
    for name, size, matches in zip(names, sizes, may_match, strict=True):
        if "%" in name or "/" in name:
            return None
        if matches:
            found.append(File(str(directory / name), int(size)))
    return found


def may_overlap(first: int | None, last: int | None, low: int | None, high: int | None) -> bool:
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


def create(path: str, schema_json: str, properties: Mapping[str, str]) -> PlainTable:
    """Creates the table at `path`, which must not exist, with columns as a log has them."""
    Path(path).mkdir(parents=True, exist_ok=True)
    with errors_explained(path):
        schema = Schema.from_json(schema_json)
        table = DeltaTable.create(path, schema, configuration=dict(properties))
    return PlainTable(path, table)


def has_committed(plain: PlainTable, application: str, number: int) -> bool:
    """Whether `application` has committed this number, or a higher one."""
    last = plain.table.transaction_version(application)
    return last is not None and last >= number


def append(plain: PlainTable, rows: pa.Table, transaction: tuple[str, int] | None = None) -> int:
    """Appends `rows`, which have the columns of the table, in one commit after its version.

    The commit carries the `transaction`. Returns its version. Busy if another commit comes first.
    """
    with errors_explained(plain.path):
        write_deltalake(
            plain.table,
            _fit_types(rows, plain.schema),
            mode="append",
            commit_properties=_commit_with(transaction),
            post_commithook_properties=KEEPS_COMMITS,
            writer_properties=_COMPRESSION,
        )
    return plain.table.version()


def add_files(
    plain: PlainTable, files: Sequence[Path], transaction: tuple[str, int] | None = None
) -> int:
    """`append` of rows that are in `files`, which lie in the directory of the table.

    Files without rows are deleted. Their statistics are those that Delta would write.
    """
    pruned = _find_pruned(plain)
    # The table that is open here does not learn of the commit.
    number = plain.version + 1
    with errors_explained(plain.path):
        added = [_describe_file(file, pruned) for file in files]
        plain.table.create_write_transaction(
            [action for action in added if action is not None],
            mode="append",
            schema=plain.table.schema(),
            commit_properties=_commit_with(transaction),
            post_commithook_properties=KEEPS_COMMITS,
        )
    return number


def _commit_with(transaction: tuple[str, int] | None) -> CommitProperties:
    return commit_once() if transaction is None else commit_once(Transaction(*transaction))


def _describe_file(file: Path, pruned: Mapping[str, pa.DataType]) -> AddAction | None:
    """What the log says of a file; None where it has no rows, and is deleted."""
    footer = pq.read_metadata(file)
    if not footer.num_rows:
        file.unlink()
        return None
    facts = file.stat()
    return AddAction(
        path=file.name,
        size=facts.st_size,
        partition_values={},
        modification_time=int(facts.st_mtime * 1_000),
        data_change=True,
        stats=json.dumps(file_statistics.read_statistics(footer, pruned)),
    )


def _find_pruned(plain: PlainTable) -> dict[str, pa.DataType]:
    """The columns that have statistics in the log: times and whole numbers, of those allowed."""
    schema = plain.schema
    allowed = plain.table.metadata().configuration.get(_PRUNED)
    names = schema.names if allowed is None else allowed.split(",")
    fields = [field for field in schema if field.name in names]
    return {field.name: field.type for field in fields if file_statistics.are_kept(field.type)}


def merge(plain: PlainTable, changed: pa.Table, clauses: Clauses) -> int:
    """Applies `changed`, the columns of the table and an operation, in one commit.

    The files that contain a changed row are rewritten. Returns the version of the commit. Busy if
    another commit comes first.
    """
    values = {f"{_quote(name)}": f"s.{_quote(name)}" for name in plain.schema.names}
    op = f"s.{_quote(clauses.op)}"
    with_op = plain.schema.append(pa.field(clauses.op, pa.string()))
    with errors_explained(plain.path):
        (
            plain.table.merge(
                _fit_types(changed, with_op),
                " and ".join(_match_conditions(clauses)),
                source_alias="s",
                target_alias="t",
                writer_properties=_COMPRESSION,
                commit_properties=commit_once(),
                post_commithook_properties=KEEPS_COMMITS,
            )
            .when_matched_delete(f"{op} = '{clauses.delete}'")
            .when_matched_update(values)
            .when_not_matched_insert(values, f"{op} = '{clauses.insert}'")
            .execute()
        )
    return plain.table.version()


def _match_conditions(clauses: Clauses) -> list[str]:
    conditions = []
    if clauses.extent is not None:
        # A number, because text could not express every year.
        low, high = (f"arrow_cast({us}, '{_INSTANT}')" for us in clauses.extent)
        conditions.append(f"t.{_quote(clauses.time)} between {low} and {high}")
    conditions.append(f"s.{_quote(clauses.op)} <> '{clauses.insert}'")
    conditions += [f"t.{_quote(name)} = s.{_quote(name)}" for name in clauses.identity]
    return conditions


def can_merge(plain: PlainTable, clauses: Clauses, most_bytes: int) -> bool:
    """Whether `merge` finds the rows that Spark finds, and rewrites at most so many bytes exactly.

    Spark and delta-rs compare text, whole numbers and times alike. Spark can write times as INT96,
    which are nanoseconds for delta-rs and end in the year 2262.
    """
    types = plain.schema
    if not all(_is_compared_alike(types.field(name).type) for name in clauses.identity):
        return False
    bounds = {} if clauses.extent is None else {clauses.time: clauses.extent}
    files = list_files(plain, bounds)
    if files is None or sum(file.bytes for file in files) > most_bytes:
        return False
    with errors_explained(plain.path):
        return not any(has_int96(Path(file.path)) for file in files)


def _is_compared_alike(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in _COMPARED_ALIKE)


def _fit_types(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of `schema` in its order and with its types."""
    columns = [rows[field.name].cast(field.type) for field in schema]
    return pa.table(columns, schema=schema)


def _quote(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
