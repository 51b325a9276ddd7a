"""Days of event time by the clock of a zone: on which days windows begin. No Spark.

A window belongs to the day on which it begins, so each window belongs to one day, whatever its
length is.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from windowing.grid.zone import offset_us

DayRange = tuple[date, date]
"""Neighbouring days: the first and the last one, both included."""
MOST_RANGES = 1_000
"""From more ranges than that the days between them are included, so that a list stays short."""
DAY_US = 86_400_000_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_ONE = timedelta(days=1)


def find_day(us: int, zone: str | None) -> date:
    """The day on which an instant lies, by the clock of `zone`; None is UTC.

    Instants are microseconds since 1970. A day beyond the years 1 to 9999 is the nearer end of the
    calendar.
    """
    return number_to_day((us + (offset_us(zone, us) if zone else 0)) // DAY_US)


def number_to_day(number: int) -> date:
    """The day that begins so many days after 1970, or the nearer end of the calendar."""
    ordinal = number + _EPOCH_DAY
    return date.fromordinal(min(max(ordinal, date.min.toordinal()), date.max.toordinal()))


def merge_days(ranges: Iterable[DayRange]) -> tuple[DayRange, ...]:
    """The same days, earliest first, as few ranges as there can be; one where they are too many."""
    merged: list[DayRange] = []
    for first, last in sorted(ranges):
        if merged and first.toordinal() <= merged[-1][1].toordinal() + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    if len(merged) > MOST_RANGES:
        return ((merged[0][0], merged[-1][1]),)
    return tuple(merged)


def list_days(ranges: Iterable[DayRange]) -> list[date]:
    """Each day of the ranges, in their order."""
    return [
        date.fromordinal(number)
        for first, last in ranges
        for number in range(first.toordinal(), last.toordinal() + 1)
    ]


def bound_days(days: DayRange, zone: str | None) -> tuple[datetime, datetime]:
    """From when (inclusive) until when (exclusive) the days last by the clock of `zone`, in UTC.

    A day whose midnight the clock passes over begins when the clock has jumped.
    """
    first, last = days
    return _begin_day(first, zone), _begin_day(min(last, date.max - _ONE) + _ONE, zone)


def _begin_day(day: date, zone: str | None) -> datetime:
    midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone) if zone else UTC)
    try:
        return midnight.astimezone(UTC)
    except OverflowError:
        return midnight.replace(tzinfo=UTC)
