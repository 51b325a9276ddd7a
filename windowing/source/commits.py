"""What one commit of a Delta log records about its rows, from its statistics alone. No Spark."""

import json
from collections.abc import Iterable, Mapping
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
    actions = parse_actions(text)
    added = changed_files(actions, "add")
    removed = changed_files(actions, "remove")
    stats_of_added = [read_stats(file) for file in added]
    stats_of_removed = [read_stats(file) for file in removed]
    all_stats = [*stats_of_added, *stats_of_removed]
    return Commit(
        version,
        operation=operation_of(actions),
        files=len(added),
        rows=total(stats.get("numRecords") for stats in stats_of_added),
        rewrites=bool(removed),
        low=min(_read_times(all_stats, "minValues", event_time), default=None),
        high=max(_read_times(all_stats, "maxValues", event_time), default=None),
    )


def parse_actions(text: str) -> list[dict[str, Any]]:
    """The actions of a commit whose JSON lines are `text`."""
    actions = []
    # Not splitlines: a text in the statistics may contain other ends of lines.
    for line in text.split("\n"):
        if line.strip():
            actions.append(json.loads(line))
    return actions


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


def changed_files(actions: list[dict[str, Any]], action: str) -> list[dict[str, Any]]:
    """The files of the actions of one name; OPTIMIZE changes files, but no data."""
    changed = []
    for each in actions:
        if action in each and each[action].get("dataChange", True):
            changed.append(each[action])
    return changed


def feed_files(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The files of a commit's change feed; none where what it added and removed tells as much."""
    return [action["cdc"] for action in actions if "cdc" in action]


def read_stats(file: Mapping[str, Any]) -> dict[str, Any]:
    """The statistics of a file in a commit; empty where it has none."""
    text = file.get("stats")
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def _read_times(stats: list[dict[str, Any]], end: str, column: str) -> list[datetime]:
    """The values of a time column; `end` is minValues or maxValues."""
    found = []
    for each in stats:
        at = read_time(each, end, column)
        if at is not None:
            found.append(at)
    return found


def read_time(stats: Mapping[str, Any], end: str, column: str) -> datetime | None:
    """The least or the greatest instant of a column; `end` is minValues or maxValues.

    None where the statistics do not tell it.
    """
    value = stats.get(end, {}).get(column)
    return _parse_aware(value) if isinstance(value, str) else None


def _parse_aware(text: str) -> datetime | None:
    """An instant of the statistics; None for naive times and text, whose zone the log has not."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None
