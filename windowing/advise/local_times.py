"""Local wall-clock times as instants, for many at once: as `windowing/source/frame.py` does."""

import numpy as np

from windowing.advise.boundaries import Flags, Instants
from windowing.grid.rule import local_spans
from windowing.grid.zone import FIRST_US, LAST_US


def find_instants(zone: str | None, local: Instants) -> tuple[Instants, Flags]:
    """The instant of each local time, and whether the clock ever showed it.

    In a fold it is the earlier instant, in a gap none.
    """
    if not len(local):
        return local, np.zeros(0, bool)
    low, high = max(int(local.min()), FIRST_US), min(int(local.max()), LAST_US)
    spans = local_spans(zone, low, max(low, high))
    begins = np.array([span.low_us for span in spans], np.int64)
    shift = np.array([span.low_us - span.at_us for span in spans], np.int64)
    on_clock = np.array([span.on_clock for span in spans], bool)
    place = np.maximum(np.searchsorted(begins, local, side="right") - 1, 0)
    return local - shift[place], on_clock[place]
