"""A commit of a Delta log as a value: what made it, when, and which files it names. No Spark."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from windowing.grid.zone import micros
from windowing.storage.file_figures import FileFigures
from windowing.storage.log_lines import Actions, find_time, parse_actions
from windowing.storage.table_properties import CHANGE_FEED, is_true


@dataclass(frozen=True)
class LoggedFile:
    """A file that a commit names, by its path in the table and its partition's values as text.

    `is_moved`: the commit has changed none of its rows, as OPTIMIZE does. `marked` of its rows are
    deleted, by a deletion vector. `stats` are its statistics, as JSON.
    """

    path: str
    partition: Mapping[str, str | None]
    bytes: int
    is_moved: bool
    marked: int
    stats: str | None

    def figures(self, event_time: str) -> FileFigures:
        """What the statistics say; the times are those of the column `event_time`."""
        found = json.loads(self.stats) if self.stats else {}
        ends = (found.get(end, {}) for end in ("minValues", "maxValues"))
        low, high = (_read_time(end, event_time) for end in ends)
        return FileFigures(found.get("numRecords"), low, high, self.bytes)


@dataclass(frozen=True)
class TableSettings:
    """What a commit makes of the table: its columns as JSON, and whether changes are recorded."""

    columns: str
    has_feed: bool


@dataclass(frozen=True)
class LoggedCommit:
    """What a commit has done: `operation` names it, such as DELETE.

    `at_us` is when it was made, None where the log does not tell. It has `written` and `deleted`
    files, and `feed` are those of its change feed. `settings` is None where it sets none.
    """

    operation: str
    at_us: int | None
    written: tuple[LoggedFile, ...]
    deleted: tuple[LoggedFile, ...]
    feed: tuple[LoggedFile, ...]
    settings: TableSettings | None

    @property
    def added(self) -> tuple[LoggedFile, ...]:
        """The written files whose rows are new in the table."""
        return _without_moved(self.written)

    @property
    def removed(self) -> tuple[LoggedFile, ...]:
        """The deleted files whose rows are in the table no more."""
        return _without_moved(self.deleted)


def read_commit(text: str) -> LoggedCommit:
    """The commit whose JSON lines are `text`."""
    actions = parse_actions(text)
    infos = _list_all(actions, "commitInfo")
    operation = infos[0].get("operation", "unknown") if infos else "unknown"
    return LoggedCommit(
        str(operation),
        find_time(actions),
        written=_read_files(actions, "add"),
        deleted=_read_files(actions, "remove"),
        feed=_read_files(actions, "cdc"),
        settings=_read_settings(actions),
    )


def may_delete_files(text: str) -> bool:
    """Whether the commit may have deleted files. Most have not, and need not be parsed."""
    return '"remove"' in text


def _list_all(actions: Actions, name: str) -> list[Mapping[str, Any]]:
    return [action[name] for action in actions if name in action]


def _read_files(actions: Actions, name: str) -> tuple[LoggedFile, ...]:
    return tuple(map(_read_file, _list_all(actions, name)))


def _read_file(file: Mapping[str, Any]) -> LoggedFile:
    marks = file.get("deletionVector")
    return LoggedFile(
        unquote(file["path"]),
        file.get("partitionValues") or {},
        file.get("size", 0),
        is_moved=not file.get("dataChange", True),
        marked=int(marks["cardinality"]) if marks else 0,
        stats=file.get("stats"),
    )


def _read_settings(actions: Actions) -> TableSettings | None:
    for metadata in _list_all(actions, "metaData"):
        has_feed = is_true(metadata.get("configuration", {}).get(CHANGE_FEED))
        return TableSettings(metadata["schemaString"], has_feed)
    return None


def _without_moved(files: Sequence[LoggedFile]) -> tuple[LoggedFile, ...]:
    return tuple(file for file in files if not file.is_moved)


def _read_time(values: Mapping[str, Any], column: str) -> int | None:
    """The instant of a column, in microseconds; None where the statistics do not tell it."""
    value = values.get(column)
    at = _parse_aware(value) if isinstance(value, str) else None
    return None if at is None else micros(at)


def _parse_aware(text: str) -> datetime | None:
    """An instant of the statistics; None for naive times and text, whose zone the log has not."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None
