"""Swaps the rows of a range in one commit: of a table, of the accepted ids, of fragments."""

from pyspark.sql import DataFrame

from jobs.microbatch.context import RunContext
from jobs.recompute.time_range import TimeRange
from windowing.admit.again import INSIDE
from windowing.columns import FIRST, LAST
from windowing.crash import crashpoint
from windowing.panes import events as buffer
from windowing.panes.rule import SEEN, fragments_table
from windowing.spec.kinds import Session
from windowing.storage import delta, own_tables, upkeep
from windowing.storage.merges import swap_rows


def swap_ids(batch: RunContext, chunk: TimeRange, events: DataFrame) -> None:
    """Replaces the ids accepted in the chunk by those of `events`."""
    event_id = batch.pipeline.source.event_id
    if event_id is None:
        return
    ids = buffer.select_ids(events.where(INSIDE), event_id)
    replace_range(batch, SEEN, batch.stamp.on(ids), "event_time", chunk)


def replace_range(
    batch: RunContext, table: str, rows: DataFrame, column: str, chunk: TimeRange
) -> None:
    """Replaces rows of `table` whose `column` lies in the chunk by `rows`, in one commit."""
    path = batch.pipeline.table(table)
    if chunk.is_everything:
        upkeep.overwrite(rows, path)
    else:
        upkeep.replace_between(rows, path, column, chunk.start_us, chunk.end_us)
    crashpoint("state.swapped")


def swap_fragments(batch: RunContext, window: Session, old: DataFrame, new: DataFrame) -> None:
    """Replaces the fragments `old` by the fragments `new`, in one commit."""
    path = batch.pipeline.table(fragments_table(window))
    stamped = batch.stamp.on(new)
    ids = [*batch.keys, FIRST, LAST, "generation", "batch"]
    own_tables.create(batch.spark, path, stamped.schema, delta.properties(stamped.schema))
    swap_rows(path, old.select(*stamped.columns), stamped, ids)
    crashpoint("state.swapped")
