"""The change feed's columns, how many changes become few ranges of event time, and which are not counted again yet. No Spark."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from json import loads
from typing import Any

from windowing.ledger.rule import BACKFILL_DONE, DONE, Entry, Story

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


def pending(past: Story) -> Iterator[tuple[int, int, int]]:
    """(batch, from, to) of every range that no backfill has counted again since, oldest first."""
    noted = {
        e.batch: _said(e).get("ranges", ())
        for e in past.entries
        if e.step == DONE and e.batch is not None
    }
    ended = [_said(e) for e in past.entries if e.step == BACKFILL_DONE]
    done = {(said.get("batch"), said.get("from_us")) for said in ended}
    yield from (
        (batch, low, high)
        for batch, ranges in noted.items()
        for low, high in ranges
        if (batch, low) not in done
    )


def fed(past: Story) -> bool:
    """Whether the source was seen to change its past, by this spec or an earlier one."""
    return any("ranges" in _said(e) for e in past.entries if e.step == DONE)


def _said(entry: Entry) -> dict[str, Any]:
    said: dict[str, Any] = loads(entry.note) if entry.note and entry.note.startswith("{") else {}
    return said
