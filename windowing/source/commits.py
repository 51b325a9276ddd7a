"""What one commit of a Delta log records about its rows, from its statistics alone. No Spark."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from windowing.grid.zone import micros
from windowing.storage.file_figures import FileFigures
from windowing.storage.log_lines import changed_files, parse_actions


@dataclass(frozen=True)
class Commit:
    """Files and rows that a commit added.

    `rows` is None where a file has no statistics. `rewrites` is whether it removed rows. `low_us`
    and `high_us` are the first and the last event time in the files that it added or removed, to
    the millisecond; None where the statistics have no such column.
    """

    version: int
    operation: str
    files: int
    rows: int | None
    rewrites: bool
    low_us: int | None = None
    high_us: int | None = None


def read_commit(version: int, text: str, event_time: str) -> Commit:
    """The commit whose JSON lines are `text`; its times are those of the column `event_time`."""
    actions = parse_actions(text)
    added = [read_figures(file, event_time) for file in changed_files(actions, "add")]
    removed = [read_figures(file, event_time) for file in changed_files(actions, "remove")]
    lows = [file.low_us for file in (*added, *removed) if file.low_us is not None]
    highs = [file.high_us for file in (*added, *removed) if file.high_us is not None]
    return Commit(
        version,
        operation=operation_of(actions),
        files=len(added),
        rows=total(file.rows for file in added),
        rewrites=bool(removed),
        low_us=min(lows, default=None),
        high_us=max(highs, default=None),
    )


def operation_of(actions: list[dict[str, Any]]) -> str:
    """What made the commit, such as DELETE."""
    for action in actions:
        if "commitInfo" in action:
            return str(action["commitInfo"].get("operation", "unknown"))
    return "unknown"


def total(numbers: Iterable[int | None]) -> int | None:
    """The sum, None if one of the numbers is unknown."""
    sum_so_far = 0
    for number in numbers:
        if number is None:
            return None
        sum_so_far += number
    return sum_so_far


def read_figures(file: Mapping[str, Any], event_time: str) -> FileFigures:
    """What the statistics of a file in a commit say; its times are those of a column."""
    text = file.get("stats")
    stats = json.loads(text) if text else {}
    low, high = (_read_time(stats.get(end, {}), event_time) for end in ("minValues", "maxValues"))
    return FileFigures(stats.get("numRecords"), low, high, file.get("size", 0))


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
