"""The values that a column has in the rows that differ between two versions of a table. No Spark.

no version before -> all values; files only came or only went -> their values; else what the
commits tell; else the rows of the files that differ
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from windowing.storage import row_changes
from windowing.storage.footers import open_parquet
from windowing.storage.version_changes import compare_files, find_told_changes
from windowing.storage.version_files import PlainFile, VersionFiles


def find_changed_values(
    before: VersionFiles | None, after: VersionFiles, identity: Sequence[str], column: str
) -> pa.ChunkedArray | None:
    """The values of `column`, a time, in all rows that differ: what they were and what they are.

    `identity` are the columns that distinguish rows. Nulls are among the values. Where the rows are
    too many to be compared, the values are those of all rows in files that differ. None where no
    row differs. TableError or FileNotFoundError where a file of `before` is gone.
    """
    if before is None:
        return _or_none(_read_values(after.files, column)) if after.rows else None
    gone, fresh = before.list_without(after), after.list_without(before)
    differing = [*gone, *fresh]
    # Where files only came or only went, no row of one is in another. Nor is it where columns came,
    # went or have another type, because every row is another one then.
    if not gone or not fresh or before.schema != after.schema:
        return _or_none(_read_values(differing, column))
    changes = None
    if before.table == after.table:
        changes = find_told_changes(before, after, identity)
    if changes is None:
        if sum(file.rows for file in differing) > row_changes.MOST_ROWS:
            return _or_none(_read_values(differing, column))
        changes = compare_files(before, after, identity)
    sides = (changes.inserted, changes.deleted, changes.before, changes.after)
    return _or_none(pa.concat_tables([side.select([column]) for side in sides])[column])


def _or_none(values: pa.ChunkedArray) -> pa.ChunkedArray | None:
    return values if len(values) else None


def _read_values(files: Iterable[PlainFile], column: str) -> pa.ChunkedArray:
    """The values of a column in the rows of these files that are still there."""
    parts = []
    for file in files:
        with open_parquet(file.original) as opened:
            values = opened.read([column])[column].cast(pa.timestamp("us", "UTC"))
        parts += (values if file.kept is None else values.filter(pa.array(file.kept))).chunks
    return pa.chunked_array(parts, pa.timestamp("us", "UTC"))
