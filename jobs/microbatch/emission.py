"""Emission at the end of a run: outputs that wait for the watermark show what it has passed.

state + W before + W after -> windows that the run touched, or that W passed -> those to show
-> outputs

Everything is recomputed from state and compared with what is stored, so emission is idempotent.
"""

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch import empty_windows
from jobs.microbatch.context import Closing, RunContext
from jobs.microbatch.outputs import Step, derive_output, replace_rows
from jobs.microbatch.parallel import run_parallel
from windowing.aggregates.algebra import Algebra, Part
from windowing.columns import END, JUDGED, PANE, START, TOUCHED
from windowing.grid.frame import instant
from windowing.grid.range import Range
from windowing.ledger.counts import add_counts
from windowing.merge import frame as merges
from windowing.merge import table as outputs
from windowing.merge.rule import in_output, output_table, window_columns
from windowing.panes import frame as partials
from windowing.panes.rule import Family, longest_span, pane_families
from windowing.rows import are_equal
from windowing.source import table as source
from windowing.spec.kinds import CHANGES, ON_CHANGE, Aligned, Global
from windowing.storage import own_tables
from windowing.storage.few_rows import span_of
from windowing.storage.pinned_rows import pin_rows
from windowing.storage.plain_table import Bounds
from windowing.windows import aligned
from windowing.windows.change_points import BEFORE, GROUP, list_points
from windowing.windows.gaps import list_empty_windows, shows_empty_windows
from windowing.windows.neighbours import is_touched, keep_near


def emit_outputs(closing: Closing) -> dict[str, int]:
    """Updates every output that waits for the watermark; returns their counts."""
    if closing.within is None and closing.before_us == closing.after_us:
        return {}
    pipeline = closing.batch.pipeline
    steps = _list_aligned_steps(closing)
    steps += [partial(derive_output, closing, w) for w in pipeline.windows if not in_output(w)]
    if not steps:
        return {}
    return add_counts(run_parallel(steps))


def _list_aligned_steps(closing: Closing) -> list[Step]:
    """One step for each grid window that waits for the watermark."""
    if closing.after_us is None:
        return []
    steps: list[Step] = []
    for family in pane_families(closing.batch.pipeline):
        for window in family.windows:
            if not isinstance(window, Global) and window.shown.emit != ON_CHANGE:
                steps.append(partial(_emit_aligned, closing, family, window))
    return steps


def _emit_aligned(closing: Closing, family: Family, window: Aligned) -> dict[str, int]:
    """Updates the output of one grid window from its panes."""
    batch = closing.batch
    pipeline = batch.pipeline
    bounds = bound_panes(closing, window)
    panes = own_tables.find(batch.spark, pipeline.table(family.table), bounds)
    if panes is None:
        return {}
    schema = source.schema(batch.spark, pipeline)
    algebras = partials.algebras_of(pipeline, window.aggregates, schema)
    kept = partials.parts_of(algebras.values())
    found, within = _select_pool(closing, panes, window)
    columns = [*batch.keys, PANE, JUDGED, TOUCHED, *(p.name for p in kept)]
    pool = pin_rows(found.select(*columns))
    lateness = pipeline.watermark.allowed_lateness_us
    runs = aligned.merge_stretches(pool, [window], batch.keys, kept, lateness, within)
    if window.shown.emit == CHANGES:
        changed = changes(pin_rows(runs), window, batch, algebras, within)
        rows = _select_affected(closing, window, pool, within, changed)
    else:
        windows = _place_windows(closing, family, window, runs, kept, within)
        affected = windows.where((F.col(TOUCHED) > 0) | closing.since(F.col(END)))
        rows = merges.lower_partials(affected, window_columns(window, batch.keys), algebras)
    shown = merges.hide_by_having(rows.where(closing.closed(F.col(END))), window.shown.having)
    return _write_shown(closing, window, pool, within, shown)


def _write_shown(
    closing: Closing, window: Aligned, pool: DataFrame, within: Range, shown: DataFrame
) -> dict[str, int]:
    """Writes the rows `shown` in place of the stored rows of the windows that were affected."""
    batch = closing.batch
    target = output_table(batch.pipeline, window)
    output = outputs.open_output(target)
    if outputs.is_new(batch.spark, output):
        return replace_rows(batch, window, output, shown, None)
    stored = outputs.read_output(batch.spark, output)
    old = _select_affected(closing, window, pool, within, stored)
    if shows_empty_windows(window):
        shown = pin_rows(shown)
        old = _add_stored_rows_of(shown, stored, old, [*batch.keys, START, END])
    return replace_rows(batch, window, output, shown, old)


def _add_stored_rows_of(
    shown: DataFrame, stored: DataFrame, old: DataFrame, ids: list[str]
) -> DataFrame:
    """`old`, and the `stored` rows of the windows `shown`.

    An empty window that ended before W is affected by a new extent of its key, but no event touches
    it, so `old` lacks its row.
    """
    start_us = F.unix_micros(START)
    span = span_of(shown, start_us, start_us)
    if span is None:
        return old
    near = stored.where(F.col(START).between(instant(span.low_us), instant(span.high_us)))
    also_shown = near.join(shown.select(*ids), ids, "left_semi")
    return old.unionByName(also_shown).dropDuplicates(ids)


