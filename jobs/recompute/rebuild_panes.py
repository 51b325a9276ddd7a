"""Rebuilds the windows on a grid of a chunk: swaps its panes, recomputes what overlaps them."""

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import Closing, RunContext
from jobs.microbatch.emission import changes
from jobs.microbatch.empty_windows import check_limit, widen_to_growth
from jobs.microbatch.outputs import prepare_output, replace_output
from jobs.recompute.content import narrow_to_content
from jobs.recompute.swap import replace_range
from jobs.recompute.time_range import TimeRange, widen_to_panes, widen_to_windows
from windowing.aggregates.algebra import Algebra, Part, rows_part
from windowing.columns import END, JUDGED, PANE, REVISION, ROWS, START
from windowing.grid.frame import between, instant
from windowing.grid.range import Range
from windowing.merge import frame as merges
from windowing.merge import table as outputs
from windowing.merge.rule import output_table, window_columns
from windowing.panes import frame as partials
from windowing.panes.rule import Family, longest_span, pane_families
from windowing.source import table as source
from windowing.spec.kinds import CHANGES, ON_CHANGE, Aligned, Global
from windowing.storage import own_tables
from windowing.windows import aligned, whole
from windowing.windows.finality import is_expired
from windowing.windows.gaps import list_empty_windows, shows_empty_windows, window_extents
from windowing.windows.merging import mark_touched
from windowing.windows.neighbours import starts_next, widen_to_needed


def check_limit_of_range(
    batch: RunContext, chunk: TimeRange, events: DataFrame, came: Collection[str] = ()
) -> None:
    """StateRefused if the chunk would add more empty windows to an output than its limit.

    Nothing is written. Where everything is rebuilt, only the windows in `came` are checked, because
    no other window gains any.
    """
    for family in pane_families(batch.pipeline):
        limited = [window for window in family.windows if shows_empty_windows(window)]
        if chunk.is_everything:
            limited = [window for window in limited if window.name in came]
        narrow = narrow_to_content(batch, family, chunk, events) if limited else None
        if narrow is None:
            continue
        rebuilt = _times_to_rebuild(batch, family, narrow)
        before, after = _panes_before_and_after(batch, family, rebuilt, events)
        for window in limited:
            check_limit(batch, window, None if chunk.is_everything else before, after, narrow.times)


def _panes_before_and_after(
    batch: RunContext, family: Family, rebuilt: TimeRange, events: DataFrame
) -> tuple[DataFrame, DataFrame]:
    """All panes of the family as they are, and as they are once the times `rebuilt` are rebuilt.

    Both frames are [keys, pane_start, judged_by, rows]. In the second one the panes of the times
    `rebuilt` are computed from `events`.
    """
    columns = [*batch.keys, PANE, JUDGED, ROWS]
    fresh = _aggregate_rebuilt(batch, family, rebuilt, events, [rows_part()]).select(*columns)
    stored = batch.find_rows(family.table)
    before = fresh.limit(0) if stored is None else stored.select(*columns)
    if rebuilt.is_everything:
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
    inside = events.where(rebuilt.holds())
    return partials.aggregate_panes(inside, (*batch.keys, JUDGED), family, parts, rebuilt.times)


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
    if chunk.is_everything:
        return widen_to_panes(family, chunk)
    return widen_to_windows(batch, family, chunk)


def _rebuild_global_window(
    batch: RunContext, window: Global, family: Family, algebras: dict[str, Algebra]
) -> dict[str, int]:
    """Recomputes a global window from all panes; returns the counts of its output."""
    target = output_table(batch.pipeline, window)
    state_rows = own_tables.read(batch.spark, batch.pipeline.table(family.table))
    kept = partials.parts_of(algebras.values())
    found = whole.merge_whole_windows(mark_touched(state_rows), batch.keys, kept)
    valued = merges.lower_partials(found, window_columns(window, batch.keys), algebras)
    shown = merges.hide_by_having(valued, window.shown.having)
    return replace_output(batch, window, target, shown)


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
    output = outputs.open_output(target)
    stored = outputs.read_output(batch.spark, output)
    state_rows = own_tables.read(batch.spark, batch.pipeline.table(family.table))
    if shows_empty_windows(window):
        # A key's first and last event decide which empty windows it has, however far from the
        # chunk they lie. So all its panes are read and all its windows compared.
        reach = widen_to_growth(state_rows, wide.times).widen(longest_span(window))
        near = state_rows
    else:
        reach = widen_to_needed(window, wide.times)
        near = between(state_rows, PANE, reach.low_us, reach.high_us)
    can_change = _can_change(window, wide, reach)
    compared = F.lit(True) if shows_empty_windows(window) else can_change
    panes = mark_touched(near)
    runs = aligned.merge_stretches(panes, [window], batch.keys, kept, lateness, reach)
    if shows_empty_windows(window):
        extents = window_extents(near, window, batch.keys, lateness, reach)
        runs = runs.unionByName(list_empty_windows(extents, runs, batch.keys, kept))
    shown = _compute_shown_windows(closing, window, runs, algebras, reach)
    replacements = merges.compute_replacements(
        shown.where(compared), stored.where(compared), target
    )
    asked_for = can_change if chunk.is_asked_for else F.lit(False)
    stays_expired = is_expired(batch.pipeline, closing.after_us) & ~asked_for
    # Revision 0 is that of a row to insert, or of one that is hidden and was not stored.
    due = replacements.where(~((F.col(REVISION) == 0) & stays_expired))
    return prepare_output(batch, window, output, due)()


def _compute_shown_windows(
    closing: Closing, window: Aligned, runs: DataFrame, algebras: dict[str, Algebra], reach: Range
) -> DataFrame:
    """The windows of `runs` with their values, as far as the output shows them."""
    batch = closing.batch
    if window.shown.emit == CHANGES:
        rows = changes(runs, window, batch, algebras, reach)
    else:
        found = aligned.list_windows(runs, [window], reach)
        rows = merges.lower_partials(found, window_columns(window, batch.keys), algebras)
    if window.shown.emit != ON_CHANGE:
        rows = rows.where(closing.closed(F.col(END)))
    return merges.hide_by_having(rows, window.shown.having)


def _can_change(window: Aligned, wide: TimeRange, reach: Range) -> Column:
    """True for the windows that the chunk can change.

    They are those that overlap it and, with `emit: changes`, the one after them, because it is
    compared with the window before it. Where everything is rebuilt it is true for all windows,
    because an earlier spec may have left some.
    """
    if wide.is_everything:
        return F.lit(True)
    overlaps = (F.col(START) < instant(wide.end_us)) & (F.col(END) > instant(wide.start_us))
    if window.shown.emit != CHANGES:
        return overlaps
    last_time = F.lit(wide.times.high_us)
    return overlaps | starts_next(window, F.unix_micros(START), last_time, reach)
