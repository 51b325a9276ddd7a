"""Events by group: how many there are, and how late. Groups are numbers from 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from windowing.advise.history import Judged
from windowing.advise.rule import rank_of
from windowing.grid.boundaries import Instants

HALF, MOST, NEARLY_ALL, ALL = (Fraction(n, 1000) for n in (500, 990, 999, 1000))
SHARES = (HALF, MOST, NEARLY_ALL, ALL)
"""Of which shares of events it is told how late they are at most."""


@dataclass(frozen=True)
class Lateness:
    """How late `events` are, each of `SHARES` at most, by both measures of `Judged`."""

    group: int
    events: int
    behind_us: tuple[int, ...]
    age_us: tuple[int, ...]


def measure_all(judged: Judged) -> Lateness:
    """How late all events are; there is at least one."""
    (found,) = measure_groups(judged, np.zeros(len(judged.age), np.int64))
    return found


def measure_groups(judged: Judged, group: Instants) -> list[Lateness]:
    """How late the events of each group are that has any, in order of the groups."""
    numbers, counts = np.unique(group, return_counts=True)
    behind = _find_quantiles(judged.behind, group, counts)
    age = _find_quantiles(judged.age, group, counts)
    each = zip(numbers.tolist(), counts.tolist(), behind, age, strict=True)
    return [Lateness(*values) for values in each]


def find_middles(lengths: Instants, group: Instants, groups: int) -> Instants:
    """By group, of so many, the length that half of its lengths don't exceed; 0 without any."""
    numbers, counts = np.unique(group, return_counts=True)
    found = np.zeros(groups, np.int64)
    found[numbers] = [middle for (middle,) in _find_quantiles(lengths, group, counts, (HALF,))]
    return found


def _find_quantiles(
    lengths: Instants, group: Instants, counts: Instants, shares: Sequence[Fraction] = SHARES
) -> list[tuple[int, ...]]:
    """By group, in order, the length that each of the shares of its lengths doesn't exceed."""
    ordered = lengths[np.lexsort((lengths, group))]
    found = []
    begin = 0
    for count in counts.tolist():
        ranks = [begin + rank_of(share, count) - 1 for share in shares]
        found.append(tuple(ordered[ranks].tolist()))
        begin += count
    return found
