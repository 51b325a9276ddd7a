"""Rewrites the files of a control table as fewer ones, in one commit. No row changes."""

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from windowing.errors import Busy
from windowing.location import Location
from windowing.storage.commit_file import (
    DataFile,
    add_file,
    remove_file,
    without_change,
    write_kept_file,
)
from windowing.storage.control import (
    commit_once,
    committing,
    errors_explained,
    find_nearest,
    list_files,
    open_to_commit,
    read_file_as,
)
from windowing.storage.footers import open_parquet
from windowing.storage.kept_open import write_checkpoint
from windowing.storage.next_commit import commit_next, list_pruned
from windowing.storage.plain_log import is_plain

_LARGE_BYTES = 1_000_000
"""From this size on, a file is not rewritten any more. A ledger has one such file in 7,000 runs."""


def compact_files(path: Location, most: int) -> bool:
    """Rewrites small files as one, in one commit, where the table has more than `most` files.

    Returns whether it did. No row changes, and older versions stay readable. The log gets a log
    checkpoint, so opening the table costs the same however many commits it has had, and commits
    that are older than the table's own retention are deleted. On shared storage none is deleted.
    Where another commit comes first, the files stay as they are.
    """
    table = open_to_commit(path)
    if table is None or len(table.file_uris()) <= most:
        return False
    try:
        if not path.is_local:
            return is_plain(table) and _compact_by_file(path, table, most)
        with committing(path, table):
            if any(has_int96(file) for file in list_files(path, table)):
                _rewrite(path, table)
            else:
                table.optimize.compact(target_size=_LARGE_BYTES, commit_properties=commit_once())
            table.create_checkpoint()
    except Busy:
        return False
    return True


def has_int96(path: Location) -> bool:
    """Whether a file has times that delta-rs would rewrite as nanoseconds; Spark writes such."""
    with open_parquet(path) as file:
        columns = file.metadata.schema
        return any(columns.column(n).physical_type == "INT96" for n in range(len(columns)))


def _rewrite(path: Location, table: DeltaTable) -> None:
    """Replaces all rows by themselves, read by Arrow, in one commit."""
    schema = pa.schema(table.schema().to_arrow())
    parts = [read_file_as(file, schema) for file in list_files(path, table)]
    write_deltalake(
        table, pa.concat_tables(parts), mode="overwrite", commit_properties=commit_once()
    )


def _compact_by_file(path: Location, table: DeltaTable, most: int) -> bool:
    """The same by a file of the log: four requests, where the small files were read before."""
    with errors_explained(path):
        added = pa.table(table.get_add_actions(flatten=True)).select(["path", "size_bytes"])
        files = [DataFile(each["path"], each["size_bytes"]) for each in added.to_pylist()]
        small = [file for file in files if file.bytes < _LARGE_BYTES]
        if len(small) <= most or any("%" in file.name or "/" in file.name for file in small):
            return False
        schema = pa.schema(table.schema().to_arrow())
        places = find_nearest(path, [path / file.name for file in small])
        rows = pa.concat_tables([read_file_as(place, schema) for place in places])
        written = add_file(write_kept_file(path, rows), list_pruned(table))
        actions = [*map(remove_file, small), written]
        commit_next(path, table, "OPTIMIZE", [without_change(action) for action in actions])
        write_checkpoint(path, table.version() + 1)
    return True