def changes(
    runs: DataFrame, window: Aligned, batch: RunContext, algebras: dict[str, Algebra], within: Range
) -> DataFrame:
    """The windows whose aggregates differ from those of the key's previous window.

    runs -> [keys, start, end, aggregates, __overflow]
    """
    kept = partials.parts_of(algebras.values())
    points = list_points(runs, window, batch.keys, kept, within)
    columns = (*window_columns(window, batch.keys), GROUP, BEFORE)
    valued = merges.lower_partials(points, columns, algebras)
    names = [a.name for a in window.aggregates]
    group = [*batch.keys, GROUP]
    differ = merges.keep_differing(valued, group, [START, END], names, BEFORE)
    return differ.drop(GROUP, BEFORE)


def _place_windows(
    closing: Closing,
    family: Family,
    window: Aligned,
    runs: DataFrame,
    kept: list[Part],
    within: Range,
) -> DataFrame:
    """Every window of `runs`, and the empty windows where the output shows them."""
    if not shows_empty_windows(window):
        return aligned.list_windows(runs, [window], within)
    gaps, wide = empty_windows.closing_gaps(closing, window, family.table)
    empties = list_empty_windows(gaps, runs, closing.batch.keys, kept)
    return aligned.list_windows(runs.unionByName(empties), [window], wide)


def _select_pool(closing: Closing, panes: DataFrame, window: Aligned) -> tuple[DataFrame, Range]:
    """The panes of the windows that this run touched or W passed, and the range they lie in.

    panes -> panes + [__touched], 1 for panes that this run stored
    """
    batch = closing.batch
    reach = _find_reach(window)
    up_to_watermark = F.col(PANE) < instant(closing.after_us or 0)
    fresh = batch.stamp.of_run.cast("bigint")
    marked = panes.withColumn(TOUCHED, fresh).where(up_to_watermark)
    times = _find_times(closing, panes)
    within = times.widen(reach)
    marked = marked.where(F.col(PANE) >= instant(within.low_us))
    if closing.before_us is None or closing.within is None:
        return marked, within
    if closing.within.low_us >= closing.before_us:
        return marked, within
    # Windows of older panes change only where the run accepted events behind W, so only panes that
    # share a window with such an event are read.
    edge = instant(closing.before_us - reach)
    newer = marked.where(F.col(PANE) >= edge)
    older = marked.where(F.col(PANE) < edge)
    touched = marked.where(F.col(TOUCHED) > 0)
    near = keep_near(older, PANE, touched, [window], batch.keys, within)
    return newer.unionByName(near), within


def _find_reach(window: Aligned) -> int:
    """How far before an event, or behind it, panes lie that its windows are shown by."""
    return 2 * longest_span(window)


def bound_panes(closing: Closing, window: Aligned) -> Bounds:
    """Which panes are read, so that files of older ones are not opened."""
    if closing.before_us is None:
        return own_tables.EVERY_ROW
    return {PANE: (_find_passed(closing).widen(_find_reach(window)).low_us, None)}


def _find_passed(closing: Closing) -> Range:
    """The event times that the run touched or W passed, where there was a watermark before."""
    known = [us for us in (closing.before_us, closing.after_us) if us is not None]
    passed = Range(min(known), max(known))
    return passed if closing.within is None else passed.cover(closing.within)


def _find_times(closing: Closing, panes: DataFrame) -> Range:
    """The event times that the run touched or W passed.

    W passes everything when it is set for the first time: a backfill may have added panes before
    there was a watermark, and no output has shown them yet.
    """
    passed = _find_passed(closing)
    if closing.before_us is None:
        return empty_windows.widen_to_growth(panes, passed)
    return passed


def _select_affected(
    closing: Closing, window: Aligned, pool: DataFrame, within: Range, rows: DataFrame
) -> DataFrame:
    """The `rows` of windows that this run touched or W passed.

    New and stored rows are selected in the same way, so that both are of the same windows.
    """
    batch = closing.batch
    lateness = batch.pipeline.watermark.allowed_lateness_us
    passed = closing.since(F.col(END))
    # What is late for every window of this kind changes none, not even the one after them.
    counting = aligned.place_panes(pool.where(F.col(TOUCHED) > 0), [window], lateness, within)
    fresh = counting.select(*batch.keys, PANE, JUDGED)
    same_key = are_equal("s", "f", batch.keys)
    hit = is_touched(window, lateness, within)
    near = rows.where((F.col(END) > instant(within.low_us)) & ~passed)
    touched = near.alias("s").join(fresh.alias("f"), [*same_key, hit], "left_semi")
    return touched.unionByName(rows.where(passed))
