"""What settings of the watermark cost: waiting, corrections and windows that stay open."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from windowing.advise.ends import NEVER_US
from windowing.advise.groups import HALF, MOST
from windowing.advise.history import (
    UNKNOWN_US,
    History,
    Judged,
    find_bases,
    find_highest,
)
from windowing.advise.rule import Lengths, Margins, Settings
from windowing.grid.boundaries import Instants
from windowing.spec.pipeline import Watermark


@dataclass(frozen=True)
class Cost:
    """What settings would have done to the events of a history that were judged.

    So many events `miss` at least one window, are `refused` by all of theirs, or are `correcting`:
    accepted by a window that had closed. `corrections` are rows of outputs that such events change,
    each as often as a batch does so. Windows close so long after their end, by the clock: half of
    them within `wait_us`, and 99 % within `long_wait_us`; None where none has closed. `open_rows`
    are rows of outputs whose windows are not final when the history ends, None without a watermark.
    """

    settings: Settings
    events: int
    missing: int
    refused: int
    correcting: int
    corrections: int
    wait_us: int | None
    long_wait_us: int | None
    open_rows: int | None


@dataclass(frozen=True)
class Closings:
    """When windows end, and up to which event time the watermark had come by each batch.

    `highest` is what the watermark is the delay behind of once a batch has been read.
    """

    ends: Instants
    highest: Instants
    arrived: Instants

    def measure_waits(self, delay_us: int) -> Lengths:
        """How long after its end each window closed, by the clock, of those that did."""
        batch = np.searchsorted(self.highest, self.ends + delay_us)
        closed = batch < len(self.highest)
        return Lengths.of(self.arrived[batch[closed]] - self.ends[closed])


def find_closings(history: History, judged: Judged, watermark: Watermark) -> Closings:
    """The ends of the windows that events were in which arrived after the first batch."""
    highest = np.maximum(find_highest(history), find_bases(history, watermark))
    ends = np.unique(judged.ends.first)
    # What ended before the history began did not wait in it.
    began = int(highest[0]) if len(highest) else UNKNOWN_US
    within = (ends > began) & (ends != NEVER_US)
    return Closings(ends[within], highest, history.batches.arrived_us)


def find_cost(settings: Settings, margins: Margins, closings: Closings, open_rows: Lengths) -> Cost:
    """What the settings cost; `open_rows` is `find_open_rows` of the same history."""
    waits = closings.measure_waits(settings.delay_us)
    return Cost(
        settings,
        margins.first.total,
        margins.count_missed(settings),
        margins.count_refused(settings),
        margins.count_correcting(settings),
        margins.count_corrections(settings),
        _find_wait(waits, HALF),
        _find_wait(waits, MOST),
        open_rows.total - open_rows.count_from(settings.reach_us) if open_rows.total else None,
    )


def find_open_rows(history: History, judged: Judged, watermark: Watermark) -> Lengths:
    """By row of an output how far the highest event time is past its window's end at last.

    It is the window that ends last of those that an event is in, and below 0 before its end.
    """
    highest = np.maximum(find_highest(history), find_bases(history, watermark))
    order = np.lexsort((judged.ends.last, judged.events.key))
    key, end = judged.events.key[order], judged.ends.last[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (np.diff(key) != 0) | (np.diff(end) != 0)
    bounded = is_new & (end != NEVER_US)
    return Lengths.of(int(highest[-1]) - end[bounded])


def _find_wait(waits: Lengths, share: Fraction) -> int | None:
    return waits.quantile(share) if waits.total else None
