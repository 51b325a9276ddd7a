"""How long ago, as a histogram: whole microseconds -> counts by length. Values from values."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from windowing.spec.duration import DAY, HOUR, MINUTE, Duration

EDGES = (
    MINUTE,
    5 * MINUTE,
    15 * MINUTE,
    HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    30 * DAY,
    365 * DAY,
)
"""The longest length of each bar, inside; the last bar has all that are longer."""
SHARES = (50, 90, 99, 100)
"""Percent of the rows of which it is said what length contains them."""


@dataclass(frozen=True)
class Ages:
    """How many lengths lie in each bar, and by percent of them the length that none exceeds.

    `bars` has one count for each of `EDGES` and one for all that are longer. `within` is empty
    where there is no length.
    """

    bars: tuple[int, ...]
    within: Mapping[int, int]

    @property
    def total(self) -> int:
        """How many lengths there are."""
        return sum(self.bars)


def count_ages(lengths_us: Iterable[int]) -> Ages:
    """The histogram of these lengths; one that is not positive lies in the first bar.

    >>> count_ages([MINUTE, 2 * MINUTE, 400 * DAY]).bars
    (1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
    >>> count_ages([10, 20, 30, 40]).within
    {50: 20, 90: 40, 99: 40, 100: 40}
    """
    ordered = sorted(lengths_us)
    bars = [0] * (len(EDGES) + 1)
    for length in ordered:
        bars[bisect_left(EDGES, length)] += 1
    within = {share: _find_within(ordered, share) for share in SHARES} if ordered else {}
    return Ages(tuple(bars), within)


def label_bars() -> tuple[str, ...]:
    """The name of each bar.

    >>> label_bars()[0], label_bars()[1], label_bars()[-1]
    ('up to 1 minute', 'up to 5 minutes', 'more than 365 days')
    """
    labels = [f"up to {Duration(edge)}" for edge in EDGES]
    return (*labels, f"more than {Duration(EDGES[-1])}")


def _find_within(ordered: Sequence[int], share: int) -> int:
    """The least length that `share` percent of the lengths do not exceed."""
    # Rounded up: of four lengths, 90 percent are four.
    rank = -(-len(ordered) * share // 100)
    return ordered[rank - 1]
