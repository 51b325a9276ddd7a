"""What one commit of a Delta log says of its rows, from its statistics alone. No Spark."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Commit:
    """Files and rows a commit added; `rows` None where a file has no statistics. `rewrites`: it took away rows that were there.

    `low` and `high`: event times of the rows in the files it added or took away, to the millisecond; None where statistics don't say.
    """

    version: int
    operation: str
    files: int
    rows: int | None
    rewrites: bool
    low: datetime | None = None
    high: datetime | None = None


def commit(version: int, text: str, event_time: str) -> Commit:
    """The commit whose JSON lines are `text`; `event_time` is the column that `low` and `high` are of."""
    actions = [json.loads(line) for line in text.splitlines() if line.strip()]
    added = [a["add"] for a in actions if "add" in a and a["add"].get("dataChange", True)]
    stats = [json.loads(a["stats"]) if a.get("stats") else {} for a in added]
    info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    rewrites = any(a["remove"].get("dataChange", True) for a in actions if "remove" in a)
    gone = [
        json.loads(a["remove"]["stats"])
        for a in actions
        if a.get("remove", {}).get("stats") and a["remove"].get("dataChange", True)
    ]
    low, high = (_times([*stats, *gone], end, event_time) for end in ("minValues", "maxValues"))
    rows, operation = (
        total(s.get("numRecords") for s in stats),
        str(info.get("operation", "unknown")),
    )
    return Commit(
        version,
        operation,
        len(added),
        rows,
        rewrites,
        min(low, default=None),
        max(high, default=None),
    )


def total(numbers: Iterable[int | None]) -> int | None:
    """The sum, None if one of the numbers is unknown."""
    known = list(numbers)
    return None if any(n is None for n in known) else sum(n for n in known if n is not None)


def _times(stats: list[dict[str, Any]], end: str, column: str) -> list[datetime]:
    values = [s.get(end, {}).get(column) for s in stats]
    found = [_aware(v) for v in values if isinstance(v, str)]
    return [at for at in found if at is not None]


def _aware(text: str) -> datetime | None:
    """An instant of the statistics; None for naive times and text, whose place in time the log does not know."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None
