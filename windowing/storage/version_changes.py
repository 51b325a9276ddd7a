"""Which rows differ between two versions of a table, without reading those that do not. No Spark.

two versions -> what the commits between them tell; else the rows of the files that differ
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from windowing.storage.change_files import read_feeds
from windowing.storage.control import errors_explained
from windowing.storage.row_changes import RowChanges, combine_feeds, compare_rows
from windowing.storage.version_files import PlainFile, VersionFiles, read_plain


def compare_versions(
    before: VersionFiles, after: VersionFiles, identity: Sequence[str]
) -> RowChanges:
    """What leads from a version of a table to another one, also to an earlier one.

    -> the columns of `after`; one that the earlier version lacks is null there. `identity` are the
    columns that distinguish rows. TableError where a file of a version is gone.
    """
    told = find_told_changes(before, after, identity)
    return compare_files(before, after, identity) if told is None else told


def compare_files(before: VersionFiles, after: VersionFiles, identity: Sequence[str]) -> RowChanges:
    """The same by the rows of the files that differ, whatever the commits tell."""
    gone, fresh = before.list_without(after), after.list_without(before)
    with errors_explained(after.table):
        old, new = _read_rows(gone, after.schema), _read_rows(fresh, after.schema)
    return compare_rows(old, new, identity)


def find_told_changes(
    before: VersionFiles, after: VersionFiles, identity: Sequence[str]
) -> RowChanges | None:
    """The same by what the commits tell; None where they don't tell it any more."""
    first, last = sorted((before.version, after.version))
    feeds = read_feeds(after.table, first, last, after.schema)
    if feeds is None:
        return None
    none = after.schema.empty_table()
    changes = combine_feeds(feeds, identity) if feeds else RowChanges(none, none, none, none)
    return changes if before.version <= after.version else changes.reverse()


def _read_rows(files: Iterable[PlainFile], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *(read_plain(each, schema) for each in files)])
