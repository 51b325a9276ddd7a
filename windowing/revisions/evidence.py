"""What says which events a step has accepted into a window: ledger, kind and bounds. No Spark.

step of the ledger -> versions of the source that a run read, or the name by which refused rows know
a backfill; value of a window -> the event times that decide
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from windowing.columns import END, START
from windowing.grid.placing import InChains, InOrder
from windowing.grid.zone import micros
from windowing.ledger.erased import Erasures, find_erasures
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import (
    BACKFILL_INTENT,
    CLOSE,
    ERASE_INTENT,
    ERASE_LIST,
    LedgerEntry,
)
from windowing.revisions.rule import Cause, Step
from windowing.source.rule import was_rewritten
from windowing.spec.description import describe_window
from windowing.spec.kinds import Window
from windowing.storage.stream_offsets import (
    is_before_snapshot,
    is_inside_version,
    read_version_at,
)


@dataclass(frozen=True)
class Untold:
    """It is not known which events a step has accepted, for a `reason` that is a clause."""

    reason: str


@dataclass(frozen=True)
class Bounds:
    """Event times from `start_us` (inclusive) to `end_us` (exclusive); None where there is none."""

    start_us: int | None
    end_us: int | None


@dataclass(frozen=True)
class RunRead:
    """What a run has read: the rows that the source has at version `until`, and not at `since`.

    With a `since` that is None it began with all rows of a version, which was `seen_at` or a later
    one. `watermark_us` is W when it began, `arrivals` are those of its batches, and `erased` was
    kept out of them.
    """

    run: int
    source_id: str | None
    since: int | None
    until: int
    seen_at: int
    watermark_us: int | None
    arrivals: frozenset[int]
    erased: Erasures


@dataclass(frozen=True)
class NothingRead:
    """A run that has read no row."""


@dataclass(frozen=True)
class Resolved:
    """What a backfill has accepted of what had been refused: rows that are resolved by `label`.

    `watermark_us` is W when it began.
    """

    label: str
    watermark_us: int | None


Evidence = RunRead | NothingRead | Resolved | Untold


def find_evidence(past: LedgerHistory, step: Step | None) -> Evidence:
    """What says which events a step has accepted."""
    if step is None:
        return Untold("what made the value is not recorded")
    if step.cause is Cause.RUN and step.run is not None:
        return _find_read(past, step.run)
    if step.cause is Cause.BACKFILL and step.seq is not None:
        return _find_resolved(past, step.seq)
    return Untold(f"no run and no backfill made the value, but: {step.cause}")


def _find_read(past: LedgerHistory, run: int) -> RunRead | NothingRead | Untold:
    batches = {e.batch: e for e in past.done(run) if e.batch is not None}
    if not batches:
        return NothingRead()
    first, last = batches[min(batches)], batches[max(batches)]
    begun, ended = past.offsets(min(batches) - 1), past.offsets(max(batches))
    if ended is None or (begun is None and min(batches) > 0):
        return Untold(f"the ledger does not say which versions of the source run {run} read")
    if is_inside_version(ended) or (begun is not None and is_inside_version(begun)):
        return Untold(f"run {run} began or ended inside of a version of the source")
    if is_before_snapshot(ended):
        return Untold(f"the ledger does not say which versions of the source run {run} read")
    since = None if begun is None or is_before_snapshot(begun) else read_version_at(begun)
    until = read_version_at(ended)
    begins = since if since is not None else first.source_version
    return RunRead(
        run,
        last.source_id,
        since,
        until,
        until if begins is None else begins,
        first.watermark_in,
        frozenset(e.arrival for e in batches.values() if e.arrival is not None),
        _find_erased(past, last),
    )


def _find_erased(past: LedgerHistory, until: LedgerEntry) -> Erasures:
    """The keys and values whose rows were kept out at an entry of the ledger."""
    steps = (ERASE_INTENT, ERASE_LIST)
    earlier = [e for e in past.entries if e.step in steps and e.seq < until.seq]
    return find_erasures(entry.note for entry in earlier)


def _find_resolved(past: LedgerHistory, seq: int) -> Resolved | Untold:
    """By the entry `seq`, with which a backfill has ended."""
    if was_rewritten(past):
        return Untold("the source has changed rows, so not every row of a backfill was refused")
    earlier = [entry for entry in past.entries if entry.seq < seq]
    begun = [entry.seq for entry in earlier if entry.step == BACKFILL_INTENT]
    if not begun:
        return Untold("the ledger does not say when the backfill began")
    closed = [entry.watermark_out for entry in earlier if entry.step == CLOSE]
    return Resolved(f"backfill {begun[-1]}", closed[-1] if closed else None)


def find_bounds(
    window: Window, identity: Mapping[str, Any], values: Mapping[str, Any] | None
) -> Bounds | Untold:
    """The event times of a window's row that had these `values`.

    An event of its key that its run has accepted, and that was not late for this window, is in it
    exactly where its time lies between them. The end of a session is that of its value.
    """
    placing = describe_window(window).placing
    if placing is None:
        return Bounds(None, None)
    if isinstance(placing, InOrder):
        kind = describe_window(window).kind
        return Untold(
            f"which events are in a {kind} window depends on the order of all events of its key"
        )
    row = {**identity, **(values or {})}
    if isinstance(placing, InChains) and values is None:
        return Untold("the output did not have the session then")
    try:
        start, end = (micros(datetime.fromisoformat(row[name])) for name in (START, END))
    except ValueError:
        return Untold("the window lies beyond the years 1 to 9999")
    return Bounds(start, end)
