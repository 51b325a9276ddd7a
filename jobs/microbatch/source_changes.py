"""A source that changes its past: what its change feed says was updated or deleted, as the event times it was at.

updates, deletes -> few ranges of event time, kept with the batch -> after the run, a backfill of each
"""

from functools import reduce
from json import dumps

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.admission import timed
from jobs.microbatch.context import Batch
from windowing import delta
from windowing.columns import T as TIME
from windowing.grid.frame import between
from windowing.grid.zone import FIRST_US, LAST_US
from windowing.ledger.rule import Story
from windowing.panes.rule import SEEN
from windowing.source import frame as source
from windowing.source.rule import CHANGE, FEED, Span, merged, pending

_HOUR_US = 3_600_000_000


def note_of(batch: Batch, rows: DataFrame, past: Story) -> str | None:
    """What the ledger keeps of updates and deletes: the ranges to count again; None where there are none."""
    spans = _spans(batch, rows, past) if CHANGE in rows.columns else ()
    return dumps({"ranges": [[span.low_us, span.high_us + 1] for span in spans]}) if spans else None


def _spans(batch: Batch, rows: DataFrame, past: Story) -> tuple[Span, ...]:
    """The event times of rows that were changed or taken away, before and after, as few spans."""
    moved = _moved(batch, source.shaped(rows, batch.pipeline), past).drop(*FEED)
    placed = timed(batch, moved).where(F.col(TIME).between(FIRST_US, LAST_US))
    hours = placed.groupBy((F.col(TIME) / _HOUR_US).cast("bigint")).agg(
        F.min(TIME).alias("low"), F.max(TIME).alias("high")
    )
    return merged(Span(row["low"], row["high"]) for row in hours.collect())


def _moved(batch: Batch, rows: DataFrame, past: Story) -> DataFrame:
    """Updated and deleted rows, and the new place of events whose id was at another one before."""
    changed, event_id = rows.where(F.col(CHANGE) != "insert"), batch.pipeline.source.event_id
    if event_id is None:
        return changed
    name = F.col(f"`{event_id}`").cast("string")
    ids = reduce(
        DataFrame.unionByName, [changed.select(name.alias("__id")), *_unsettled(batch, past)]
    ).distinct()
    new = rows.where(F.col(CHANGE) == "insert")
    return changed.unionByName(new.join(ids, name == F.col("__id"), "left_semi"))


def _unsettled(batch: Batch, past: Story) -> list[DataFrame]:
    """The ids that earlier batches accepted where the source has changed since, and nothing was counted again yet: [__id]."""
    ranges, path = list(pending(past)), batch.pipeline.table(SEEN)
    if not ranges or not delta.exists(batch.spark, path):
        return []
    seen = delta.read(batch.spark, path).where(batch.stamp.foreign)
    return [
        between(seen, "event_time", low, high).select(F.col("event_id").alias("__id"))
        for _, low, high in ranges
    ]
