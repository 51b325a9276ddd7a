"""Which days of outputs a run or a publication changed, as people and JSON have them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from windowing.grid.days import DayRange, bound_days, find_day, list_days, merge_days
from windowing.ledger.changed import ChangedDays
from windowing.ledger.counts import add_counts, read_starts
from windowing.spec.kinds import Window, zone_of

MOST_TOLD = 5
"""How many days, or ranges of them, a sentence names."""


@dataclass(frozen=True)
class Days:
    """Days on which windows of an output begin that changed, by the clock of its zone.

    `ranges` are the same days as times, from (inclusive) and to (exclusive). A global window has
    no days.
    """

    days: tuple[date, ...] = ()
    ranges: tuple[tuple[datetime, datetime], ...] = ()

    def as_json(self) -> dict[str, object]:
        """The days, and the ranges as times in UTC."""
        return {
            "days": [day.isoformat() for day in self.days],
            "ranges": [
                {"start": start.isoformat(), "end": end.isoformat()} for start, end in self.ranges
            ],
        }


def describe_changed(changed: ChangedDays, windows: Sequence[Window]) -> dict[str, Days]:
    """The days of each window that changed, for windows that the spec has."""
    return {
        window.name: _describe(changed[window.name], zone_of(window))
        for window in windows
        if window.name in changed
    }


def describe_steps(
    steps: Sequence[Mapping[str, int]], windows: Sequence[Window]
) -> dict[str, Days]:
    """The days of each window that these steps changed, by the counts of their ledger entries.

    They are all days from that of the first start that changed to that of the last one.
    """
    counts = add_counts(steps)
    changed: dict[str, tuple[DayRange, ...]] = {}
    for window in windows:
        if any(counts.get(f"{window.name}.{what}") for what in ("inserted", "updated", "deleted")):
            starts, zone = read_starts(counts, window.name), zone_of(window)
            changed[window.name] = ()
            if starts is not None:
                first, last = (find_day(us, zone) for us in starts)
                changed[window.name] = ((first, last),)
    return describe_changed(changed, windows)


def _describe(ranges: tuple[DayRange, ...], zone: str | None) -> Days:
    bounds = tuple(bound_days(days, zone) for days in ranges)
    return Days(tuple(list_days(ranges)), bounds)


def changed_as_json(changed: Mapping[str, Days] | None) -> dict[str, object] | None:
    """By window the days as JSON has them; None where they are not known."""
    if changed is None:
        return None
    return {window: days.as_json() for window, days in changed.items()}


def tell_days(changed: Mapping[str, Days]) -> str:
    """One short sentence: the days of all outputs together.

    >>> tell_days({"hourly": Days((date(2026, 3, 3), date(2026, 3, 4), date(2026, 3, 7)))})
    'changed days: 2026-03-03 to 2026-03-04, 2026-03-07'
    >>> tell_days({})
    'changed days: none'
    >>> tell_days({"ever": Days()})
    'changed days: none, because global windows have no day'
    """
    days = sorted({day for each in changed.values() for day in each.days})
    if not days:
        why = ", because global windows have no day" if changed else ""
        return f"changed days: none{why}"
    texts = [_write(first, last) for first, last in merge_days((day, day) for day in days)]
    more = len(texts) - MOST_TOLD
    some = f" and {more:,} more" if more > 0 else ""
    return f"changed days: {', '.join(texts[:MOST_TOLD])}{some}"


def _write(first: date, last: date) -> str:
    return first.isoformat() if first == last else f"{first.isoformat()} to {last.isoformat()}"
