"""On which days many instants lie, by the clock of a zone. No Spark."""

import numpy as np

from windowing.grid.boundaries import Instants, find_offsets
from windowing.grid.days import DAY_US, DayRange, merge_days, number_to_day


def find_days(instants: Instants, zone: str | None) -> tuple[DayRange, ...]:
    """The days on which these instants lie, by the clock of `zone`; None is UTC.

    Days beyond the years 1 to 9999 are the nearer end of the calendar.
    """
    if not instants.size:
        return ()
    local = instants + find_offsets(zone, instants)
    numbers = np.unique(local // DAY_US)
    ends = np.flatnonzero(np.diff(numbers) > 1)
    firsts, lasts = numbers[[0, *(ends + 1)]].tolist(), numbers[[*ends, -1]].tolist()
    pairs = zip(firsts, lasts, strict=True)
    return merge_days((number_to_day(first), number_to_day(last)) for first, last in pairs)
