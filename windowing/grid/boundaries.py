"""Grids and clocks over many instants at once: boundary k of a grid, the hour, a local time.

It computes what `windowing/grid/rule.py` does, for arrays of whole microseconds.
"""

import numpy as np
from numpy.typing import NDArray

from windowing.grid.rule import Grid, grid_runs, local_spans
from windowing.grid.zone import FIRST_US, HOUR_US, LAST_US, transitions

Instants = NDArray[np.int64]
"""Microseconds since 1970, lengths of time, or numbers of boundaries, batches and keys."""
Flags = NDArray[np.bool_]
"""Which of them are chosen."""


class Boundaries:
    """The boundaries of a grid around the instants from `low_us` to `high_us`."""

    def __init__(self, grid: Grid, low_us: int, high_us: int) -> None:
        runs = grid_runs(grid, low_us, high_us)
        self._first = np.array([run.first for run in runs], np.int64)
        endless = np.iinfo(np.int64).max
        lasts = [endless if run.last is None else run.last for run in runs]
        self._last = np.array(lasts, np.int64)
        self._at = np.array([run.at_us for run in runs], np.int64)
        self._step = np.array([run.step_us for run in runs], np.int64)
        self._per = np.array([run.per for run in runs], np.int64)
        self._inner = np.array([run.inner_us for run in runs], np.int64)

    def find_numbers(self, t: Instants) -> Instants:
        """The number of the last boundary at or before each instant."""
        run = _find_last_begun(self._at, t)
        since_begin = t - self._at[run]
        # A run without a step has all its boundaries at one instant.
        step = np.maximum(self._step[run], 1)
        period = since_begin // step
        nested = since_begin % step // np.maximum(self._inner[run], 1)
        per = self._per[run]
        k = self._first[run] + period * per + np.where(per > 1, nested, 0)
        last = self._last[run]
        found: Instants = np.where(self._step[run] == 0, last, np.minimum(k, last))
        return found

    def find_instants(self, k: Instants) -> Instants:
        """The instant of each boundary by its number."""
        run = _find_last_begun(self._first, k)
        nth, per = k - self._first[run], self._per[run]
        found: Instants = (
            self._at[run] + nth // per * self._step[run] + nth % per * self._inner[run]
        )
        return found


def find_local_hours(zone: str | None, t: Instants) -> Instants:
    """The hour of the day, 0 to 23, that the clock of a zone shows at each instant; UTC for None.

    There is at least one instant.
    """
    return (t + find_offsets(zone, t)) // HOUR_US % 24


def find_offsets(zone: str | None, t: Instants) -> Instants:
    """How far the clock of a zone is ahead of UTC at each instant; 0 for None.

    There is at least one instant.
    """
    if zone is None:
        return np.zeros_like(t)
    stretches = np.array(transitions(zone, int(t.min()), int(t.max())), np.int64)
    found: Instants = stretches[_find_last_begun(stretches[:, 0], t), 1]
    return found


def find_instants(zone: str | None, local: Instants) -> tuple[Instants, Flags]:
    """The instant of each local time, and whether the clock ever showed it.

    In a fold it is the earlier instant, in a gap none, as in `windowing/source/frame.py`.
    """
    if not len(local):
        return local, np.zeros(0, bool)
    low, high = max(int(local.min()), FIRST_US), min(int(local.max()), LAST_US)
    spans = local_spans(zone, low, max(low, high))
    begins = np.array([span.low_us for span in spans], np.int64)
    shift = np.array([span.low_us - span.at_us for span in spans], np.int64)
    on_clock = np.array([span.on_clock for span in spans], bool)
    place = _find_last_begun(begins, local)
    return local - shift[place], on_clock[place]


def _find_last_begun(begins: Instants, at: Instants) -> Instants:
    """The last place whose beginning is at or before each value; the first one before all."""
    return np.maximum(np.searchsorted(begins, at, side="right") - 1, 0)
