"""The change feed's columns, and how many changes become few ranges of event time. No Spark."""

from collections.abc import Iterable
from dataclasses import dataclass

CHANGE = "_change_type"
FEED = (CHANGE, "_commit_version", "_commit_timestamp")
"""The columns that Delta's change feed adds to those of the table."""
MOST, NEAR_US = 4, 86_400_000_000
"""Ranges that one batch may ask to be counted again, each a backfill of its own, and how far apart they have to be."""


@dataclass(frozen=True)
class Span:
    """Event times from `low_us` to `high_us`, both inside."""

    low_us: int
    high_us: int


def merged(spans: Iterable[Span], most: int = MOST) -> tuple[Span, ...]:
    """At most `most` spans that hold all of `spans`, in order and more than a day apart, with as little between as can be."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda s: s.low_us):
        if found and span.low_us <= found[-1].high_us + NEAR_US:
            found[-1] = Span(found[-1].low_us, max(found[-1].high_us, span.high_us))
        else:
            found.append(span)
    while len(found) > most:
        n = min(range(len(found) - 1), key=lambda i: found[i + 1].low_us - found[i].high_us)
        found[n : n + 2] = [Span(found[n].low_us, found[n + 1].high_us)]
    return tuple(found)
