"""Rebuilds the state and the windows of one chunk of a backfill.

The state of the range is swapped, and the windows that overlap it are recomputed. Every write
replaces a range or is a MERGE of what differs. So each is idempotent, and a chunk that was killed
is simply done again.
"""

from collections.abc import Callable, Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import Closing, RunContext
from jobs.microbatch.emission import changes
from jobs.microbatch.empty_windows import check_limit, widen_to_growth
from jobs.microbatch.ordered import prepare_keys
from jobs.microbatch.outputs import rederive_output, write_output
from jobs.recompute.content import narrow_to_content
from jobs.recompute.swap import replace_range
from jobs.recompute.time_range import TimeRange, WholeHistory, widen_to_panes, widen_to_windows
from windowing import delta, own_tables
from windowing.admit.again import INSIDE
from windowing.aggregates.algebra import Algebra, Part, rows_part
from windowing.columns import CLOSED_BY, END, JUDGED, OP, PANE, ROWS, START, TOUCHED
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
from windowing.windows.finality import is_expired
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
    everything = isinstance(chunk, WholeHistory)
    for family in pane_families(batch.pipeline):
        limited = [window for window in family.windows if shows_empty_windows(window)]
        if everything:
            limited = [window for window in limited if window.name in came]
        narrow = narrow_to_content(batch, family, chunk, events) if limited else None
        if narrow is None:
            continue
        within = Range(narrow.start_us, narrow.end_us)
        rebuilt = _times_to_rebuild(batch, family, narrow)
        before, after = _panes_before_and_after(batch, family, rebuilt, events)
        for window in limited:
            check_limit(batch, window, None if everything else before, after, within)


def _panes_before_and_after(
    batch: RunContext, family: Family, rebuilt: TimeRange, events: DataFrame
) -> tuple[DataFrame, DataFrame]:
    """All panes of the family as they are, and as they are once the times `rebuilt` are rebuilt.

    Both frames are [keys, pane_start, judged_by, rows]. In the second one the panes of the times
    `rebuilt` are computed from `events`.
    """
    columns = [*batch.keys, PANE, JUDGED, ROWS]
    fresh = _aggregate_rebuilt(batch, family, rebuilt, events, [rows_part()]).select(*columns)
    path = batch.pipeline.table(family.table)
    if delta.exists(batch.spark, path):
        before = delta.read(batch.spark, path).select(*columns)
    else:
        before = fresh.limit(0)
    if isinstance(rebuilt, WholeHistory):
        others = before.limit(0)
    else:
        begins_before = F.col(PANE) < instant(rebuilt.start_us)
        begins_after = F.col(PANE) >= instant(rebuilt.end_us)
        others = before.where(begins_before | begins_after)
    return before, others.unionByName(fresh)


def _aggregate_rebuilt(
    batch: RunContext,
    family: Family,
    rebuilt: TimeRange,
    events: DataFrame,
    parts: Sequence[Part],
) -> DataFrame:
    """The panes of the times `rebuilt`, computed from `events`."""
    within = Range(rebuilt.start_us, rebuilt.end_us)
    inside = events.where(rebuilt.holds())
    return partials.aggregate_panes(inside, (*batch.keys, JUDGED), family, parts, within)


def rebuild_panes(
    closing: Closing, family: Family, chunk: TimeRange, events: DataFrame
) -> dict[str, int]:
    """Swaps the panes of the chunk and recomputes every window that overlaps them.

    Returns the counts of the outputs.
    """
    batch = closing.batch
    narrow = narrow_to_content(batch, family, chunk, events)
    if narrow is None:
        return {}
    rebuilt = _times_to_rebuild(batch, family, narrow)
    schema = source.read(batch.spark, batch.pipeline, chunk.version).schema
    algebras = partials.algebras_of(batch.pipeline, family.aggregates, schema)
    kept = partials.parts_of(algebras.values())
    fresh = _aggregate_rebuilt(batch, family, rebuilt, events, kept)
    replace_range(batch, family.table, batch.stamp.beside(fresh), PANE, rebuilt)
    counts: dict[str, int] = {}
    for window in family.windows:
        own = {a.name: algebras[a.name] for a in window.aggregates}
        if isinstance(window, Global):
            counts |= _rebuild_global_window(batch, window, family, own)
        else:
            counts |= _rebuild_overlapping_windows(closing, window, family, narrow, own)
    return counts


def _times_to_rebuild(batch: RunContext, family: Family, chunk: TimeRange) -> TimeRange:
    """The times whose panes are rebuilt."""
    if isinstance(chunk, WholeHistory):
        return widen_to_panes(family, chunk)
    return widen_to_windows(batch, family, chunk)


def _rebuild_global_window(
    batch: RunContext, window: Global, family: Family, algebras: dict[str, Algebra]
) -> dict[str, int]:
    """Recomputes a global window from all panes; returns the counts of its output."""
    target = output_table(batch.pipeline, window)
    state_rows = delta.read(batch.spark, batch.pipeline.table(family.table))
    touched = state_rows.withColumn(TOUCHED, F.lit(1).cast("bigint"))
    found = whole.windows(touched, batch.keys, partials.parts_of(algebras.values()))
    columns = [*batch.keys, *bound_columns(window)]
    valued = merges.lower_partials(found, columns, window.aggregates, algebras)
    shown = merges.filter_having(valued, window.shown.having)
    stored = own_tables.read_to_compare(batch.spark, target.path)
    return write_output(batch, window, target, merges.compute_replacements(shown, stored, target))


