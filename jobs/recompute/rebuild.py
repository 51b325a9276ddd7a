"""Rebuilds the state and the windows of one chunk of a backfill.

The state of the range is swapped, and the windows that overlap it are recomputed. Every write
replaces a range or is a MERGE of what differs. So each is idempotent, and a chunk that was killed
is simply done again.
"""

from collections.abc import Callable, Collection
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import Closing, RunContext
from jobs.microbatch.emission import changes
from jobs.microbatch.empty_windows import check_limit as affordable_in
from jobs.microbatch.empty_windows import widen_to_growth
from jobs.microbatch.ordered import recompute_keys
from jobs.microbatch.outputs import rederive_output, write_output
from jobs.recompute.swap import replace_range
from jobs.recompute.time_range import TimeRange, WholeHistory, widen_to_panes, widen_to_windows
from windowing import delta
from windowing.admit.again import INSIDE
from windowing.aggregates.algebra import Algebra, rows_part
from windowing.columns import CLOSED_BY, END, JUDGED, PANE, ROWS, START, TOUCHED
from windowing.grid.frame import between, instant
from windowing.grid.zone import FIRST_US, LAST_US
from windowing.ledger.rule import add_counts
from windowing.merge import frame as merges
from windowing.merge.rule import bound_columns, complete_table, in_output, output_table
from windowing.panes import events as buffer
from windowing.panes import frame as partials
from windowing.panes.frame import Range
from windowing.panes.rule import EVENTS, Family, longest_span, pane_families
from windowing.source import table as source
from windowing.spec.description import describe_window
from windowing.spec.kinds import (
    CHANGES,
    ON_CHANGE,
    Aligned,
    Global,
    OrderDependent,
    RecordSliding,
    Session,
)
from windowing.windows import aligned, whole
from windowing.windows.gaps import shows_empty_windows, window_extents

Sessions = Callable[[RunContext, Session, TimeRange, DataFrame], dict[str, int]]


def rebuild_range(
    closing: Closing, chunk: TimeRange, events: DataFrame, sessions: Sessions
) -> dict[str, int]:
    """Swaps the state of the chunk and corrects every output.

    `events` are the accepted events, and `sessions` rebuilds the session windows. Returns the
    counts of the outputs.
    """
    batch = closing.batch
    counts: dict[str, int] = {}
    for family in pane_families(batch.pipeline):
        counts |= rebuild_panes(closing, family, chunk, events)
    for session_window in batch.pipeline.sessions:
        counts |= sessions(batch, session_window, chunk, events)
    if batch.pipeline.ordered:
        counts |= rebuild_events(batch, chunk, events)
    for window in batch.pipeline.windows:
        if not in_output(window):
            counts = add_counts([counts, rederive_output(closing, window)])
    return counts


def check_limit_of_range(
    batch: RunContext, chunk: TimeRange, events: DataFrame, came: Collection[str] = ()
) -> None:
    """StateRefused if the chunk would add more empty windows to an output than its limit.

    Nothing is written. Where everything is rebuilt, only the windows in `came` are checked, because
    no other window gains any.
    """
    anew = isinstance(chunk, WholeHistory)
    for family in pane_families(batch.pipeline):
        for window in (
            w for w in family.windows if shows_empty_windows(w) and (not anew or w.name in came)
        ):
            before, after = _pools(batch, family, _held(batch, family, chunk), events)
            affordable_in(
                batch, window, None if anew else before, after, Range(chunk.start_us, chunk.end_us)
            )


def _pools(
    batch: RunContext, family: Family, held: TimeRange, events: DataFrame
) -> tuple[DataFrame, DataFrame]:
    """All panes of the family as they are, and as they are once `held` is rebuilt.

    Both frames are [keys, pane_start, judged_by, rows]. In the second one the panes of the times
    `held` are computed from `events`.
    """
    within, columns = Range(held.start_us, held.end_us), [*batch.keys, PANE, JUDGED, ROWS]
    fresh = partials.aggregate_panes(
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
        if isinstance(held, WholeHistory)
        else before.where((F.col(PANE) < low) | (F.col(PANE) >= high))
    )
    return before, others.unionByName(fresh)


def rebuild_panes(
    closing: Closing, family: Family, chunk: TimeRange, events: DataFrame
) -> dict[str, int]:
    """Swaps the panes of the chunk and recomputes every window that overlaps them.

    Returns the counts of the outputs.
    """
    batch, wide = closing.batch, widen_to_panes(family, chunk)
    held = _held(batch, family, chunk)
    schema = source.read(batch.spark, batch.pipeline, chunk.version).schema
    algebras = partials.algebras_of(batch.pipeline, family.aggregates, schema)
    within = Range(held.start_us, held.end_us)
    kept = partials.parts_of(algebras.values())
    fresh = partials.aggregate_panes(
        events.where(held.holds()), (*batch.keys, JUDGED), family, kept, within
    )
    replace_range(batch, family.table, batch.stamp.beside(fresh), PANE, held)
    counts: dict[str, int] = {}
    for window in family.windows:
        own = {a.name: algebras[a.name] for a in window.aggregates}
        counts |= (
            _endless(batch, window, family, own)
            if isinstance(window, Global)
            else _overlapping(closing, window, family, wide, own)
        )
    return counts


def _held(batch: RunContext, family: Family, chunk: TimeRange) -> TimeRange:
    """The times whose panes are rebuilt."""
    return (
        widen_to_panes(family, chunk)
        if isinstance(chunk, WholeHistory)
        else widen_to_windows(batch, family, chunk)
    )


