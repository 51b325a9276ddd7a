"""Commits a chunk of a backfill between its intent and its done entry in the ledger.

A chunk that was killed is done again by the next command that resumes the pipeline.
"""

from dataclasses import replace
from json import dumps, loads

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.microbatch.admission import count_lost_values, keep_null_counts
from jobs.microbatch.context import Closing, RunContext
from jobs.preflight.tables import table_versions
from jobs.recompute import totals
from jobs.recompute.accepted import accepted_rows
from jobs.recompute.rebuild import check_limit_of_range, rebuild_range
from jobs.recompute.rebuild_sessions import rebuild_sessions
from jobs.recompute.refused import resolve_refused_rows
from jobs.recompute.staging import Staged, context_of_chunk, stage_chunk
from jobs.recompute.swap import swap_ids
from jobs.recompute.time_range import TimeRange
from windowing.admit.again import INSIDE
from windowing.crash import crashpoint
from windowing.ledger.rule import (
    BACKFILL_DONE,
    BACKFILL_INTENT,
    GENERATION,
    LedgerEntry,
    LedgerHistory,
)
from windowing.ledger.table import record_entries
from windowing.source.rule import pending_changes
from windowing.spec.pipeline import Pipeline


def finish_open_chunk(
    spark: SparkSession, pipeline: Pipeline, past: LedgerHistory
) -> LedgerHistory:
    """Finishes the chunk that a killed backfill left open, and returns the history since.

    The history is returned as it is when there is no such chunk.
    """
    left = past.open_backfill
    if left is None:
        return past
    said = loads(left.note or "{}")
    asked = said.get("asked")
    chunk = TimeRange(
        said["from_us"],
        said["to_us"],
        said["version"],
        said.get("batch"),
        asked and (asked[0], asked[1]),
    )
    return repair_chunk(
        spark, pipeline, past, stage_chunk(spark, pipeline, past, chunk, left.arrival), left
    )[0]


def repair_chunk(
    spark: SparkSession,
    pipeline: Pipeline,
    past: LedgerHistory,
    staged: Staged,
    begun: LedgerEntry | None,
) -> tuple[LedgerHistory, LedgerEntry]:
    """Rebuilds one chunk between its intent and its done entry.

    `begun` is the intent of a chunk that was interrupted; None for a chunk that begins now. Returns
    the history since and the done entry.
    """
    chunk, batch = staged.chunk, context_of_chunk(spark, pipeline, past, staged.arrival_us)
    disputed = [(low, high) for _, low, high in pending_changes(past)]
    events = accepted_rows(batch, chunk, staged.rows, disputed).localCheckpoint(eager=True)
    if begun is None:
        check_limit_of_range(batch, chunk, events)
        counts = {
            **totals.count_accepted_before(batch, chunk, events),
            **totals.count_partly_late_in(batch, chunk),
        }
        at = batch.arrival_us
        intent = LedgerEntry(
            BACKFILL_INTENT,
            generation=GENERATION,
            run=past.last_run,
            at=at,
            arrival=at,
            counts=counts,
            note=_note(chunk),
        )
        past = record_entries(spark, pipeline, past, [intent])
        begun = past.entries[-1]
        crashpoint("backfill.intended")
    changed = _repaired(batch, staged, events, past, f"backfill {begun.seq}")
    partial = {name: n for name, n in begun.counts.items() if name.startswith("partial.")}
    counts = {
        **changed,
        **partial,
        "accepted": totals.count_accepted_since(batch, chunk, events, begun.counts),
    }
    done = replace(
        begun, step=BACKFILL_DONE, counts=counts, versions=table_versions(spark, pipeline)
    )
    past = record_entries(spark, pipeline, past, [done])
    crashpoint("backfill.done")
    return past, done


def _note(chunk: TimeRange) -> str:
    said = {
        "from_us": chunk.start_us,
        "to_us": chunk.end_us,
        "version": chunk.version,
        "batch": chunk.batch,
    }
    return dumps(said | ({"asked": list(chunk.asked)} if chunk.asked else {}))


def _repaired(
    batch: RunContext, staged: Staged, events: DataFrame, past: LedgerHistory, label: str
) -> dict[str, int]:
    chunk = staged.chunk
    counts = rebuild_range(
        Closing(batch, past.watermark, past.watermark, None), chunk, events, rebuild_sessions
    )
    crashpoint("backfill.rebuilt")
    swap_ids(batch, chunk, events)
    crashpoint("backfill.remembered")
    resolve_refused_rows(batch, chunk, staged.rows, events, label)
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