def _rebuild_overlapping_windows(
    closing: Closing,
    window: Aligned,
    family: Family,
    chunk: TimeRange,
    algebras: dict[str, Algebra],
) -> dict[str, int]:
    """Recomputes the grid windows that the chunk can change; returns the counts of their output.

    A window that `retention.output` does not keep any more gets no row, unless a user asked for its
    range. The row that it may still have is corrected.
    """
    batch = closing.batch
    wide = widen_to_panes(family, chunk)
    lateness = batch.pipeline.watermark.allowed_lateness_us
    target = output_table(batch.pipeline, window)
    kept = partials.parts_of(algebras.values())
    stored = own_tables.read_to_compare(batch.spark, target.path)
    state_rows = delta.read(batch.spark, batch.pipeline.table(family.table))
    within = Range(wide.start_us, wide.end_us)
    if shows_empty_windows(window):
        # A key's first and last event decide which empty windows it has, however far from the
        # chunk they lie. So all its panes are read and all its windows compared.
        ends = widen_to_growth(state_rows, within)
        span = longest_span(window)
        reach = Range(ends.low_us - span, ends.high_us + span)
        near = state_rows
    else:
        reach = aligned.reach(window, within)
        near = between(state_rows, PANE, reach.low_us, reach.high_us)
    can_change = _can_change(window, wide, reach)
    compared = F.lit(True) if shows_empty_windows(window) else can_change
    touched = near.withColumn(TOUCHED, F.lit(1).cast("bigint"))
    runs = aligned.stretches(touched, window, batch.keys, kept, lateness, reach)
    if shows_empty_windows(window):
        extents = window_extents(near, window, batch.keys, lateness, reach)
        runs = runs.unionByName(aligned.empties(extents, runs, window, batch.keys, kept))
    shown = _compute_shown_windows(closing, window, runs, algebras, reach)
    replacements = merges.compute_replacements(
        shown.where(compared), stored.where(compared), target
    )
    asked_for = can_change if chunk.is_asked_for else F.lit(False)
    stays_expired = is_expired(batch.pipeline, closing.after_us) & ~asked_for
    due = replacements.where(~((F.col(OP) == merges.INSERT) & stays_expired))
    return write_output(batch, window, target, due)


def _compute_shown_windows(
    closing: Closing, window: Aligned, runs: DataFrame, algebras: dict[str, Algebra], reach: Range
) -> DataFrame:
    """The windows of `runs` with their values, as far as the output shows them."""
    batch = closing.batch
    if window.shown.emit == CHANGES:
        rows = changes(runs, window, batch, algebras, reach)
    else:
        found = aligned.windows(runs, window, reach)
        columns = [*batch.keys, *bound_columns(window)]
        rows = merges.lower_partials(found, columns, window.aggregates, algebras)
    if window.shown.emit != ON_CHANGE:
        rows = rows.where(closing.closed(F.col(END)))
    return merges.filter_having(rows, window.shown.having)


def _can_change(window: Aligned, wide: TimeRange, reach: Range) -> Column:
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
    after: Column | None = aligned.kind(window).following(window, F.lit(wide.end_us - 1), reach)
    if after is None:
        return overlaps
    return overlaps | (F.unix_micros(START) == after)


def rebuild_events(batch: RunContext, chunk: TimeRange, events: DataFrame) -> dict[str, int]:
    """Swaps the buffered events of the chunk and recomputes the windows of their keys.

    Those are the keys that have an event there, or had a window there before. Where everything is
    rebuilt, windows of all times are recomputed, because an earlier spec may have left some before
    the first event and after the last. Returns the counts of the outputs.
    """
    pipeline = batch.pipeline
    buffered = buffer.buffer_events(events.where(INSIDE), pipeline, JUDGED)
    over = chunk
    if isinstance(chunk, WholeHistory):
        over = TimeRange(FIRST_US, LAST_US + 1, chunk.version)
    keys = buffered.select(*batch.keys)
    for window in pipeline.ordered:
        keys = keys.unionByName(_keys_in(batch, window, over))
    # Computed here because every window needs them, and their tables are corrected one by one.
    keys = keys.distinct().localCheckpoint(eager=True)
    replace_range(batch, EVENTS, batch.stamp.beside(buffered), "event_time", chunk)
    reached = keys.withColumns({"__t0": F.lit(over.start_us), "__t1": F.lit(over.end_us - 1)})
    schema = source.read(batch.spark, pipeline, chunk.version).schema
    counts: dict[str, int] = {}
    for window in pipeline.ordered:
        stored = delta.read(batch.spark, pipeline.table(EVENTS))
        counts |= prepare_keys(batch, window, reached, stored, None, schema)()
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
