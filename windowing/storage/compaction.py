"""Rewrites the files of a control table as fewer ones, in one commit. No row changes."""

import pyarrow as pa
from deltalake import DeltaTable

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
    checkpoint_log,
    errors_explained,
    find_nearest,
    list_added,
    open_delta,
    open_to_read,
)
from windowing.storage.file_rows import read_file_as
from windowing.storage.next_commit import commit_next, list_pruned
from windowing.storage.plain_log import is_plain
from windowing.storage.plain_table import select_files

_LARGE_BYTES = 1_000_000
"""From this size on, a file is not rewritten any more. A ledger has one such file in 7,000 runs."""


def compact_files(path: Location, most: int) -> bool:
    """Rewrites small files as one, in one commit, where the table has more than `most` such files.

    Returns whether it did. No row changes, and older versions stay readable. The log gets a log
    checkpoint, so opening the table costs the same however many commits it has had, and commits
    that are older than the table's own retention are deleted. On shared storage none is deleted.
    Where another commit comes first, the files stay as they are, and so do those of a table that is
    not plain.
    """
    table = open_to_read(path)
    if table is None or not is_plain(table):
        return False
    with errors_explained(path):
        small = _list_small_files(table)
        if len(small) <= most or any("%" in file.name or "/" in file.name for file in small):
            return False
        try:
            _replace_files(path, table, small)
        except Busy:
            return False
        checkpoint_log(path, table.version() + 1)
        if path.is_local:
            open_delta(path).cleanup_metadata()
    return True


def _list_small_files(table: DeltaTable) -> list[DataFile]:
    files = select_files(list_added(table), {})
    return [file for file in files if file.bytes < _LARGE_BYTES]


def _replace_files(path: Location, table: DeltaTable, files: list[DataFile]) -> None:
    schema = pa.schema(table.schema().to_arrow())
    places = find_nearest(path, [path / file.name for file in files])
    rows = pa.concat_tables([read_file_as(place, schema) for place in places])
    written = add_file(write_kept_file(path, rows), list_pruned(table))
    actions = [*map(remove_file, files), written]
    commit_next(path, table, "OPTIMIZE", [without_change(action) for action in actions])
