"""Changes of the source that are corrected by backfills. No Spark.

It has the change feed's columns, how many changes become few ranges of event time, and which
ranges are not reprocessed yet.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from json import loads
from typing import Any

from windowing.ledger.rule import BACKFILL_DONE, DONE, LedgerEntry, LedgerExcerpt

CHANGE = "_change_type"
FEED = (CHANGE, "_commit_version", "_commit_timestamp")
"""The columns that Delta's change feed adds to those of the table."""
MOST = 4
"""How many ranges one batch may have reprocessed, because each is a backfill of its own."""
CLOCK_SKEW_US = 3_600_000_000
"""How far the clock of a writer of the source may be ahead of ours."""
NEAR_US = 86_400_000_000
"""How far apart two ranges have to be not to become one."""


@dataclass(frozen=True)
class Span:
    """Event times from `low_us` to `high_us`, both inside."""

    low_us: int
    high_us: int


def merge_spans(spans: Iterable[Span], most: int = MOST) -> tuple[Span, ...]:
    """At most `most` spans that contain all of `spans`, in order and more than a day apart.

    Where there are more, the nearest neighbours are joined first.
    """
    found: list[Span] = []
    for span in sorted(spans, key=lambda s: s.low_us):
        if found and span.low_us <= found[-1].high_us + NEAR_US:
            last = found[-1]
            found[-1] = Span(last.low_us, max(last.high_us, span.high_us))
        else:
            found.append(span)

    def distance_after(n: int) -> int:
        return found[n + 1].low_us - found[n].high_us

    while len(found) > most:
        n = min(range(len(found) - 1), key=distance_after)
        found[n : n + 2] = [Span(found[n].low_us, found[n + 1].high_us)]
    return tuple(found)


def pending_changes(past: LedgerExcerpt) -> Iterator[tuple[int, int, int]]:
    """(batch, from, to) of every range that no backfill has reprocessed since, oldest first."""
    noted: dict[int, Any] = {}
    done = set()
    for entry in past.entries:
        if entry.step == DONE and entry.batch is not None:
            noted[entry.batch] = _read_note(entry).get("ranges", ())
        if entry.step == BACKFILL_DONE:
            note = _read_note(entry)
            done.add((note.get("batch"), note.get("from_us")))
    for batch, ranges in noted.items():
        for low, high in ranges:
            if (batch, low) not in done:
                yield batch, low, high


def was_rewritten(past: LedgerExcerpt) -> bool:
    """Whether the source was seen to change its past, by this spec or an earlier one."""
    return any("ranges" in _read_note(e) for e in past.entries if e.step == DONE)


def _read_note(entry: LedgerEntry) -> dict[str, Any]:
    """The note as JSON; nothing where the note is another text, such as an id."""
    if not entry.note or not entry.note.startswith("{"):
        return {}
    note: dict[str, Any] = loads(entry.note)
    return note
