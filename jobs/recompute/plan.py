"""Plans a backfill: its chunks, the source version, and whether it resumes an earlier one.

It resumes a backfill of the same range that was stopped before its end.
"""

from datetime import datetime
from itertools import pairwise
from json import loads

from jobs.preflight.spec_changes import spec_difference
from jobs.recompute.time_range import TimeRange
from windowing.errors import UsageError
from windowing.grid.zone import micros
from windowing.ledger.rule import (
    BACKFILL_DONE,
    ERASE_DONE,
    ERASE_INTENT,
    MAX_TIME,
    MIN_TIME,
    LedgerEntry,
    LedgerHistory,
)
from windowing.spec.duration import DAY
from windowing.spec.pipeline import Pipeline

CHUNK_US = 31 * DAY


def must_be_the_same(pipeline: Pipeline, began: LedgerHistory, now: LedgerHistory) -> None:
    """UsageError if the pipeline is no longer the one that the backfill began with.

    It is another one once it was reset, a key was erased, or the spec has changed.
    """
    same = now.entries[len(began.entries) - 1 : len(began.entries)]
    if [(e.step, e.at) for e in same] != [(e.step, e.at) for e in began.entries[-1:]]:
        why = "was reset"
    elif any(e.step in (ERASE_INTENT, ERASE_DONE) for e in now.entries[len(began.entries) :]):
        why = "had a key erased"
    elif spec_difference(pipeline, now):
        why = "was given another spec"
    else:
        return
    raise UsageError(
        f"{pipeline.name} {why} while this backfill was running, so its staged rows are stale; "
        "rerun the backfill"
    )


def begun_before(left: LedgerHistory, chunk: TimeRange) -> LedgerEntry | None:
    """The entry of `chunk` in an unfinished backfill of the same range; None without one.

    It is the done entry of the chunk, or its intent if the chunk was left open.
    """
    ends = [e for e in left.entries if e.step == BACKFILL_DONE]
    for entry in reversed([*ends, *([left.open_backfill] if left.open_backfill else [])]):
        said = loads(entry.note or "{}")
        finished_it = entry.step == BACKFILL_DONE and said["to_us"] == (chunk.asked or (0, 0))[1]
        if chunk.asked is None or said.get("asked") != list(chunk.asked) or finished_it:
            return None
        if said["from_us"] == chunk.start_us and said["to_us"] >= chunk.end_us:
            return entry
    return None


def chunks_of(
    pipeline: Pipeline, start: datetime, end: datetime, past: LedgerHistory
) -> tuple[tuple[int, int], ...]:
    """The chunks [from, to) of a backfill of [start, end), in order, in microseconds.

    A chunk may be longer than 31 days where it reaches before the first event accepted so far or
    after the last. UsageError where the range has no chunks.
    """
    if pipeline.source.event_time.column is None:
        raise UsageError(
            f"{pipeline.name}: events happen when they arrive (event_time: arrival), "
            "so there is no past to backfill"
        )
    low, high = _checked(start, end)
    since, until = (min(max(us, low), high) for us in _event_times(past) or (low, low))
    inner = range(low + ((since - low) // CHUNK_US + 1) * CHUNK_US, min(until + 1, high), CHUNK_US)
    return tuple(pairwise([low, *inner, high]))


def _event_times(past: LedgerHistory) -> tuple[int, int] | None:
    """The first and the last event time that any run has accepted; None before there is one."""
    batches = [e.counts for e in past.entries if MIN_TIME in e.counts]
    return (
        (min(c[MIN_TIME] for c in batches), max(c[MAX_TIME] for c in batches)) if batches else None
    )


def _checked(start: datetime, end: datetime) -> tuple[int, int]:
    if start.tzinfo is None or end.tzinfo is None:
        raise UsageError(
            "a backfill's bounds are times with an offset, such as 2013-01-01T00:00:00+00:00"
        )
    if start >= end:
        raise UsageError(
            f"--from {start.isoformat()} is not before --to {end.isoformat()}; "
            "the range is [from, to)"
        )
    return micros(start), micros(end)


def read_version(pipeline: Pipeline, past: LedgerHistory) -> int:
    """The source version that the last run had drained; UsageError before there is one."""
    if past.read_version is None:
        raise UsageError(
            f"{pipeline.name}: nothing has been read yet, so there is nothing to backfill; "
            "`tidemark run` first"
        )
    return past.read_version
