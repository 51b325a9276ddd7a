"""Which days of outputs a run or a publication changed, as people and JSON have them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from windowing.grid.days import DayRange, bound_days, count_days, find_day, join_days, list_days
from windowing.ledger.changed import ChangedDays
from windowing.ledger.counts import add_counts, read_starts
from windowing.report.text import plain
from windowing.spec.kinds import Window, zone_of

MOST_TOLD = 5
"""How many days, or ranges of them, a sentence names."""
MOST_DAYS = 1_000
"""How many days are told one by one; more of them are told as ranges alone."""


@dataclass(frozen=True)
class Days:
    """Days on which windows of an output begin that changed, by the clock of its zone.

    `spans` are neighbouring days together, the first and the last one included, and `ranges` are
    the same as times, from (inclusive) and to (exclusive). A global window has no days.
    """

    spans: tuple[DayRange, ...] = ()
    ranges: tuple[tuple[datetime, datetime], ...] = ()

    @property
    def days(self) -> tuple[date, ...] | None:
        """Each day; None where they are more than `MOST_DAYS`, which `spans` tell as well."""
        return tuple(list_days(self.spans)) if count_days(self.spans) <= MOST_DAYS else None

    def as_json(self) -> dict[str, object]:
        """The days, and the ranges as times in UTC."""
        return {
            "days": plain(self.days),
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
    return Days(ranges, tuple(bound_days(days, zone) for days in ranges))


def tell_days(changed: Mapping[str, Days]) -> str:
    """One short sentence: the days of all outputs together.

    >>> third, fourth, seventh = (date(2026, 3, day) for day in (3, 4, 7))
    >>> tell_days({"hourly": Days(((third, fourth), (seventh, seventh)))})
    'changed days: 2026-03-03 to 2026-03-04, 2026-03-07'
    >>> tell_days({})
    'changed days: none'
    >>> tell_days({"ever": Days()})
    'changed days: none, because global windows have no day'
    """
    spans = join_days(span for each in changed.values() for span in each.spans)
    if not spans:
        why = ", because global windows have no day" if changed else ""
        return f"changed days: none{why}"
    texts = [_write(first, last) for first, last in spans[:MOST_TOLD]]
    more = len(spans) - MOST_TOLD
    some = f" and {more:,} more" if more > 0 else ""
    return f"changed days: {', '.join(texts)}{some}"


def _write(first: date, last: date) -> str:
    return first.isoformat() if first == last else f"{first.isoformat()} to {last.isoformat()}"
