"""On which days many instants lie, by the clock of a zone. No Spark."""

from typing import Any

import numpy as np
import numpy.typing as npt

from windowing.grid.days import DAY_US, DayRange, merge_days, number_to_day
from windowing.grid.zone import transitions

Instants = npt.NDArray[np.int64]
"""Microseconds since 1970, in any order."""


def find_days(instants: Instants, zone: str | None) -> tuple[DayRange, ...]:
    """The days on which these instants lie, by the clock of `zone`; None is UTC.

    Days beyond the years 1 to 9999 are the nearer end of the calendar.
    """
    if not instants.size:
        return ()
    local = instants + _find_offsets(instants, zone) if zone else instants
    numbers = np.unique(local // DAY_US)
    ends = np.flatnonzero(np.diff(numbers) > 1)
    firsts, lasts = numbers[[0, *(ends + 1)]].tolist(), numbers[[*ends, -1]].tolist()
    pairs = zip(firsts, lasts, strict=True)
    return merge_days((number_to_day(first), number_to_day(last)) for first, last in pairs)


def _find_offsets(instants: Instants, zone: str) -> Instants:
    """How far the clock of the zone is ahead of UTC at each instant."""
    known: npt.NDArray[Any] = np.array(
        transitions(zone, int(instants.min()), int(instants.max())), np.int64
    )
    places = np.searchsorted(known[:, 0], instants, side="right") - 1
    offsets: Instants = known[np.maximum(places, 0), 1]
    return offsets
