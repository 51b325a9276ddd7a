"""Commits of the source that brought rows: when each arrived, and which files have its rows.

It follows from the log alone. A commit that only moves rows to other files, as OPTIMIZE does,
brings none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from windowing.source.commits import total
from windowing.storage.logged_commit import LoggedCommit, may_delete_files, read_commit


@dataclass(frozen=True)
class ArrivedFile:
    """A file with rows that arrived, by its path in the table and its partition's values as text.

    With `inserts_only`, those of its rows arrived that are inserts of the change feed.
    """

    path: str
    partition: Mapping[str, str | None]
    inserts_only: bool = False


@dataclass(frozen=True)
class Arrival:
    """A commit that brought rows, or may have brought some.

    `at_us` is when it was made, by the log: its in-commit timestamp, or else the clock of its
    writer; None where it has neither. `rows` is how many there are, None where that is not known.
    `high_us` is the highest event time among them to the millisecond, None where the statistics do
    not tell. `rewrites` is true for a commit that also removed rows and recorded no change feed:
    which of its rows are new is not known, and it has no `files`.
    """

    version: int
    at_us: int | None
    files: tuple[ArrivedFile, ...]
    rows: int | None
    high_us: int | None
    rewrites: bool = False


def read_arrival(version: int, text: str, event_time: str) -> Arrival | None:
    """The commit whose JSON lines are `text`; None where it brought no rows.

    `event_time` is the column of event times.
    """
    commit = read_commit(text)
    if not commit.added and not commit.feed:
        return None
    rewrites = bool(commit.removed) and not commit.feed
    figures = [file.figures(event_time) for file in commit.added]
    highs = [file.high_us for file in figures if file.high_us is not None]
    return Arrival(
        version,
        commit.at_us,
        () if rewrites else _list_files(commit),
        rows=None if commit.feed else total(file.rows for file in figures),
        high_us=max(highs) if highs and len(highs) == len(figures) else None,
        rewrites=rewrites,
    )


def list_removed(text: str) -> list[str]:
    """The paths of the files that a commit removed from the table, also by moving their rows."""
    if not may_delete_files(text):
        return []
    return [file.path for file in read_commit(text).deleted]


def _list_files(commit: LoggedCommit) -> tuple[ArrivedFile, ...]:
    """The files with the rows of a commit: those of its change feed, where it has recorded one."""
    inserts_only = bool(commit.feed)
    files = commit.feed or commit.added
    return tuple(ArrivedFile(file.path, file.partition, inserts_only) for file in files)
