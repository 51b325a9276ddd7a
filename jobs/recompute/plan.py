"""Plans a backfill: its chunks, the source version, and whether it resumes an earlier one.

It resumes a backfill of the same range that was stopped before its end.
"""

from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from json import loads

from jobs.diagnosis.spec_changes import spec_difference
from jobs.recompute.time_range import TimeRange
from windowing.errors import UsageError
from windowing.grid.range import Range
from windowing.grid.zone import FIRST_US, LAST_US, micros, moment
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import (
    BACKFILL_DONE,
    ERASE_DONE,
    ERASE_INTENT,
    ERASE_LIST,
    EVOLVE_DONE,
    PERIOD_INTENT,
    LedgerEntry,
    find_times,
)
from windowing.report.text import interval
from windowing.spec.duration import DAY
from windowing.spec.pipeline import Pipeline

CHUNK_US = 31 * DAY


def must_be_the_same(pipeline: Pipeline, began: LedgerHistory, now: LedgerHistory) -> None:
    """UsageError if the pipeline is no longer the one that the backfill began with.

    It is another one once it was reset, rows were erased, or the spec has changed.
    """
    entries_since = now.entries[len(began.entries) :]
    if not _has_same_past(began, now):
        why = "was reset"
    elif any(entry.step in (ERASE_INTENT, ERASE_DONE) for entry in entries_since):
        why = "had a key or a value erased"
    elif any(entry.step == ERASE_LIST for entry in entries_since):
        why = "had an erasure lifted"
    elif any(entry.step == PERIOD_INTENT for entry in entries_since):
        why = "was closed or reopened"
    elif spec_difference(pipeline, now):
        why = "was given another spec"
    else:
        return
    raise UsageError(
        f"{pipeline.name} {why} while this backfill was running, so its staged rows are stale; "
        "rerun the backfill"
    )


def _has_same_past(began: LedgerHistory, now: LedgerHistory) -> bool:
    """Whether the ledger still has the entry that was its last one when the backfill began."""
    if not began.entries:
        return True
    place = len(began.entries) - 1
    if place >= len(now.entries):
        return False
    then, since = began.entries[place], now.entries[place]
    return (since.step, since.at) == (then.step, then.at)


def select_chunks_of(entries: Iterable[LedgerEntry], asked: tuple[int, int]) -> list[LedgerEntry]:
    """Those of the entries that have ended a chunk of a backfill of that range."""
    done = [entry for entry in entries if entry.step == BACKFILL_DONE]
    return [entry for entry in done if loads(entry.note or "{}").get("asked") == list(asked)]


def begun_before(left: LedgerHistory, chunk: TimeRange) -> LedgerEntry | None:
    """The entry of `chunk` in an unfinished backfill of the same range; None without one.

    It is the done entry of the chunk, or its intent if the chunk was left open.
    """
    if chunk.asked is None:
        return None
    entries: list[LedgerEntry] = []
    for entry in left.entries:
        if entry.step in (ERASE_LIST, ERASE_DONE, EVOLVE_DONE):
            # Other rows are valid or copies since, and some are erased no more.
            entries = []
        elif entry.step == BACKFILL_DONE:
            entries.append(entry)
    if left.open_backfill is not None:
        entries.append(left.open_backfill)
    for entry in reversed(entries):
        note = loads(entry.note or "{}")
        # Another range was backfilled since, so this one begins anew.
        if note.get("asked") != list(chunk.asked):
            return None
        # The chunk that ends with the range is its last one, so that backfill is finished.
        if entry.step == BACKFILL_DONE and note["to_us"] == chunk.asked[1]:
            return None
        if note["from_us"] == chunk.start_us and note["to_us"] >= chunk.end_us:
            return entry
    return None


def chunks_of(
    pipeline: Pipeline, start: datetime, end: datetime, past: LedgerHistory
) -> tuple[tuple[int, int], ...]:
    """The chunks [from, to) of a backfill of [start, end), in order, in microseconds.

    They end where the times end that an event can have. A chunk may be longer than 31 days where it
    reaches before the first event accepted so far or after the last. UsageError where the range has
    no chunks.
    """
    if pipeline.source.event_time.column is None:
        raise UsageError(
            f"{pipeline.name}: events happen when they arrive (event_time: arrival), "
            "so there is no past to backfill"
        )
    low, high = check_bounds(start, end)
    times = find_times(past.entries) or Range(low, low)
    since = min(max(times.low_us, low), high)
    until = min(max(times.high_us, low), high)
    # Times without events cost nothing, so the first chunk reaches 31 days past the first event at
    # most, and the last chunk takes all that is left once the events end.
    first_cut = low + ((since - low) // CHUNK_US + 1) * CHUNK_US
    cuts = range(first_cut, min(until + 1, high), CHUNK_US)
    return tuple(pairwise([low, *cuts, high]))


def check_bounds(start: datetime, end: datetime) -> tuple[int, int]:
    """The bounds in microseconds, within the times that an event can have.

    UsageError where they are no range or enclose no such time.
    """
    if start.tzinfo is None or end.tzinfo is None:
        raise UsageError(
            "a backfill's bounds are times with an offset, such as 2013-01-01T00:00:00+00:00"
        )
    if start >= end:
        raise UsageError(
            f"--from {start.isoformat()} is not before --to {end.isoformat()}; "
            "the range is [from, to)"
        )
    low, high = max(micros(start), FIRST_US), min(micros(end), LAST_US + 1)
    if low >= high:
        possible = interval(moment(FIRST_US), moment(LAST_US + 1))
        raise UsageError(
            f"--from {start.isoformat()} and --to {end.isoformat()} enclose no time that an event "
            f"can have; give a range that overlaps {possible}"
        )
    return low, high


def read_version(pipeline: Pipeline, past: LedgerHistory) -> int:
    """The source version that the last run had drained; UsageError before there is one."""
    if past.read_version is None:
        raise UsageError(
            f"{pipeline.name}: nothing has been read yet, so there is nothing to backfill; "
            "`tidemark run` first"
        )
    return past.read_version
