"""How many events of a range count, before it is recomputed and after, as the ledger keeps it."""

from collections.abc import Callable, Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import Batch
from jobs.recompute.time_range import Chunk, widened
from windowing import delta
from windowing.admit.again import INSIDE, LIVE
from windowing.admit.frame import PARTIAL
from windowing.columns import PANE, ROWS
from windowing.grid.frame import between
from windowing.merge.rule import output
from windowing.panes.rule import EVENTS, families, fragments_table


def accepted_before(batch: Batch, chunk: Chunk, events: DataFrame) -> Mapping[str, int]:
    """How many of the events that the chunk is compared by were accepted before: as panes say or, where they may be gone, events.

    Those of keys that no output shows were erased.
    """
    held_now = accepted_in(batch, chunk)
    if not batch.worn or (chunk.batch is not None and held_now):
        return {"before": held_now}
    outputs = [
        delta.read(batch.spark, output(batch.pipeline, w).path).select(*batch.keys)
        for w in batch.pipeline.windows
    ]
    shown = reduce(DataFrame.unionByName, outputs).distinct()
    return {
        "before": events.where(F.col(INSIDE) & F.col(LIVE))
        .join(shown, list(batch.keys), "left_semi")
        .count(),
        "by_events": 1,
    }


def accepted_since(batch: Batch, chunk: Chunk, events: DataFrame, before: Mapping[str, int]) -> int:
    """How many more than `before` count once the chunk is repaired."""
    now = events.where(INSIDE).count() if "by_events" in before else accepted_in(batch, chunk)
    return now - before.get("before", 0)


def accepted_in(batch: Batch, chunk: Chunk) -> int:
    """How many events of the chunk (widened to panes) the state holds; where only sessions do, all there are."""
    if not _any(batch):
        return 0
    for family in families(batch.pipeline)[:1]:
        panes, wide = (
            delta.read(batch.spark, batch.pipeline.table(family.table)),
            widened(family, chunk),
        )
        return _summed(between(panes, PANE, wide.start_us, wide.end_us))
    if batch.pipeline.ordered:
        events = delta.read(batch.spark, batch.pipeline.table(EVENTS))
        return between(events, "event_time", chunk.start_us, chunk.end_us).count()
    return held(batch)


def _any(batch: Batch) -> bool:
    """Whether anything was ever accepted."""
    tables = [
        *(f.table for f in families(batch.pipeline)),
        *map(fragments_table, batch.pipeline.sessions),
        EVENTS,
    ]
    return any(delta.exists(batch.spark, batch.pipeline.table(table)) for table in tables)


def held(batch: Batch) -> int:
    """How many events count; those that came too late for a session window are not in its fragments."""
    for family in families(batch.pipeline)[:1]:
        if delta.exists(batch.spark, batch.pipeline.table(family.table)):
            return _summed(delta.read(batch.spark, batch.pipeline.table(family.table)))
    for window in batch.pipeline.sessions[:1]:
        if delta.exists(batch.spark, path := batch.pipeline.table(fragments_table(window))):
            return _summed(delta.read(batch.spark, path)) + still_partial(batch).get(window.name, 0)
    events = batch.pipeline.table(EVENTS)
    return delta.read(batch.spark, events).count() if delta.exists(batch.spark, events) else 0


def _summed(partials: DataFrame) -> int:
    return int(partials.agg(F.coalesce(F.sum(ROWS), F.lit(0))).collect()[0][0])


def partial_in(batch: Batch, chunk: Chunk) -> dict[str, int]:
    """How many events of the chunk missed each window and were not taken in since, as the ledger counts them back."""
    found = still_partial(
        batch, lambda late: between(late, "event_time", chunk.start_us, chunk.end_us)
    )
    return {f"partial.{name}": -n for name, n in found.items()}


def still_partial(
    batch: Batch, of: Callable[[DataFrame], DataFrame] = lambda late: late
) -> dict[str, int]:
    """By window how many events missed it and were not taken in since, among the rows that `of` leaves of `_late`."""
    if not delta.exists(batch.spark, batch.pipeline.table("_late")):
        return {}
    late = of(delta.read(batch.spark, batch.pipeline.table("_late")))
    open_rows = late.where((F.col("outcome") == PARTIAL) & F.col("resolved_by").isNull())
    names = open_rows.select(F.explode("missed.window").alias("window")).groupBy("window").count()
    return {str(row["window"]): int(row["count"]) for row in names.collect()}
