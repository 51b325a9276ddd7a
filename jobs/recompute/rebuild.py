"""One chunk of a backfill, its state and windows: the state of the range is swapped, the windows that overlap are recomputed.

Every write replaces a range or is a MERGE of what differs, so a chunk that was killed is simply done again.
"""

from collections.abc import Callable, Collection
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import Batch, Closing
from jobs.microbatch.emission import changes
from jobs.microbatch.empty_windows import affordable as affordable_in
from jobs.microbatch.empty_windows import spanned
from jobs.microbatch.ordered import recomputed
from jobs.microbatch.outputs import rederive, written
from jobs.recompute.swap import replace
from jobs.recompute.time_range import Chunk, Everything, reaching, widened
from windowing import delta
from windowing.admit.again import INSIDE
from windowing.aggregates.algebra import Algebra, rows_part
from windowing.columns import CLOSED_BY, END, JUDGED, PANE, ROWS, START, TOUCHED
from windowing.grid.frame import between, instant
from windowing.grid.zone import FIRST_US, LAST_US
from windowing.ledger.rule import total
from windowing.merge import frame as merges
from windowing.merge.rule import bounds, complete, in_output, output
from windowing.panes import events as buffer
from windowing.panes import frame as partials
from windowing.panes.frame import Range
from windowing.panes.rule import EVENTS, Family, families, span
from windowing.source import table as source
from windowing.spec.kinds import (
    CHANGES,
    ON_CHANGE,
    Aligned,
    Counted,
    Global,
    Ordered,
    RecordSliding,
    Session,
)
from windowing.windows import aligned, whole
from windowing.windows.gaps import extents, filled

Sessions = Callable[[Batch, Session, Chunk, DataFrame], dict[str, int]]


def rebuild(
    closing: Closing, chunk: Chunk, events: DataFrame, sessions: Sessions
) -> dict[str, int]:
    """Swaps the state of the chunk and corrects every output; `events` are those that count now, `sessions` does it for sessions.

    Returns the counts of the outputs.
    """
    batch = closing.batch
    counts: dict[str, int] = {}
    for family in families(batch.pipeline):
        counts |= panes(closing, family, chunk, events)
    for session_window in batch.pipeline.sessions:
        counts |= sessions(batch, session_window, chunk, events)
    if batch.pipeline.ordered:
        counts |= buffered(batch, chunk, events)
    for window in batch.pipeline.windows:
        if not in_output(window):
            counts = total([counts, rederive(closing, window)])
    return counts


def affordable(batch: Batch, chunk: Chunk, events: DataFrame, came: Collection[str] = ()) -> None:
    """StateRefused if the chunk would bring an output more windows without events than it may have; nothing is written.

    Where everything is made anew, the windows that `came` alone bring any.
    """
    anew = isinstance(chunk, Everything)
    for family in families(batch.pipeline):
        for window in (w for w in family.windows if filled(w) and (not anew or w.name in came)):
            before, after = _pools(batch, family, _held(batch, family, chunk), events)
            affordable_in(
                batch, window, None if anew else before, after, Range(chunk.start_us, chunk.end_us)
            )


def _pools(
    batch: Batch, family: Family, held: Chunk, events: DataFrame
) -> tuple[DataFrame, DataFrame]:
    """All panes of the family as they are, and with those of the times `held` made anew: [keys, pane_start, judged_by, rows]."""
    within, columns = Range(held.start_us, held.end_us), [*batch.keys, PANE, JUDGED, ROWS]
    fresh = partials.panes(
        events.where(held.holds()), (*batch.keys, JUDGED), family, [rows_part()], within
    ).select(*columns)
    path = batch.pipeline.table(family.table)
    before = (
        delta.read(batch.spark, path).select(*columns)
        if delta.exists(batch.spark, path)
        else fresh.limit(0)
    )
    low, high = instant(held.start_us), instant(held.end_us)
    others = (
        before.limit(0)
        if isinstance(held, Everything)
        else before.where((F.col(PANE) < low) | (F.col(PANE) >= high))
    )
    return before, others.unionByName(fresh)


def panes(closing: Closing, family: Family, chunk: Chunk, events: DataFrame) -> dict[str, int]:
    """Swaps the panes of the chunk and recomputes every window that overlaps them."""
    batch, wide = closing.batch, widened(family, chunk)
    held = _held(batch, family, chunk)
    schema = source.read(batch.spark, batch.pipeline, chunk.version).schema
    algebras = partials.algebras(batch.pipeline, family.aggregates, schema)
    within = Range(held.start_us, held.end_us)
    kept = partials.parts(algebras.values())
    fresh = partials.panes(events.where(held.holds()), (*batch.keys, JUDGED), family, kept, within)
    replace(batch, family.table, batch.stamp.beside(fresh), PANE, held)
    counts: dict[str, int] = {}
    for window in family.windows:
        own = {a.name: algebras[a.name] for a in window.aggregates}
        counts |= (
            _endless(batch, window, family, own)
            if isinstance(window, Global)
            else _overlapping(closing, window, family, wide, own)
        )
    return counts


def _held(batch: Batch, family: Family, chunk: Chunk) -> Chunk:
    """The times whose panes are made anew."""
    return (
        widened(family, chunk) if isinstance(chunk, Everything) else reaching(batch, family, chunk)
    )


