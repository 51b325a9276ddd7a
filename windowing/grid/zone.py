"""Where a zone's clock jumps, read from one tz database (Python's)."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_US = 1_000_000
HOUR_US = 3_600_000_000
FIRST_YEAR, LAST_YEAR = 2, 9998
_STRIDE = timedelta(hours=6)
_FIRST_JUMP = 1800
"""A year before any clock of the tz database jumped."""


def micros(moment: datetime) -> int:
    """Whole microseconds from 1970-01-01T00:00Z to `moment` (aware), exact before 1970, too."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    """The UTC instant `us` microseconds after 1970-01-01T00:00Z.

    Beyond the years 1 to 9999 it is the nearer end of the calendar.
    """
    return EPOCH + timedelta(microseconds=min(max(us, BEGIN_US), END_US))


BEGIN_US = micros(datetime(1, 1, 1, tzinfo=UTC))
END_US = micros(datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC))
"""`BEGIN_US` and `END_US`: the first and the last microsecond of the years 1 to 9999."""

FIRST_US = micros(datetime(4, 1, 1, tzinfo=UTC))
LAST_US = micros(datetime(9997, 1, 1, tzinfo=UTC)) - 1
"""`FIRST_US` and `LAST_US`: the earliest and the latest event time, both included.

No watermark is earlier. The years next to them are on the calendar too, for bounds of windows.
"""


def year_of(us: int) -> int:
    """The UTC year of `us`, clamped to the years the zone rules are asked for."""
    low = micros(datetime(FIRST_YEAR, 1, 1, tzinfo=UTC))
    high = micros(datetime(LAST_YEAR, 12, 31, tzinfo=UTC))
    return moment(min(max(us, low), high)).year


def offset_us(zone: str, us: int) -> int:
    """How far the zone's clock is ahead of UTC at the instant `us`, in microseconds."""
    at = moment(us)
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        at = datetime(year_of(us), 1, 1, tzinfo=UTC)
    return _to_micros(at.astimezone(ZoneInfo(zone)).utcoffset())


def within_calendar(us: int) -> bool:
    """Whether `us` lies in the years 1 to 9999."""
    return BEGIN_US <= us <= END_US


def transitions(zone: str, low_us: int, high_us: int) -> list[tuple[int, int]]:
    """Times of constant offset that cover [low, high], as (first instant, offset).

    The first one begins at or before `low`, and each lasts until the next one begins. Instants and
    offsets are microseconds.
    """
    years = range(year_of(low_us), year_of(high_us) + 1)
    begin = micros(datetime(years[0], 1, 1, tzinfo=UTC))
    found = [(begin, offset_us(zone, begin))]
    for year in years:
        for at, offset in _find_jumps(zone, year):
            last_at, last_offset = found[-1]
            if offset != last_offset and at > last_at:
                found.append((at, offset))
    return found


def longest_jump_us(zone: str | None, low_us: int, high_us: int) -> int:
    """How far the zone's clock jumps ahead at most between two instants, in microseconds."""
    if not zone:
        return 0
    offsets = [offset for _, offset in transitions(zone, low_us, high_us)]
    jumps = [after - before for before, after in pairwise(offsets)]
    return max([0, *jumps])


def farthest_jump_us(zone: str | None, low_us: int, high_us: int) -> int:
    """How far the zone's clock jumps at most between two instants, ahead or back.

    Windows last longer where it jumps back.
    """
    if not zone:
        return 0
    offsets = [offset for _, offset in transitions(zone, low_us, high_us)]
    return max([0, *(abs(after - before) for before, after in pairwise(offsets))])


@lru_cache(maxsize=8192)
def _find_jumps(zone: str, year: int) -> tuple[tuple[int, int], ...]:
    """The (instant, new offset) of every change in [year start, next year start]."""
    if year < _FIRST_JUMP:
        return ()
    info = ZoneInfo(zone)
    at = datetime(year, 1, 1, tzinfo=UTC)
    end = datetime(year + 1, 1, 1, tzinfo=UTC)
    offset = at.astimezone(info).utcoffset()
    found = []
    while at < end:
        later = min(at + _STRIDE, end)
        later_offset = later.astimezone(info).utcoffset()
        if later_offset != offset:
            jump = _find_jump(info, micros(at), micros(later))
            found.append((jump, _to_micros(later_offset)))
        at = later
        offset = later_offset
    return tuple(found)


def _to_micros(offset: timedelta | None) -> int:
    return (offset or timedelta(0)) // timedelta(microseconds=1)


def _find_jump(info: ZoneInfo, low: int, high: int) -> int:
    """The first whole second in (low, high] whose offset is that of `high`."""
    target = moment(high).astimezone(info).utcoffset()
    before = low // _SECOND_US
    after = high // _SECOND_US
    while after - before > 1:
        middle = (before + after) // 2
        at = moment(middle * _SECOND_US).astimezone(info)
        if at.utcoffset() == target:
            after = middle
        else:
            before = middle
    return after * _SECOND_US
