"""Rebuilds the windows by order of events of a chunk: swaps its events, recomputes their keys."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import RunContext
from jobs.microbatch.ordered import prepare_keys
from jobs.recompute.swap import replace_range
from jobs.recompute.time_range import TimeRange
from windowing.admit.again import INSIDE
from windowing.columns import CLOSED_BY, END, JUDGED, START
from windowing.grid.frame import instant
from windowing.grid.range import Range
from windowing.grid.zone import FIRST_US, LAST_US
from windowing.panes import events as buffer
from windowing.panes.rule import EVENTS
from windowing.source import table as source
from windowing.spec.description import describe_window
from windowing.spec.kinds import OrderDependent, RecordSliding
from windowing.storage import own_tables
from windowing.storage.pinned_rows import pin_rows


def rebuild_events(batch: RunContext, chunk: TimeRange, events: DataFrame) -> dict[str, int]:
    """Swaps the buffered events of the chunk and recomputes the windows of their keys.

    Those are the keys that have an event there, or had a window there before. Where everything is
    rebuilt, windows of all times are recomputed, because an earlier spec may have left some before
    the first event and after the last. Returns the counts of the outputs.
    """
    pipeline = batch.pipeline
    buffered = buffer.buffer_events(events.where(INSIDE), pipeline, JUDGED)
    over = chunk
    if chunk.is_everything:
        over = chunk.move_to(Range(FIRST_US, LAST_US))
    keys = buffered.select(*batch.keys)
    for window in pipeline.ordered:
        keys = keys.unionByName(_keys_in(batch, window, over))
    # Computed here because every window needs them, and their tables are corrected one by one.
    keys = pin_rows(keys.distinct())
    replace_range(batch, EVENTS, batch.stamp.beside(buffered), "event_time", chunk)
    reached = keys.withColumns(
        {"__t0": F.lit(over.times.low_us), "__t1": F.lit(over.times.high_us)}
    )
    schema = source.read(batch.spark, pipeline, chunk.version).schema
    counts: dict[str, int] = {}
    for window in pipeline.ordered:
        stored = own_tables.read(batch.spark, pipeline.table(EVENTS))
        counts |= prepare_keys(batch, window, reached, stored, None, schema)()
    return counts


def _keys_in(batch: RunContext, window: OrderDependent, chunk: TimeRange) -> DataFrame:
    """The keys that have a window over the chunk, or one that was closed there.

    The windows are read as the last finished step left them.
    """
    stored = batch.read_complete(window)
    beside_us = window.tick_us if isinstance(window, RecordSliding) else 0
    over = (F.col(START) < instant(chunk.end_us + beside_us)) & (
        F.col(END) > instant(chunk.start_us)
    )
    if describe_window(window).closed_by_event:
        over = over | F.col(CLOSED_BY).between(instant(chunk.start_us), instant(chunk.end_us))
    return stored.where(over).select(*batch.keys)
