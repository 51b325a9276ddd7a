"""How much of a window has arrived by an age, which is the time since its end.

The share is learned from windows of the same history, also from those that are not complete yet: an
event that has not arrived is missing in the youngest windows only, and each age is learned from the
windows that have reached it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windowing.grid.boundaries import Flags, Instants

FEW_WINDOWS = 5
FEW_EVENTS = 100
"""From fewer windows that have ended, or fewer events in them, no share is learned."""
CHECKED = (0.5, 0.9, 0.99)
"""At the ages with these expected shares a curve is compared with what arrived later."""


@dataclass(frozen=True)
class Pairs:
    """Of each event in each window the window's start and end, and when the event arrived.

    `number` tells windows apart whose lengths differ: those of one period that cumulate.
    """

    start: Instants
    end: Instants
    arrived: Instants
    number: Instants

    def select(self, chosen: Flags) -> "Pairs":
        """Those where the array is true."""
        return Pairs(
            self.start[chosen], self.end[chosen], self.arrived[chosen], self.number[chosen]
        )


@dataclass(frozen=True)
class ShareCurve:
    """The share of a window's events that has arrived from each of the `ages` on, ascending."""

    ages: Instants
    shares: NDArray[np.float64]

    def find_share(self, age_us: int) -> float:
        """The share that has arrived at an age; below 0 the window has not ended."""
        place = int(np.searchsorted(self.ages, age_us, side="right"))
        return float(self.shares[place - 1]) if place else 0.0

    def find_age(self, share: float) -> int:
        """The first of the ages at which so much has arrived."""
        place = int(np.searchsorted(self.shares, share))
        return int(self.ages[min(place, len(self.ages) - 1)])


@dataclass(frozen=True)
class Check:
    """At an age so much was expected of some windows, learned before they began, and so much `was`.

    It is the share of what has arrived of them up to the end of the history.
    """

    age_us: int
    expected: float
    was: float
    windows: int


def learn_curve(pairs: Pairs, until_us: int) -> ShareCurve | None:
    """The curve by what arrived up to an instant; None where that is too little.

    It is the product-limit estimate for durations that are only seen once they have ended
    (Lynden-Bell, 1971; insurers know it as chain ladder).
    """
    known = pairs.select(pairs.arrived <= until_us)
    ended = known.end[known.end <= until_us]
    if len(np.unique(ended)) < FEW_WINDOWS or len(ended) < FEW_EVENTS:
        return None
    ages, counts = np.unique(known.arrived - known.end, return_counts=True)
    reached = np.sort(until_us - known.end)
    # Those that arrived by an age, without those whose windows have not reached it.
    at_risk = np.cumsum(counts) - np.searchsorted(reached, ages)
    # Where nothing else could have arrived earlier, an age says nothing about earlier ones.
    kept = np.where(at_risk > counts, 1 - counts / np.maximum(at_risk, 1), 1.0)
    later = np.append(np.cumprod(kept[:0:-1])[::-1], 1.0)
    return ShareCurve(ages, later)


def check_curve(pairs: Pairs, middle_us: int, until_us: int) -> tuple[Check, ...]:
    """A curve learned up to the middle of a history, compared with the windows that began then.

    Those windows count that are by now as old as a nearly complete one. None of them: no check.
    """
    curve = learn_curve(pairs, middle_us)
    if curve is None:
        return ()
    complete_us = until_us - max(0, curve.find_age(0.999))
    later = pairs.select((pairs.start >= middle_us) & (pairs.end <= complete_us))
    windows = len(np.unique(later.end))
    if windows < FEW_WINDOWS:
        return ()
    found = []
    for share in CHECKED:
        age = curve.find_age(share)
        was = float(np.mean(later.arrived - later.end <= age))
        found.append(Check(age, curve.find_share(age), was, windows))
    return tuple(found)
