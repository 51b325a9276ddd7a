"""A chunk of a backfill in the ledger: intent, repair, done; a chunk that was killed is done again by whoever comes next."""

from dataclasses import replace
from datetime import UTC, datetime
from json import dumps, loads

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs import repair
from jobs.admission import Batch
from jobs.closing import Closing
from jobs.rebuild import rebuild, sessions
from jobs.repair import Chunk
from jobs.tables import versions
from windowing.admit.again import INSIDE
from windowing.crash import crashpoint
from windowing.grid.zone import micros
from windowing.ledger.rule import BACKFILL_DONE, BACKFILL_INTENT, GENERATION, Entry, Story
from windowing.ledger.table import record
from windowing.panes.table import BACKFILLED, Stamp
from windowing.spec.pipeline import Pipeline


def finish(spark: SparkSession, pipeline: Pipeline, past: Story) -> Story:
    """Does again the chunk that a killed backfill left half-way; the story as it is when there is none."""
    left = past.open_backfill
    if left is None:
        return past
    asked = loads(left.note or "{}")
    chunk = Chunk(asked["from_us"], asked["to_us"], asked["version"], asked.get("batch"))
    return one(spark, pipeline, past, chunk, left)[0]


def one(spark: SparkSession, pipeline: Pipeline, past: Story, chunk: Chunk, begun: Entry | None) -> tuple[Story, Entry]:
    """One chunk between its intent and its done."""
    arrival = max(micros(datetime.now(UTC)), past.last_arrival or 0)
    batch = Batch(spark, pipeline, Stamp(past.last_run, BACKFILLED, GENERATION, None), (begun and begun.arrival) or arrival)
    if begun is None:
        before = repair.accepted_in(batch, chunk)
        note = dumps({"from_us": chunk.start_us, "to_us": chunk.end_us, "version": chunk.version, "batch": chunk.batch})
        counts = {"before": before, **repair.partial_in(batch, chunk)}
        intent = Entry(BACKFILL_INTENT, generation=GENERATION, run=past.last_run, at=arrival, arrival=arrival, counts=counts, note=note)
        past = record(spark, pipeline, past, [intent])
        begun = past.entries[-1]
        crashpoint("backfill.intended")
    changed = _repaired(batch, chunk, past.watermark, f"backfill {begun.seq}")
    partial = {name: n for name, n in begun.counts.items() if name.startswith("partial.")}
    accepted = repair.accepted_in(batch, chunk) - begun.counts.get("before", 0)
    counts = {**changed, **partial, "accepted": accepted}
    done = replace(begun, step=BACKFILL_DONE, counts=counts, versions=versions(spark, pipeline))
    past = record(spark, pipeline, past, [done])
    crashpoint("backfill.done")
    return past, done


def _repaired(batch: Batch, chunk: Chunk, watermark_us: int | None, label: str) -> dict[str, int]:
    events = repair.counted(batch, chunk).localCheckpoint(eager=True)
    counts = rebuild(Closing(batch, watermark_us, watermark_us, None), chunk, events, sessions)
    crashpoint("backfill.rebuilt")
    repair.swap_ids(batch, chunk, events)
    crashpoint("backfill.remembered")
    repair.resolve(batch, chunk, events, label)
    crashpoint("backfill.resolved")
    return {**counts, "read": events.where(F.col(INSIDE)).count()}
