"""Ranges of time with both ends inside. No Spark."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """Times from `low_us` to `high_us`, both inside, in microseconds since 1970."""

    low_us: int
    high_us: int

    def widen(self, by_us: int) -> "Range":
        """The range and so much time before and after it."""
        return Range(self.low_us - by_us, self.high_us + by_us)

    def cover(self, other: "Range") -> "Range":
        """The least range that contains both."""
        return Range(min(self.low_us, other.low_us), max(self.high_us, other.high_us))


def cover_known(ranges: Iterable[Range | None]) -> Range | None:
    """The least range that contains all; None where one of them is not known, or there are none."""
    whole: Range | None = None
    for times in ranges:
        if times is None:
            return None
        whole = times if whole is None else whole.cover(times)
    return whole


def split_ranges(ranges: Iterable[Range], within: Range | None) -> tuple[list[Range], list[Range]]:
    """What of the ranges lies inside `within`, and what outside; all are inside where it is None.

    >>> split_ranges([Range(0, 9)], Range(5, 7))
    ([Range(low_us=5, high_us=7)], [Range(low_us=0, high_us=4), Range(low_us=8, high_us=9)])
    """
    if within is None:
        return [*ranges], []
    inside, outside = [], []
    for times in ranges:
        low, high = max(times.low_us, within.low_us), min(times.high_us, within.high_us)
        if low > high:
            outside.append(times)
            continue
        inside.append(Range(low, high))
        if times.low_us < low:
            outside.append(Range(times.low_us, low - 1))
        if times.high_us > high:
            outside.append(Range(high + 1, times.high_us))
    return inside, outside


def subtract_ranges(ranges: Iterable[Range], others: Iterable[Range]) -> list[Range]:
    """What of the ranges lies in none of the others.

    >>> subtract_ranges([Range(0, 9)], [Range(0, 3), Range(6, 7)])
    [Range(low_us=4, high_us=5), Range(low_us=8, high_us=9)]
    """
    left = [*ranges]
    for other in others:
        _, left = split_ranges(left, other)
    return left
