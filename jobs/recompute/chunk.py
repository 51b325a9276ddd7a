"""Commits a chunk of a backfill between its intent and its done entry in the ledger.

A chunk that was killed is done again by the next command that resumes the pipeline.
"""

from dataclasses import replace
from json import dumps, loads

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.diagnosis.tables import table_versions
from jobs.microbatch.admission import count_lost_values, keep_null_counts
from jobs.microbatch.context import Closing, RunContext
from jobs.recompute import totals
from jobs.recompute.accepted import accepted_rows
from jobs.recompute.copies import record_copies
from jobs.recompute.rebuild import rebuild_range
from jobs.recompute.rebuild_panes import check_limit_of_range
from jobs.recompute.refused import resolve_refused_rows
from jobs.recompute.staging import Staged, context_of_chunk, stage_chunk
from jobs.recompute.swap import swap_ids
from jobs.recompute.time_range import TimeRange
from windowing.admit.again import INSIDE
from windowing.admit.outcomes import ERASED
from windowing.crash import crashpoint
from windowing.ledger.rule import (
    BACKFILL_DONE,
    BACKFILL_INTENT,
    LedgerEntry,
    LedgerExcerpt,
)
from windowing.ledger.table import Past, record_entries
from windowing.source.rule import unsettled_ranges
from windowing.spec.pipeline import Pipeline
from windowing.storage.pinned_rows import pin_rows


def finish_open_chunk(spark: SparkSession, pipeline: Pipeline, past: Past) -> Past:
    """Finishes the chunk that a killed backfill left open, and returns the history since.

    The history is returned as it is when there is no such chunk.
    """
    left = past.open_backfill
    if left is None:
        return past
    chunk = _parse_note(left.note or "{}")
    staged = stage_chunk(spark, pipeline, past, chunk, left.arrival)
    past, _ = repair_chunk(spark, pipeline, past, staged, left)
    return past


def _parse_note(text: str) -> TimeRange:
    """The chunk that the note of its ledger entry describes."""
    note = loads(text)
    asked = note.get("asked")
    return TimeRange(
        note["from_us"],
        note["to_us"],
        note["version"],
        note.get("batch"),
        (asked[0], asked[1]) if asked else None,
    )


def _compose_note(chunk: TimeRange) -> str:
    """The chunk as JSON for its ledger entry."""
    note: dict[str, object] = {
        "from_us": chunk.start_us,
        "to_us": chunk.end_us,
        "version": chunk.version,
        "batch": chunk.batch,
    }
    if chunk.asked:
        note["asked"] = list(chunk.asked)
    return dumps(note)


def repair_chunk(
    spark: SparkSession,
    pipeline: Pipeline,
    past: Past,
    staged: Staged,
    begun: LedgerEntry | None,
) -> tuple[Past, LedgerEntry]:
    """Rebuilds one chunk between its intent and its done entry.

    `begun` is the intent of a chunk that was interrupted; None for a chunk that begins now. Returns
    the history since and the done entry.
    """
    chunk = staged.chunk
    batch = context_of_chunk(spark, pipeline, past, staged.arrival_us)
    disputed = unsettled_ranges(past)
    events = pin_rows(accepted_rows(batch, chunk, staged.rows, disputed))
    if begun is None:
        check_limit_of_range(batch, chunk, events)
        intent = _compose_intent(batch, past, chunk, events)
        past = record_entries(pipeline, past, [intent])
        begun = past.entries[-1]
        crashpoint("backfill.intended")
    changed = _write_chunk(batch, staged, events, past, f"backfill {begun.seq}")
    partial = {name: n for name, n in begun.counts.items() if name.startswith("partial.")}
    accepted = totals.count_accepted_since(batch, past, chunk, events, begun.counts)
    counts = {**changed, **partial, "accepted": accepted}
    if staged.erased:
        counts[ERASED] = staged.erased
    done = replace(
        begun,
        step=BACKFILL_DONE,
        at=batch.read_clock(),
        counts=counts,
        versions=table_versions(pipeline),
    )
    past = record_entries(pipeline, past, [done])
    crashpoint("backfill.done")
    return past, done


def _compose_intent(
    batch: RunContext, past: LedgerExcerpt, chunk: TimeRange, events: DataFrame
) -> LedgerEntry:
    """The intent of a chunk that begins now, with the counts that its done entry is compared by."""
    before = totals.count_accepted_before(batch, past, chunk, events)
    partial = totals.count_partly_late_in(batch, chunk)
    return LedgerEntry(
        BACKFILL_INTENT,
        run=past.last_run,
        at=batch.arrival_us,
        arrival=batch.arrival_us,
        counts={**before, **partial},
        note=_compose_note(chunk),
    )


def _write_chunk(
    batch: RunContext, staged: Staged, events: DataFrame, past: LedgerExcerpt, label: str
) -> dict[str, int]:
    """Swaps state and ids of the chunk, corrects outputs and resolves refused rows as `label`.

    Copies without an outcome are recorded. Returns the counts of the outputs and of the events.
    """
    chunk = staged.chunk
    # The watermark does not move, so no window closes by this.
    closing = Closing(batch, past.watermark, past.watermark, None)
    counts = rebuild_range(closing, chunk, events)
    crashpoint("backfill.rebuilt")
    swap_ids(batch, chunk, events)
    crashpoint("backfill.remembered")
    resolve_refused_rows(batch, chunk, staged.rows, events, label)
    record_copies(batch, staged.rows, events)
    crashpoint("backfill.resolved")
    return {**counts, **_count_events(batch.pipeline, events)}


def _count_events(pipeline: Pipeline, events: DataFrame) -> dict[str, int]:
    """How many events of the chunk are accepted now, and how many lost a computed value.

    The latter are counted for each computed column.
    """
    inside = F.col(INSIDE)
    counted = events.agg(F.count_if(inside).alias("read"), *count_lost_values(pipeline, inside))
    (row,) = counted.collect()
    return {"read": row["read"], **keep_null_counts(row)}
