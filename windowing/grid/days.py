"""Days of event time by the clock of a zone: on which days windows begin. No Spark.

A window belongs to the day on which it begins, so each window belongs to one day, whatever its
length is.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from windowing.grid.zone import transitions

DayRange = tuple[date, date]
"""Neighbouring days: the first and the last one, both included."""
MOST_RANGES = 1_000
"""From more ranges than that the days between them are included, so that a list stays short."""
_DAY_US = 86_400_000_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_ONE = timedelta(days=1)


def find_days(starts_us: npt.NDArray[np.int64], zone: str | None) -> tuple[DayRange, ...]:
    """The days on which these instants lie, by the clock of `zone`; None is UTC.

    Instants are microseconds since 1970, in any order. Days beyond the years 1 to 9999 are the
    nearer end of the calendar.
    """
    if not starts_us.size:
        return ()
    local = starts_us + _find_offsets(starts_us, zone) if zone else starts_us
    last_day = date.max.toordinal() - _EPOCH_DAY
    numbers = np.unique(np.clip(local // _DAY_US, 1 - _EPOCH_DAY, last_day))
    ends = np.flatnonzero(np.diff(numbers) > 1)
    firsts, lasts = numbers[[0, *(ends + 1)]], numbers[[*ends, -1]]
    pairs = zip(firsts.tolist(), lasts.tolist(), strict=True)
    return merge_days((_to_date(first), _to_date(last)) for first, last in pairs)


def _find_offsets(starts_us: npt.NDArray[np.int64], zone: str) -> npt.NDArray[np.int64]:
    """How far the clock of the zone is ahead of UTC at each instant."""
    known: npt.NDArray[Any] = np.array(
        transitions(zone, int(starts_us.min()), int(starts_us.max())), np.int64
    )
    places = np.searchsorted(known[:, 0], starts_us, side="right") - 1
    offsets: npt.NDArray[np.int64] = known[np.maximum(places, 0), 1]
    return offsets


def _to_date(number: int) -> date:
    return date.fromordinal(number + _EPOCH_DAY)


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
