"""Sessions of a chunk, or of the whole history: their fragments are swapped, and what those touch is recomputed."""

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import Batch
from jobs.microbatch.outputs import written
from jobs.recompute.swap import replace, swap_fragments
from jobs.recompute.time_range import Chunk, near_sessions
from windowing import delta
from windowing.admit.again import INSIDE
from windowing.columns import FIRST, LAST, MISSED, START, TOUCHED
from windowing.columns import T as TIME
from windowing.grid.frame import instant
from windowing.merge import frame as merges
from windowing.merge.rule import bounds, complete
from windowing.panes import frame as partials
from windowing.panes.rule import fragments_table
from windowing.source import table as source
from windowing.spec.kinds import Session
from windowing.windows import session


def sessions(batch: Batch, window: Session, chunk: Chunk, events: DataFrame) -> dict[str, int]:
    """Swaps the fragments of every session with an event time in the chunk and recomputes what they and the new ones touch."""
    algebras = partials.algebras(
        batch.pipeline,
        window.aggregates,
        source.read(batch.spark, batch.pipeline, chunk.version).schema,
    )
    target = complete(batch.pipeline, window)
    kept = partials.parts(algebras.values())
    spans = near_sessions(batch, window, chunk).localCheckpoint(eager=True)
    fresh = partials.fragments(
        _members(events, spans, window, batch.keys), batch.keys, window.gap_us, kept
    ).localCheckpoint(eager=True)
    stored = delta.read(batch.spark, target.path)
    joined = session.touched(stored, fresh, batch.keys, window.gap_us).join(
        spans, [*batch.keys, START], "left_anti"
    )
    joined = joined.localCheckpoint(eager=True)
    path = batch.pipeline.table(fragments_table(window))
    fragments = (
        delta.read(batch.spark, path)
        if delta.exists(batch.spark, path)
        else batch.stamp.on(fresh).limit(0)
    )
    others = (
        session.members(fragments, joined, batch.keys)
        .select(*fresh.columns)
        .localCheckpoint(eager=True)
    )
    swap_fragments(batch, window, _leaving(batch, fragments, spans, chunk), fresh)
    marked = fresh.unionByName(others).withColumn(TOUCHED, F.lit(1).cast("bigint"))
    found = session.windows(marked, batch.keys, window.gap_us, kept)
    new = merges.values(found, [*batch.keys, *bounds(window)], window.aggregates, algebras)
    changed = merges.replacements(new, spans.unionByName(joined.select(*spans.columns)), target)
    return written(batch, window, target, changed)


def _members(
    events: DataFrame, spans: DataFrame, window: Session, keys: Iterable[str]
) -> DataFrame:
    """The events of the chunk and those of the sessions it reaches into, as far as they were admitted to `window`."""
    bounds = spans.select(
        *keys, F.unix_micros(START).alias("__low"), F.unix_micros(LAST).alias("__high")
    )
    same = [F.col(f"e.`{k}`") == F.col(f"s.`{k}`") for k in keys]
    near = F.col(TIME).between(F.col("__low"), F.col("__high"))
    outside = events.where(
        ~F.col(INSIDE) & ~F.coalesce(F.array_contains(MISSED, window.name), F.lit(False))
    )
    return events.where(INSIDE).unionByName(
        outside.alias("e").join(bounds.alias("s"), [*same, near], "left_semi")
    )


def _leaving(batch: Batch, fragments: DataFrame, spans: DataFrame, chunk: Chunk) -> DataFrame:
    """The fragments that the chunk's new ones replace: those of `spans`, and what a try that was killed had put into the chunk."""
    over = (F.col(FIRST) < instant(chunk.end_us)) & (F.col(LAST) >= instant(chunk.start_us))
    return (
        session.members(fragments, spans, batch.keys).unionByName(fragments.where(over)).distinct()
    )


def all_sessions(batch: Batch, window: Session, whole: Chunk, events: DataFrame) -> dict[str, int]:
    """Overwrites the fragments of `window` and corrects its complete table."""
    schema = source.read(batch.spark, batch.pipeline, whole.version).schema
    algebras = partials.algebras(batch.pipeline, window.aggregates, schema)
    target, kept = complete(batch.pipeline, window), partials.parts(algebras.values())
    members = events.where(~F.coalesce(F.array_contains(MISSED, window.name), F.lit(False)))
    fresh = partials.fragments(members, batch.keys, window.gap_us, kept).localCheckpoint(eager=True)
    replace(batch, fragments_table(window), batch.stamp.on(fresh), "first_event", whole)
    found = session.windows(
        fresh.withColumn(TOUCHED, F.lit(1).cast("bigint")), batch.keys, window.gap_us, kept
    )
    new = merges.values(found, [*batch.keys, *bounds(window)], window.aggregates, algebras)
    return written(
        batch,
        window,
        target,
        merges.replacements(new, delta.read(batch.spark, target.path), target),
    )