def _endless(
    batch: Batch, window: Global, family: Family, algebras: dict[str, Algebra]
) -> dict[str, int]:
    target = output(batch.pipeline, window)
    state_rows = delta.read(batch.spark, batch.pipeline.table(family.table)).withColumn(
        TOUCHED, F.lit(1).cast("bigint")
    )
    found = whole.windows(state_rows, batch.keys, partials.parts(algebras.values()))
    valued = merges.values(found, [*batch.keys, *bounds(window)], window.aggregates, algebras)
    shown = merges.qualifying(valued, window.shown.having)
    return written(
        batch,
        window,
        target,
        merges.replacements(shown, delta.read(batch.spark, target.path), target),
    )


def _overlapping(
    closing: Closing, window: Aligned, family: Family, wide: Chunk, algebras: dict[str, Algebra]
) -> dict[str, int]:
    batch, target, kept = (
        closing.batch,
        output(closing.batch.pipeline, window),
        partials.parts(algebras.values()),
    )
    stored, state_rows = (
        delta.read(batch.spark, target.path),
        delta.read(batch.spark, batch.pipeline.table(family.table)),
    )
    if filled(window):
        ends = spanned(state_rows, Range(wide.start_us, wide.end_us))
        near, reach, over = (
            state_rows,
            Range(ends.low_us - span(window), ends.high_us + span(window)),
            F.lit(True),
        )
    else:
        reach = aligned.reach(window, Range(wide.start_us, wide.end_us))
        near = between(state_rows, PANE, reach.low_us, reach.high_us)
        over = _over(window, wide, reach)
    panes_of = near.withColumn(TOUCHED, F.lit(1).cast("bigint"))
    lateness = batch.pipeline.watermark.allowed_lateness_us
    runs = aligned.stretches(panes_of, window, batch.keys, kept, lateness, reach)
    if filled(window):
        all_of = extents(near, window, batch.keys, lateness, reach)
        runs = runs.unionByName(aligned.empties(all_of, runs, window, batch.keys, kept))
    if window.shown.emit == CHANGES:
        rows = changes(runs, window, batch, algebras, reach)
    else:
        rows = merges.values(
            aligned.windows(runs, window, reach),
            [*batch.keys, *bounds(window)],
            window.aggregates,
            algebras,
        )
    shown = merges.qualifying(
        rows if window.shown.emit == ON_CHANGE else rows.where(closing.closed(F.col(END))),
        window.shown.having,
    )
    return written(
        batch, window, target, merges.replacements(shown.where(over), stored.where(over), target)
    )


def _over(window: Aligned, wide: Chunk, reach: Range) -> Column:
    """True for windows that overlap the chunk or, where they are compared with the one before, follow one that does.

    All of them where everything is made anew: an earlier spec may have left some.
    """
    if isinstance(wide, Everything):
        return F.lit(True)
    overlaps = (F.col(START) < instant(wide.end_us)) & (F.col(END) > instant(wide.start_us))
    if window.shown.emit != CHANGES:
        return overlaps
    after = aligned.kind(window).following(window, F.lit(wide.end_us - 1), reach)
    return overlaps if after is None else overlaps | (F.unix_micros(START) == after)


def buffered(batch: Batch, chunk: Chunk, events: DataFrame) -> dict[str, int]:
    """Swaps the buffered events of the chunk and recomputes the windows of every key that has or had one there.

    Where everything is made anew, an earlier spec may have left windows before the first event and after the last.
    """
    pipeline, spark = batch.pipeline, batch.spark
    now = buffer.stored(events.where(INSIDE), pipeline, JUDGED)
    over = Chunk(FIRST_US, LAST_US + 1, chunk.version) if isinstance(chunk, Everything) else chunk
    held = [_keys_in(batch, window, over) for window in pipeline.ordered]
    keys = (
        reduce(DataFrame.unionByName, held, now.select(*batch.keys))
        .distinct()
        .localCheckpoint(eager=True)
    )
    replace(batch, EVENTS, batch.stamp.beside(now), "event_time", chunk)
    reached = keys.withColumns({"__t0": F.lit(over.start_us), "__t1": F.lit(over.end_us - 1)})
    schema = source.read(spark, pipeline, chunk.version).schema
    counts: dict[str, int] = {}
    for window in pipeline.ordered:
        counts |= recomputed(
            batch, window, reached, delta.read(spark, pipeline.table(EVENTS)), None, schema
        )
    return counts


def _keys_in(batch: Batch, window: Ordered, chunk: Chunk) -> DataFrame:
    """The keys that have a window over the chunk, or one that was closed there: as the last finished step left them."""
    stored = delta.read(batch.spark, complete(batch.pipeline, window).path)
    beside_us = window.tick_us if isinstance(window, RecordSliding) else 0
    over = (F.col(START) < instant(chunk.end_us + beside_us)) & (
        F.col(END) > instant(chunk.start_us)
    )
    if isinstance(window, Counted):
        over = over | F.col(CLOSED_BY).between(instant(chunk.start_us), instant(chunk.end_us))
    return stored.where(over).select(*batch.keys)
