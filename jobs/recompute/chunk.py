"""A chunk of a backfill in the ledger: intent, repair, done; a chunk that was killed is done again by whoever comes next."""

from dataclasses import replace
from json import dumps, loads

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.microbatch.admission import count_lost_values, keep_null_counts
from jobs.microbatch.context import Batch, Closing
from jobs.preflight.tables import versions
from jobs.recompute import totals
from jobs.recompute.accepted import counted
from jobs.recompute.rebuild import affordable, rebuild
from jobs.recompute.rebuild_sessions import sessions
from jobs.recompute.refused import resolve
from jobs.recompute.staging import Staged, judge, stage
from jobs.recompute.swap import swap_ids
from jobs.recompute.time_range import Chunk
from windowing.admit.again import INSIDE
from windowing.crash import crashpoint
from windowing.ledger.rule import BACKFILL_DONE, BACKFILL_INTENT, GENERATION, Entry, Story
from windowing.ledger.table import record
from windowing.source.rule import pending
from windowing.spec.pipeline import Pipeline


def finish(spark: SparkSession, pipeline: Pipeline, past: Story) -> Story:
    """Does again the chunk that a killed backfill left half-way; the story as it is when there is none."""
    left = past.open_backfill
    if left is None:
        return past
    said = loads(left.note or "{}")
    asked = said.get("asked")
    chunk = Chunk(
        said["from_us"],
        said["to_us"],
        said["version"],
        said.get("batch"),
        asked and (asked[0], asked[1]),
    )
    return one(spark, pipeline, past, stage(spark, pipeline, past, chunk, left.arrival), left)[0]


def one(
    spark: SparkSession, pipeline: Pipeline, past: Story, staged: Staged, begun: Entry | None
) -> tuple[Story, Entry]:
    """One chunk between its intent and its done."""
    chunk, batch = staged.chunk, judge(spark, pipeline, past, staged.arrival_us)
    disputed = [(low, high) for _, low, high in pending(past)]
    events = counted(batch, chunk, staged.rows, disputed).localCheckpoint(eager=True)
    if begun is None:
        affordable(batch, chunk, events)
        counts = {**totals.accepted_before(batch, chunk, events), **totals.partial_in(batch, chunk)}
        at = batch.arrival_us
        intent = Entry(
            BACKFILL_INTENT,
            generation=GENERATION,
            run=past.last_run,
            at=at,
            arrival=at,
            counts=counts,
            note=_note(chunk),
        )
        past = record(spark, pipeline, past, [intent])
        begun = past.entries[-1]
        crashpoint("backfill.intended")
    changed = _repaired(batch, staged, events, past, f"backfill {begun.seq}")
    partial = {name: n for name, n in begun.counts.items() if name.startswith("partial.")}
    counts = {
        **changed,
        **partial,
        "accepted": totals.accepted_since(batch, chunk, events, begun.counts),
    }
    done = replace(begun, step=BACKFILL_DONE, counts=counts, versions=versions(spark, pipeline))
    past = record(spark, pipeline, past, [done])
    crashpoint("backfill.done")
    return past, done


def _note(chunk: Chunk) -> str:
    said = {
        "from_us": chunk.start_us,
        "to_us": chunk.end_us,
        "version": chunk.version,
        "batch": chunk.batch,
    }
    return dumps(said | ({"asked": list(chunk.asked)} if chunk.asked else {}))


def _repaired(
    batch: Batch, staged: Staged, events: DataFrame, past: Story, label: str
) -> dict[str, int]:
    chunk = staged.chunk
    counts = rebuild(Closing(batch, past.watermark, past.watermark, None), chunk, events, sessions)
    crashpoint("backfill.rebuilt")
    swap_ids(batch, chunk, events)
    crashpoint("backfill.remembered")
    resolve(batch, chunk, staged.rows, events, label)
    crashpoint("backfill.resolved")
    return {**counts, **_count_events(batch.pipeline, events)}


def _count_events(pipeline: Pipeline, events: DataFrame) -> dict[str, int]:
    """How many events of the chunk count now, and of how many a computed column lost the value."""
    inside = F.col(INSIDE)
    counted = events.agg(F.count_if(inside).alias("read"), *count_lost_values(pipeline, inside))
    (row,) = counted.collect()
    return {"read": row["read"], **keep_null_counts(row)}
