"""What one commit of a Delta log records about its rows, from its statistics alone. No Spark."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Commit:
    """Files and rows that a commit added.

    `rows` is None where a file has no statistics. `rewrites` is whether it removed rows. `low` and
    `high` are the first and the last event time in the files that it added or removed, to the
    millisecond; None where the statistics have no such column.
    """

    version: int
    operation: str
    files: int
    rows: int | None
    rewrites: bool
    low: datetime | None = None
    high: datetime | None = None


def read_commit(version: int, text: str, event_time: str) -> Commit:
    """The commit whose JSON lines are `text`; `low` and `high` are of the column `event_time`."""
    actions: list[dict[str, Any]] = []
    for line in text.splitlines():
        if line.strip():
            actions.append(json.loads(line))
    added = _changed_files(actions, "add")
    removed = _changed_files(actions, "remove")
    infos = (action["commitInfo"] for action in actions if "commitInfo" in action)
    info: dict[str, Any] = next(infos, {})
    stats = [_read_stats(file) for file in added]
    all_stats = [*stats, *(_read_stats(file) for file in removed)]
    return Commit(
        version,
        operation=str(info.get("operation", "unknown")),
        files=len(added),
        rows=total(each.get("numRecords") for each in stats),
        rewrites=bool(removed),
        low=min(_read_times(all_stats, "minValues", event_time), default=None),
        high=max(_read_times(all_stats, "maxValues", event_time), default=None),
    )


def total(numbers: Iterable[int | None]) -> int | None:
    """The sum, None if one of the numbers is unknown."""
    sum_so_far = 0
    for number in numbers:
        if number is None:
            return None
        sum_so_far += number
    return sum_so_far


def _changed_files(actions: list[dict[str, Any]], action: str) -> list[dict[str, Any]]:
    """The files of the actions of one name; OPTIMIZE changes files, but no data."""
    files = [each[action] for each in actions if action in each]
    return [file for file in files if file.get("dataChange", True)]


def _read_stats(file: dict[str, Any]) -> dict[str, Any]:
    text = file.get("stats")
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def _read_times(stats: list[dict[str, Any]], end: str, column: str) -> list[datetime]:
    """The values of a time column; `end` is minValues or maxValues."""
    found = []
    for each in stats:
        value = each.get(end, {}).get(column)
        at = _parse_aware(value) if isinstance(value, str) else None
        if at is not None:
            found.append(at)
    return found


def _parse_aware(text: str) -> datetime | None:
    """An instant of the statistics; None for naive times and text, whose zone the log has not."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None
