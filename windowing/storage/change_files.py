"""What the commits of a table have changed, by the files of its change feed. No Spark.

commits since a version -> their files of the change feed; where there are none, what they added
and removed -> a feed for each commit
"""

from collections.abc import Iterator

import pyarrow as pa

from windowing.location import Location
from windowing.storage import row_changes
from windowing.storage.arrow_merge import CHANGE, tell_change
from windowing.storage.file_rows import fit_columns
from windowing.storage.footers import open_parquet
from windowing.storage.kept_open import read_commit_text
from windowing.storage.logged_commit import LoggedCommit, read_commit


def read_feeds(path: Location, since: int, until: int, schema: pa.Schema) -> list[pa.Table] | None:
    """What each commit after version `since` up to `until` has changed, in order.

    -> the columns of `schema`, and what has become of each row. None where that can't be told any
    more: a commit or a file was deleted, or rows of a file are marked and no feed tells which. And
    where it is too much to be told at once.
    """
    feeds: list[pa.Table] = []
    left = row_changes.MOST_ROWS
    for version in range(since + 1, until + 1):
        text = read_commit_text(path, version)
        if text is None:
            return None
        try:
            parts = [*_read_changes(path, read_commit(text), schema, left)]
        except (FileNotFoundError, pa.ArrowInvalid, _Untold):
            return None
        if parts:
            feeds.append(pa.concat_tables(parts))
            left -= feeds[-1].num_rows
    return feeds


class _Untold(Exception):
    """A commit does not tell which rows it has changed, or tells of too many."""


def _read_changes(
    path: Location, commit: LoggedCommit, schema: pa.Schema, left: int
) -> Iterator[pa.Table]:
    """What a commit has changed, in at most `left` rows."""
    if commit.feed:
        with_change = schema.append(pa.field(CHANGE, pa.string()))
        for file in commit.feed:
            rows = _read_few(path / file.path, with_change, left)
            left -= rows.num_rows
            yield rows
        return
    for files, change in ((commit.removed, "delete"), (commit.added, "insert")):
        for file in files:
            if file.marked:
                raise _Untold
            rows = _read_few(path / file.path, schema, left)
            left -= rows.num_rows
            yield tell_change(rows, change)


def _read_few(file: Location, schema: pa.Schema, left: int) -> pa.Table:
    with open_parquet(file) as opened:
        if opened.metadata.num_rows > left:
            raise _Untold
        return fit_columns(opened.read(), schema)
