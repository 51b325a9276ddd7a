"""The days that a step changed in outputs, as entries of the ledger have them. No Spark.

A publication has them in its note, exactly. A run or backfill has the first and the last start of
the rows that it changed among its counts, so its days are all between these two.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from json import dumps, loads

from windowing.grid.days import DayRange, merge_days
from windowing.ledger.history import LedgerHistory

ChangedDays = Mapping[str, tuple[DayRange, ...]]
"""By window the days on which the windows begin that changed.

A window that did not change is absent. One whose rows have no start, as those of a global window,
has no days.
"""
_KEY = "changed"
MOST_CHANGES = 50
"""How many publications are told apart; those before them are told as one."""


def add_to_note(note: str | None, changed: ChangedDays) -> str:
    """The note of a publication that has changed these days; `parse_changed` reads it."""
    days = {
        window: [[first.isoformat(), last.isoformat()] for first, last in ranges]
        for window, ranges in changed.items()
    }
    return dumps({**loads(note or "{}"), _KEY: days})


def parse_changed(note: str | None) -> ChangedDays | None:
    """What the note of a publication says has changed.

    None for a publication of earlier versions of Tidemark, which did not say.
    """
    days = loads(note or "{}").get(_KEY)
    if days is None:
        return None
    return {
        window: tuple((date.fromisoformat(first), date.fromisoformat(last)) for first, last in each)
        for window, each in days.items()
    }


@dataclass(frozen=True)
class ShownChange:
    """The days of an output that the publication `number` changed, at a time in microseconds.

    None where it did not say.
    """

    number: int
    at_us: int
    days: tuple[DayRange, ...] | None


def list_changes(past: LedgerHistory, window: str) -> tuple[ShownChange, ...]:
    """What each publication changed in an output, oldest first, without those that did nothing.

    They are at most `MOST_CHANGES`; the oldest one stands for all before it, too.
    """
    found: list[ShownChange] = []
    version = None
    for entry in past.publications:
        shown = entry.versions.get(window)
        changed = parse_changed(entry.note)
        if changed is None and shown != version:
            found.append(ShownChange(entry.seq, entry.at or 0, None))
        elif changed is not None and window in changed:
            found.append(ShownChange(entry.seq, entry.at or 0, changed[window]))
        version = shown
    kept = len(found) - MOST_CHANGES
    return tuple(found) if kept <= 0 else (_unite(found[: kept + 1]), *found[kept + 1 :])


def _unite(changes: list[ShownChange]) -> ShownChange:
    last = changes[-1]
    days: list[DayRange] = []
    for change in changes:
        if change.days is None:
            return ShownChange(last.number, last.at_us, None)
        days += change.days
    return ShownChange(last.number, last.at_us, merge_days(days))