def _endless(
    batch: RunContext, window: Global, family: Family, algebras: dict[str, Algebra]
) -> dict[str, int]:
    target = output_table(batch.pipeline, window)
    state_rows = delta.read(batch.spark, batch.pipeline.table(family.table)).withColumn(
        TOUCHED, F.lit(1).cast("bigint")
    )
    found = whole.windows(state_rows, batch.keys, partials.parts_of(algebras.values()))
    valued = merges.lower_partials(
        found, [*batch.keys, *bound_columns(window)], window.aggregates, algebras
    )
    shown = merges.filter_having(valued, window.shown.having)
    return write_output(
        batch,
        window,
        target,
        merges.compute_replacements(shown, delta.read(batch.spark, target.path), target),
    )


def _overlapping(
    closing: Closing, window: Aligned, family: Family, wide: TimeRange, algebras: dict[str, Algebra]
) -> dict[str, int]:
    batch, target, kept = (
        closing.batch,
        output_table(closing.batch.pipeline, window),
        partials.parts_of(algebras.values()),
    )
    stored, state_rows = (
        delta.read(batch.spark, target.path),
        delta.read(batch.spark, batch.pipeline.table(family.table)),
    )
    if shows_empty_windows(window):
        ends = widen_to_growth(state_rows, Range(wide.start_us, wide.end_us))
        near, reach, over = (
            state_rows,
            Range(ends.low_us - longest_span(window), ends.high_us + longest_span(window)),
            F.lit(True),
        )
    else:
        reach = aligned.reach(window, Range(wide.start_us, wide.end_us))
        near = between(state_rows, PANE, reach.low_us, reach.high_us)
        over = _over(window, wide, reach)
    panes_of = near.withColumn(TOUCHED, F.lit(1).cast("bigint"))
    lateness = batch.pipeline.watermark.allowed_lateness_us
    runs = aligned.stretches(panes_of, window, batch.keys, kept, lateness, reach)
    if shows_empty_windows(window):
        all_of = window_extents(near, window, batch.keys, lateness, reach)
        runs = runs.unionByName(aligned.empties(all_of, runs, window, batch.keys, kept))
    if window.shown.emit == CHANGES:
        rows = changes(runs, window, batch, algebras, reach)
    else:
        rows = merges.lower_partials(
            aligned.windows(runs, window, reach),
            [*batch.keys, *bound_columns(window)],
            window.aggregates,
            algebras,
        )
    shown = merges.filter_having(
        rows if window.shown.emit == ON_CHANGE else rows.where(closing.closed(F.col(END))),
        window.shown.having,
    )
    return write_output(
        batch,
        window,
        target,
        merges.compute_replacements(shown.where(over), stored.where(over), target),
    )


def _over(window: Aligned, wide: TimeRange, reach: Range) -> Column:
    """True for the windows that the chunk can change.

    They are those that overlap it and, with `emit: changes`, the one after them, because it is
    compared with the window before it. Where everything is rebuilt it is true for all windows,
    because an earlier spec may have left some.
    """
    if isinstance(wide, WholeHistory):
        return F.lit(True)
    overlaps = (F.col(START) < instant(wide.end_us)) & (F.col(END) > instant(wide.start_us))
    if window.shown.emit != CHANGES:
        return overlaps
    after = aligned.kind(window).following(window, F.lit(wide.end_us - 1), reach)
    return overlaps if after is None else overlaps | (F.unix_micros(START) == after)


def rebuild_events(batch: RunContext, chunk: TimeRange, events: DataFrame) -> dict[str, int]:
    """Swaps the buffered events of the chunk and recomputes the windows of their keys.

    Those are the keys that have an event there, or had a window there before. Where everything is
    rebuilt, windows of all times are recomputed, because an earlier spec may have left some before
    the first event and after the last. Returns the counts of the outputs.
    """
    pipeline, spark = batch.pipeline, batch.spark
    now = buffer.buffer_events(events.where(INSIDE), pipeline, JUDGED)
    over = (
        TimeRange(FIRST_US, LAST_US + 1, chunk.version)
        if isinstance(chunk, WholeHistory)
        else chunk
    )
    held = [_keys_in(batch, window, over) for window in pipeline.ordered]
    keys = (
        reduce(DataFrame.unionByName, held, now.select(*batch.keys))
        .distinct()
        .localCheckpoint(eager=True)
    )
    replace_range(batch, EVENTS, batch.stamp.beside(now), "event_time", chunk)
    reached = keys.withColumns({"__t0": F.lit(over.start_us), "__t1": F.lit(over.end_us - 1)})
    schema = source.read(spark, pipeline, chunk.version).schema
    counts: dict[str, int] = {}
    for window in pipeline.ordered:
        counts |= recompute_keys(
            batch, window, reached, delta.read(spark, pipeline.table(EVENTS)), None, schema
        )
    return counts


def _keys_in(batch: RunContext, window: OrderDependent, chunk: TimeRange) -> DataFrame:
    """The keys that have a window over the chunk, or one that was closed there.

    The windows are read as the last finished step left them.
    """
    stored = delta.read(batch.spark, complete_table(batch.pipeline, window).path)
    beside_us = window.tick_us if isinstance(window, RecordSliding) else 0
    over = (F.col(START) < instant(chunk.end_us + beside_us)) & (
        F.col(END) > instant(chunk.start_us)
    )
    if describe_window(window).closed_by_event:
        over = over | F.col(CLOSED_BY).between(instant(chunk.start_us), instant(chunk.end_us))
    return stored.where(over).select(*batch.keys)
