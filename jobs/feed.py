"""A source that changes its past: what its change feed says was updated or deleted becomes backfills of the event times it was at.

    rows of the feed -> inserts, which are events like any others
                     -> updates, deletes -> few ranges of event time, kept with the batch -> after the run, a backfill of each
"""

from json import dumps

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.admission import Batch, timed
from jobs.chunk import one
from jobs.repair import Chunk
from jobs.staging import stage
from windowing.columns import T as TIME
from windowing.grid.zone import FIRST_US, LAST_US
from windowing.ledger.rule import Entry, Story
from windowing.source import frame as source
from windowing.source.rule import CHANGE, FEED, Span, merged, pending
from windowing.spec.pipeline import Pipeline

_HOUR_US = 3_600_000_000


def inserted(rows: DataFrame) -> DataFrame:
    """The rows that are new; all of them where the source is read without its change feed."""
    return rows.where(F.col(CHANGE) == "insert").drop(*FEED) if CHANGE in rows.columns else rows


def note_of(batch: Batch, rows: DataFrame) -> str | None:
    """What the ledger keeps of updates and deletes: the ranges to count again; None where there are none."""
    spans = _spans(batch, rows) if CHANGE in rows.columns else ()
    return dumps({"ranges": [[span.low_us, span.high_us + 1] for span in spans]}) if spans else None


def corrected(spark: SparkSession, pipeline: Pipeline, past: Story) -> tuple[Entry, ...]:
    """Counts every range again that the source's changes touched; the ends of the backfills that did it."""
    ends: list[Entry] = []
    for batch, low, high in pending(past):
        staged = stage(spark, pipeline, past, Chunk(low, high, past.read_version or 0, batch))
        past, end = one(spark, pipeline, past, staged, None)
        ends.append(end)
    return tuple(ends)


def _spans(batch: Batch, rows: DataFrame) -> tuple[Span, ...]:
    """The event times of rows that were changed or taken away, before and after, as few spans."""
    moved = source.shaped(_moved(rows, batch.pipeline.source.event_id).drop(*FEED), batch.pipeline)
    placed = timed(batch, moved).where(F.col(TIME).between(FIRST_US, LAST_US))
    hours = placed.groupBy((F.col(TIME) / _HOUR_US).cast("bigint")).agg(F.min(TIME).alias("low"), F.max(TIME).alias("high"))
    return merged(Span(row["low"], row["high"]) for row in hours.collect())


def _moved(rows: DataFrame, event_id: str | None) -> DataFrame:
    """Updated and deleted rows, and the new place of events whose id was at another one before."""
    changed = rows.where(F.col(CHANGE) != "insert")
    if event_id is None:
        return changed
    ids = changed.select(F.col(f"`{event_id}`").alias("__id")).distinct()
    inserted = rows.where(F.col(CHANGE) == "insert")
    return changed.unionByName(inserted.join(ids, F.col(f"`{event_id}`") == F.col("__id"), "left_semi"))
