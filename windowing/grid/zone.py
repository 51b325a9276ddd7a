"""Where a zone's clock jumps, read from one tz database (Python's)."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR_US = 3_600_000_000
FIRST_YEAR, LAST_YEAR = 2, 9998
_STRIDE = timedelta(hours=6)
_FIRST_JUMP = 1800
"""A year before any clock of the tz database jumped."""


def micros(moment: datetime) -> int:
    """Whole microseconds from 1970-01-01T00:00Z to `moment`, which is aware; exact, also before 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    """The UTC instant `us` microseconds after 1970-01-01T00:00Z; beyond the years 1 to 9999 the end of the calendar that is nearer."""
    return EPOCH + timedelta(microseconds=min(max(us, _BEGIN_US), _END_US))


_BEGIN_US, _END_US = (
    micros(datetime(1, 1, 1, tzinfo=UTC)),
    micros(datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)),
)
FIRST_US, LAST_US = (
    micros(datetime(4, 1, 1, tzinfo=UTC)),
    micros(datetime(9997, 1, 1, tzinfo=UTC)) - 1,
)
"""The earliest and the latest event time there is, both inside; no watermark is earlier. The years beside them are on the calendar too."""


def year_of(us: int) -> int:
    """The UTC year of `us`, clamped to the years the zone rules are asked for."""
    low, high = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC), datetime(LAST_YEAR, 12, 31, tzinfo=UTC)
    return moment(min(max(us, micros(low)), micros(high))).year


def offset_us(zone: str, us: int) -> int:
    """What the zone's clock is ahead of UTC at the instant `us`, in microseconds."""
    year = datetime(year_of(us), 1, 1, tzinfo=UTC)
    at = moment(us) if FIRST_YEAR <= moment(us).year <= LAST_YEAR else year
    shift = at.astimezone(ZoneInfo(zone)).utcoffset()
    return (shift or timedelta(0)) // timedelta(microseconds=1)


def within_calendar(us: int) -> bool:
    """Whether `us` lies in the years 1 to 9999."""
    return _BEGIN_US <= us <= _END_US


def transitions(zone: str, low_us: int, high_us: int) -> list[tuple[int, int]]:
    """Stretches of constant offset that cover [low, high]: (first instant, offset), the first one beginning at or before `low`.

    A stretch lasts until the next one begins. Instants and offsets are microseconds.
    """
    years = range(year_of(low_us), year_of(high_us) + 1)
    found = [
        (
            micros(datetime(years[0], 1, 1, tzinfo=UTC)),
            offset_us(zone, micros(datetime(years[0], 1, 1, tzinfo=UTC))),
        )
    ]
    for jump in (j for year in years for j in _jumps(zone, year)):
        if jump[1] != found[-1][1] and jump[0] > found[-1][0]:
            found.append(jump)
    return found


def longest_jump_us(zone: str | None, low_us: int, high_us: int) -> int:
    """How far the zone's clock jumps ahead at most between two instants, in microseconds."""
    offsets = [offset for _, offset in transitions(zone, low_us, high_us)] if zone else [0]
    return max([0, *(after - before for before, after in pairwise(offsets))])


@lru_cache(maxsize=8192)
def _jumps(zone: str, year: int) -> tuple[tuple[int, int], ...]:
    """The (instant, new offset) of every change in [year start, next year start]."""
    if year < _FIRST_JUMP:
        return ()
    info, at, end = (
        ZoneInfo(zone),
        datetime(year, 1, 1, tzinfo=UTC),
        datetime(year + 1, 1, 1, tzinfo=UTC),
    )
    before, out = at.astimezone(info).utcoffset(), []
    while at < end:
        step = min(at + _STRIDE, end)
        after = step.astimezone(info).utcoffset()
        if after != before:
            out.append(
                (
                    _bisect(info, micros(at), micros(step)),
                    (after or timedelta(0)) // timedelta(microseconds=1),
                )
            )
        at, before = step, after
    return tuple(out)


def _bisect(info: ZoneInfo, low: int, high: int) -> int:
    """The first whole second in (low, high] whose offset is that of `high`."""
    target = moment(high).astimezone(info).utcoffset()
    low, high = low // 1_000_000, high // 1_000_000
    while high - low > 1:
        middle = (low + high) // 2
        if moment(middle * 1_000_000).astimezone(info).utcoffset() == target:
            high = middle
        else:
            low = middle
    return high * 1_000_000
