"""Days of event time by the clock of a zone: on which days windows begin. No Spark.

A window belongs to the day on which it begins, so each window belongs to one day, whatever its
length is.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from windowing.grid.zone import micros, moment, offset_us, transitions

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


def join_days(ranges: Iterable[DayRange]) -> tuple[DayRange, ...]:
    """The same days, earliest first, as few ranges as there can be."""
    joined: list[DayRange] = []
    for first, last in sorted(ranges):
        if joined and first.toordinal() <= joined[-1][1].toordinal() + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def merge_days(ranges: Iterable[DayRange], most: int = MOST_RANGES) -> tuple[DayRange, ...]:
    """The same days as `join_days` has them; where these are more than `most` ranges, one."""
    joined = join_days(ranges)
    return joined if len(joined) <= most else ((joined[0][0], joined[-1][1]),)


def count_days(ranges: Iterable[DayRange]) -> int:
    """How many days ranges have that don't overlap."""
    return sum(last.toordinal() - first.toordinal() + 1 for first, last in ranges)


def list_days(ranges: Iterable[DayRange]) -> list[date]:
    """Each day of the ranges, in their order."""
    return [
        date.fromordinal(number)
        for first, last in ranges
        for number in range(first.toordinal(), last.toordinal() + 1)
    ]


def bound_days(days: DayRange, zone: str | None) -> tuple[datetime, datetime]:
    """From when (inclusive) until when (exclusive) the days last by the clock of `zone`, in UTC.

    Each instant of the days is inside. A day whose midnight the clock passes over begins when the
    clock has jumped. Where the clock goes back across midnight, the day after has begun before the
    day ends, so the ranges of neighbouring days overlap. The last day of the calendar ends with its
    last microsecond.
    """
    first, last = days
    start, _ = _find_midnights(first, zone)
    if last == date.max:
        return start, datetime.max.replace(tzinfo=UTC)
    _, end = _find_midnights(last + _ONE, zone)
    return start, end


def _find_midnights(day: date, zone: str | None) -> tuple[datetime, datetime]:
    """When the clock shows the first instant of a day for the first and for the last time."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone) if zone else UTC)
    try:
        first, last = (midnight.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    except OverflowError:
        nearest = midnight.replace(tzinfo=UTC)
        return nearest, nearest
    if zone is None or first <= last:
        return first, last
    # The clock passes over midnight, so the day begins when it jumps.
    (jump,) = (
        moment(at)
        for at, _ in transitions(zone, micros(last), micros(first))
        if micros(last) < at <= micros(first)
    )
    return jump, jump
