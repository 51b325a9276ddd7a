"""Commits of the source that brought rows: when each arrived, and which files have its rows.

It follows from the log alone. A commit that only moves rows to other files, as OPTIMIZE does,
brings none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from windowing.source.commits import operation_of, read_figures, total
from windowing.storage.log_lines import changed_files, feed_files, parse_actions

_MILLISECOND = 1_000
"""What times of commits are counted in, and to what statistics round times down."""


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
    operation: str
    at_us: int | None
    files: tuple[ArrivedFile, ...]
    rows: int | None
    high_us: int | None
    rewrites: bool = False


def read_arrival(version: int, text: str, event_time: str) -> Arrival | None:
    """The commit whose JSON lines are `text`; None where it brought no rows.

    `event_time` is the column of event times.
    """
    actions = parse_actions(text)
    changes = feed_files(actions)
    added = changed_files(actions, "add")
    removed = changed_files(actions, "remove")
    if not added and not changes:
        return None
    rewrites = bool(removed) and not changes
    files = () if rewrites else tuple(_list_files(added, changes))
    figures = [read_figures(file, event_time) for file in added]
    highs = [file.high_us for file in figures if file.high_us is not None]
    return Arrival(
        version,
        operation_of(actions),
        _find_time(actions),
        files,
        rows=None if changes else total(file.rows for file in figures),
        high_us=max(highs) if highs and len(highs) == len(figures) else None,
        rewrites=rewrites,
    )


def list_removed(text: str) -> list[str]:
    """The paths of the files that a commit removed from the table, also by moving their rows."""
    # Most commits remove none, and need not be parsed twice.
    if '"remove"' not in text:
        return []
    actions = parse_actions(text)
    return [unquote(action["remove"]["path"]) for action in actions if "remove" in action]


def _list_files(
    added: list[dict[str, Any]], changes: list[dict[str, Any]]
) -> Iterator[ArrivedFile]:
    """The files with the rows of a commit: those of its change feed, where it has recorded one."""
    for file in changes or added:
        yield ArrivedFile(
            unquote(file["path"]), file.get("partitionValues") or {}, inserts_only=bool(changes)
        )


def _find_time(actions: list[dict[str, Any]]) -> int | None:
    for action in actions:
        info = action.get("commitInfo")
        if info is not None:
            at = info.get("inCommitTimestamp", info.get("timestamp"))
            return None if at is None else int(at) * _MILLISECOND
    return None
