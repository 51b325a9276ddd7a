"""What a source changed in its past and no backfill has counted again yet. No Spark."""

from collections.abc import Iterator
from json import loads
from typing import Any

from windowing.ledger.rule import BACKFILL_DONE, DONE, Entry, Story


def pending(past: Story) -> Iterator[tuple[int, int, int]]:
    """(batch, from, to) of every range that no backfill has counted again since, oldest first."""
    noted = {e.batch: _said(e).get("ranges", ()) for e in past.entries if e.step == DONE and e.batch is not None}
    ended = [_said(e) for e in past.entries if e.step == BACKFILL_DONE]
    done = {(said.get("batch"), said.get("from_us")) for said in ended}
    yield from ((batch, low, high) for batch, ranges in noted.items() for low, high in ranges if (batch, low) not in done)


def _said(entry: Entry) -> dict[str, Any]:
    said: dict[str, Any] = loads(entry.note) if entry.note and entry.note.startswith("{") else {}
    return said
