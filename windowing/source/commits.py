"""What one commit of a Delta log records about its rows, from its statistics alone. No Spark."""

from collections.abc import Iterable
from dataclasses import dataclass

from windowing.storage import logged_commit


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
    commit = logged_commit.read_commit(text)
    added = [file.figures(event_time) for file in commit.added]
    removed = [file.figures(event_time) for file in commit.removed]
    lows = [file.low_us for file in (*added, *removed) if file.low_us is not None]
    highs = [file.high_us for file in (*added, *removed) if file.high_us is not None]
    return Commit(
        version,
        commit.operation,
        files=len(added),
        rows=total(file.rows for file in added),
        rewrites=bool(removed),
        low_us=min(lows, default=None),
        high_us=max(highs, default=None),
    )


def subtract(number: int | None, other: int | None) -> int | None:
    """The difference, None if one of the numbers is unknown."""
    return None if number is None or other is None else number - other


def total(numbers: Iterable[int | None]) -> int | None:
    """The sum, None if one of the numbers is unknown."""
    sum_so_far = 0
    for number in numbers:
        if number is None:
            return None
        sum_so_far += number
    return sum_so_far
