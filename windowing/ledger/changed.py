"""The days that a step changed in outputs, as entries of the ledger have them. No Spark.

A publication has them in its note, exactly. A run or backfill has the first and the last start of
the rows that it changed among its counts, so its days are all between these two.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from json import dumps, loads

from windowing.grid.days import DayRange, merge_days
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import LedgerEntry

ChangedDays = Mapping[str, tuple[DayRange, ...]]
"""By window the days on which the windows begin that changed.

A window that did not change is absent. One whose rows have no start, as those of a global window,
has no days.
"""
_KEY = "changed"
MOST_CHANGES = 50
"""How many publications are told apart; those before them are told as one."""
MOST_SHOWN_RANGES = 400
"""How many ranges of days one of them has, so that what `publish` prints stays short."""
_Texts = Sequence[Sequence[str]]
"""Ranges of days as a note has them: pairs of the first and the last day."""
_Told = Mapping[str, _Texts]
"""By window what a note tells."""


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
    return {window: _parse(each) for window, each in days.items()}


@dataclass(frozen=True)
class ShownChange:
    """The days of an output that the publication `number` changed, at a time in microseconds.

    None where it did not say.
    """

    number: int
    at_us: int
    days: tuple[DayRange, ...] | None


def list_changes(past: LedgerHistory, windows: Iterable[str]) -> dict[str, tuple[ShownChange, ...]]:
    """By output what each publication changed in it, oldest first, without those that did nothing.

    They are at most `MOST_CHANGES`; the oldest one stands for all before it, too. One with more
    than `MOST_SHOWN_RANGES` ranges has one from its first to its last day.
    """
    # Publications of one day name the same days mostly, so each note is parsed once.
    parsed: dict[str | None, _Told | None] = {}
    told = []
    for entry in past.publications:
        if entry.note not in parsed:
            parsed[entry.note] = loads(entry.note or "{}").get(_KEY)
        told.append((entry, parsed[entry.note]))
    return {window: _list_changes(told, window) for window in windows}


def _list_changes(
    told: Sequence[tuple[LedgerEntry, _Told | None]], window: str
) -> tuple[ShownChange, ...]:
    """The changes of one output, by what each publication has told."""
    found: list[tuple[LedgerEntry, _Texts | None]] = []
    version = None
    for entry, changed in told:
        shown = entry.versions.get(window)
        if changed is None:
            if shown != version:
                found.append((entry, None))
        elif window in changed:
            found.append((entry, changed[window]))
        version = shown
    kept = max(len(found) - MOST_CHANGES, 0)
    older = [texts for _, texts in found[:kept]]
    return tuple(
        _show(entry, [*older, texts] if n == 0 else [texts])
        for n, (entry, texts) in enumerate(found[kept:])
    )


def _show(entry: LedgerEntry, each: Sequence[_Texts | None]) -> ShownChange:
    """All these days together as those that `entry` changed."""
    days: set[tuple[str, str]] = set()
    for texts in each:
        if texts is None:
            return ShownChange(entry.seq, entry.at or 0, None)
        days.update((first, last) for first, last in texts)
    return ShownChange(entry.seq, entry.at or 0, merge_days(_parse(days), MOST_SHOWN_RANGES))


def _parse(texts: Iterable[Sequence[str]]) -> tuple[DayRange, ...]:
    return tuple((date.fromisoformat(first), date.fromisoformat(last)) for first, last in texts)
