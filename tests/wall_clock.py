"""What the wall clocks of zones show, by the standard library."""

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


def wall(t: int, zone: str | None) -> int:
    """What the wall clock of `zone` shows at the instant t.

    It is given as microseconds since it showed 1970-01-01T00:00.
    """
    return (
        t
        if zone is None
        else ((EPOCH + t * MICROSECOND).astimezone(ZoneInfo(zone)).replace(tzinfo=UTC) - EPOCH)
        // MICROSECOND
    )


@cache
def instant(local: int, zone: str | None) -> int:
    """The first instant at which the wall clock of `zone` shows `local` or later.

    It is the earlier one in a fold and the transition in a gap.
    """
    if zone is None:
        return local
    clock = (EPOCH + local * MICROSECOND).replace(tzinfo=ZoneInfo(zone))
    first, second = (
        (clock.replace(fold=fold) - EPOCH) // MICROSECOND for fold in (0, 1)
    )  # only in a gap the second comes first
    return (
        first
        if first <= second
        else second + bisect_left(range(second, first), local, key=lambda t: wall(t, zone))
    )
