"""What a close and a reopening of a period have done. No Spark."""

from dataclasses import dataclass
from datetime import datetime
from math import isnan
from typing import Any

from windowing.report.rule import Changed
from windowing.report.text import plain_fields


@dataclass(frozen=True)
class ClosedPeriod:
    """What is closed: rows of outputs that end at or before `until`.

    `frozen` has the number of frozen rows by window, and `not_frozen` the windows whose rows are
    never. `published` says whether readers see these rows: the newest ones are published; None
    where nothing was published yet. Nothing has `changed` where the same period was closed before.
    """

    until: datetime
    reason: str
    frozen: dict[str, int]
    not_frozen: tuple[str, ...]
    published: bool | None
    changed: bool = True

    def as_json(self) -> dict[str, object]:
        """The period as plain JSON values."""
        return plain_fields(self)


@dataclass(frozen=True)
class ReopenedPeriod:
    """What has become of the outputs; `until` is None where nothing was closed, nor changed.

    `windows` are empty where an interrupted reopening was finished, because that can't be counted.
    """

    until: datetime | None
    windows: dict[str, Changed]

    def as_json(self) -> dict[str, object]:
        """The result as plain JSON values."""
        return plain_fields(self)


def is_same(old: Any, new: Any) -> bool:
    """Whether two values of a column are the same; no number (NaN) is the same as no number.

    >>> is_same(float("nan"), float("nan")), is_same([1, float("nan")], [1, float("nan")])
    (True, True)
    >>> is_same(1, 2), is_same(None, 0), is_same([1], [1, 2])
    (False, False, False)
    """
    match old, new:
        case float(), float():
            return old == new or (isnan(old) and isnan(new))
        case list(), list():
            return len(old) == len(new) and all(map(is_same, old, new))
        case dict(), dict():
            return old.keys() == new.keys() and all(is_same(old[name], new[name]) for name in old)
    return bool(old == new)
