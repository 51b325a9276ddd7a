"""A source that changes its past: the event times of rows that its change feed updated or deleted.

updates, deletes -> few ranges of event time, recorded with the batch
-> a backfill of each after the run
"""

from functools import reduce
from json import dumps

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.admission import add_event_time
from jobs.microbatch.context import RunContext
from windowing import delta
from windowing.columns import TIME
from windowing.grid.frame import between
from windowing.grid.zone import FIRST_US, LAST_US
from windowing.ledger.rule import LedgerExcerpt
from windowing.panes.rule import SEEN
from windowing.source import frame as source
from windowing.source.rule import CHANGE, FEED, Span, merge_spans, pending_changes

_HOUR_US = 3_600_000_000


def note_of(batch: RunContext, rows: DataFrame, past: LedgerExcerpt) -> str | None:
    """The ranges to reprocess for the updates and deletes of a batch, as JSON for the ledger.

    Each range is [low, high) in microseconds; None where nothing was updated or deleted.
    """
    if CHANGE not in rows.columns:
        return None
    spans = _find_changed_spans(batch, rows, past)
    if not spans:
        return None
    ranges = [[span.low_us, span.high_us + 1] for span in spans]
    return dumps({"ranges": ranges})


def _find_changed_spans(
    batch: RunContext, rows: DataFrame, past: LedgerExcerpt
) -> tuple[Span, ...]:
    """The event times of updated and deleted rows, before and after the change, as few spans.

    Both ends of a span are inclusive.
    """
    changed = _select_changed(batch, source.shape_rows(rows, batch.pipeline), past)
    placed = add_event_time(batch, changed.drop(*FEED))
    in_range = placed.where(F.col(TIME).between(FIRST_US, LAST_US))
    # Grouping by hour keeps what is collected small however many rows were changed.
    hour = (F.col(TIME) / _HOUR_US).cast("bigint")
    by_hour = in_range.groupBy(hour).agg(F.min(TIME).alias("low"), F.max(TIME).alias("high"))
    spans = [Span(row["low"], row["high"]) for row in by_hour.collect()]
    return merge_spans(spans)


def _select_changed(batch: RunContext, rows: DataFrame, past: LedgerExcerpt) -> DataFrame:
    """Updated and deleted rows, and inserted rows whose event id was somewhere else before."""
    changed = rows.where(F.col(CHANGE) != "insert")
    event_id = batch.pipeline.source.event_id
    if event_id is None:
        return changed
    id_text = F.col(f"`{event_id}`").cast("string")
    changed_ids = changed.select(id_text.alias("__id"))
    id_frames = [changed_ids, *_read_unsettled_ids(batch, past)]
    ids = reduce(DataFrame.unionByName, id_frames).distinct()
    inserted = rows.where(F.col(CHANGE) == "insert")
    moved = inserted.join(ids, id_text == F.col("__id"), "left_semi")
    return changed.unionByName(moved)


def _read_unsettled_ids(batch: RunContext, past: LedgerExcerpt) -> list[DataFrame]:
    """The accepted ids in ranges that the source has changed and no backfill has reprocessed yet.

    One frame for each such range: [__id].
    """
    ranges = list(pending_changes(past))
    path = batch.pipeline.table(SEEN)
    if not ranges or not delta.exists(batch.spark, path):
        return []
    seen = delta.read(batch.spark, path).where(batch.stamp.foreign)
    found = []
    for _, low, high in ranges:
        in_range = between(seen, "event_time", low, high)
        found.append(in_range.select(F.col("event_id").alias("__id")))
    return found
