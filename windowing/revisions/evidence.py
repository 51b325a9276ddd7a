"""What says which events a step has accepted into a window: ledger, kind and bounds. No Spark.

step of the ledger -> versions of the source that a run read, or the name by which refused rows know
a backfill; value of a window -> the event times that decide
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from windowing.columns import END, START
from windowing.grid.placing import InChains, InOrder
from windowing.grid.range import Range
from windowing.grid.zone import micros
from windowing.ledger.erased import Erasures, find_erasures, is_lifted
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import (
    BACKFILL_DONE,
    BACKFILL_INTENT,
    CLOSE,
    DONE,
    ERASE_INTENT,
    ERASE_LIST,
    LedgerEntry,
    find_times,
)
from windowing.revisions.rule import Cause, Step, describe_step
from windowing.source.rule import ends_with_changes, read_range, was_rewritten
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


def join_bounds(bounds: Iterable[Bounds]) -> Bounds:
    """The bounds around all of these; ValueError where there are none.

    >>> join_bounds([Bounds(0, 10), Bounds(5, 20)])
    Bounds(start_us=0, end_us=20)
    >>> join_bounds([Bounds(0, 10), Bounds(None, None)])
    Bounds(start_us=None, end_us=None)
    """
    starts, ends = zip(*((each.start_us, each.end_us) for each in bounds), strict=True)
    start_us = None if None in starts else min(starts)
    end_us = None if None in ends else max(ends)
    return Bounds(start_us, end_us)


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


def list_steps_into(past: LedgerHistory, since: int, bounds: Bounds) -> tuple[Step, ...]:
    """The runs and backfills behind entry `since` that may have accepted events in a window.

    A run is told by its first batch that may have. Changes of the source that were reprocessed are
    among them.
    """
    steps: dict[tuple[Cause, int | None], Step] = {}
    for entry in past.entries:
        if entry.seq > since and _may_accept(entry, bounds):
            step = describe_step(entry)
            number = step.run if step.cause is Cause.RUN else step.seq
            steps.setdefault((step.cause, number), step)
    return tuple(steps.values())


def _may_accept(entry: LedgerEntry, bounds: Bounds) -> bool:
    """Whether a batch or a chunk of a backfill may have accepted event times within bounds."""
    if entry.step == BACKFILL_DONE:
        times = read_range(entry)
    elif entry.step == DONE and entry.counts.get("accepted"):
        times = find_times([entry])
    else:
        return False
    return times is None or _overlaps(bounds, times)


def _overlaps(bounds: Bounds, times: Range) -> bool:
    """Whether event times can lie within bounds."""
    is_before = bounds.end_us is not None and bounds.end_us <= times.low_us
    is_behind = bounds.start_us is not None and bounds.start_us > times.high_us
    return not is_before and not is_behind


def _find_read(past: LedgerHistory, run: int) -> RunRead | NothingRead | Untold:
    batches = {e.batch: e for e in past.done(run) if e.batch is not None}
    if not batches:
        return NothingRead()
    first, last = batches[min(batches)], batches[max(batches)]
    begun, ended = past.offsets(min(batches) - 1), past.offsets(max(batches))
    if ended is None or (begun is None and min(batches) > 0):
        return Untold(f"the ledger does not say which versions of the source run {run} read")
    if _ends_inside(past, min(batches) - 1) or _ends_inside(past, max(batches)):
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


def _ends_inside(past: LedgerHistory, batch: int) -> bool:
    """Whether a batch is known, and not known to have read a version of the source to its end."""
    offsets = past.offsets(batch)
    done = [entry for entry in past.entries if entry.step == DONE and entry.batch == batch]
    is_whole = bool(done) and ends_with_changes(done[-1])
    return offsets is not None and is_inside_version(offsets) and not is_whole


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
    if any(entry.step == ERASE_LIST and is_lifted(entry.note) for entry in earlier):
        return Untold("an erasure was lifted, so not every row of a backfill was refused")
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
