"""Empty windows that a micro-batch or the end of a run adds to an output, and their limit.

panes of a key -> extent, from its first window to its last -> ranges of windows that are new
-> those without events
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import Closing, RunContext
from windowing.aggregates.algebra import rows_part
from windowing.columns import FROM, HIGH, LOW, PANE, TO
from windowing.errors import StateRefused
from windowing.grid.range import Range
from windowing.panes import table as state
from windowing.panes.rule import longest_span
from windowing.rows import are_equal
from windowing.spec.kinds import OnSteps
from windowing.storage import own_tables
from windowing.storage.few_rows import span_of
from windowing.windows import aligned
from windowing.windows.gaps import (
    OLD_HIGH,
    OLD_LOW,
    last_closed,
    ranges_between,
    window_extents,
)
from windowing.windows.merging import mark_touched


def empty_window_ranges(
    batch: RunContext, window: OnSteps, table: str, fresh: DataFrame, within: Range
) -> tuple[DataFrame, Range]:
    """The windows by which each key's extent has grown with `fresh`, and the times they span.

    fresh[keys, pane_start, judged_by] -> [keys, __low, __high], ranges of window numbers; both ends
    are inclusive.
    """
    keys = list(batch.keys)
    columns = [*keys, PANE, "judged_by"]
    before = state.panes_of(batch.spark, batch.pipeline, table, batch.stamp)
    if before is None:
        others = fresh.limit(0)
    else:
        others = before.join(fresh.select(*keys).distinct(), keys, "left_semi")
    old = others.select(*columns)
    all_panes = old.unionByName(fresh.select(*columns))
    wide = widen_to_growth(all_panes, within).widen(longest_span(window))
    lateness = batch.pipeline.watermark.allowed_lateness_us
    old_extents = _rename_to_old(window_extents(old, window, keys, lateness, wide))
    new_extents = window_extents(all_panes, window, keys, lateness, wide)
    growth = new_extents.join(old_extents, keys, "left")
    return ranges_between(growth, keys), wide


def _rename_to_old(extents: DataFrame) -> DataFrame:
    return extents.withColumnsRenamed({LOW: OLD_LOW, HIGH: OLD_HIGH})


def widen_to_growth(panes: DataFrame, within: Range) -> Range:
    """`within`, widened to every pane of `panes`."""
    pane_us = F.unix_micros(PANE)
    span = span_of(panes, pane_us, pane_us)
    return within if span is None else within.cover(span)


def check_empty_limit(
    batch: RunContext, window: OnSteps, table: str, fresh: DataFrame, within: Range
) -> int:
    """How many empty windows the batch adds; StateRefused if they exceed the output's limit."""
    added, wide = empty_window_ranges(batch, window, table, fresh, within)
    lateness = batch.pipeline.watermark.allowed_lateness_us
    runs = aligned.merge_stretches(fresh, [window], batch.keys, [rows_part()], lateness, wide)
    both = added.alias("g").join(runs.alias("r"), are_equal("g", "r", batch.keys))
    last_common = F.least(f"r.{TO}", f"g.{HIGH}")
    first_common = F.greatest(f"r.{FROM}", f"g.{LOW}")
    overlap = last_common - first_common + 1
    overlap_total = F.coalesce(F.sum(overlap), F.lit(0))
    (total,) = both.where(overlap > 0).agg(overlap_total).collect()
    in_extents = _count_windows(added, LOW, HIGH)
    then = "and the next run finishes this one; nothing of this batch was written"
    return _check_limit(window, in_extents - int(total[0]), then)


def check_limit(
    batch: RunContext, window: OnSteps, before: DataFrame | None, after: DataFrame, within: Range
) -> None:
    """StateRefused if the panes `after` make more empty windows than `before` by over the limit.

    `before` are the panes that `after` replaces; None for a new output.
    """
    added = _count_empty_windows(batch, window, after, within)
    if before is not None:
        added -= _count_empty_windows(batch, window, before, within)
    _check_limit(window, added, "then rerun the command; nothing was written")


def _count_empty_windows(
    batch: RunContext, window: OnSteps, panes: DataFrame, within: Range
) -> int:
    """How many empty windows lie between each key's first and last event.

    panes[keys, pane_start, judged_by, rows] -> number
    """
    lateness = batch.pipeline.watermark.allowed_lateness_us
    wide = widen_to_growth(panes, within).widen(longest_span(window))
    touched = mark_touched(panes)
    runs = aligned.merge_stretches(touched, [window], batch.keys, [rows_part()], lateness, wide)
    extents = window_extents(panes, window, batch.keys, lateness, wide)
    in_extents = _count_windows(extents, LOW, HIGH)
    with_events = _count_windows(runs, FROM, TO)
    return in_extents - with_events


def _count_windows(ranges: DataFrame, low: str, high: str) -> int:
    """How many window numbers the `ranges` contain; both ends are inclusive."""
    total = F.sum(F.col(high) - F.col(low) + 1)
    (row,) = ranges.agg(F.coalesce(total, F.lit(0))).collect()
    return int(row[0])


def _check_limit(window: OnSteps, added: int, then: str) -> int:
    """`added`; StateRefused, EMPTY_LIMIT, if it exceeds the window's `empty_limit`."""
    limit = window.shown.empty_limit or 0
    if added <= limit:
        return added
    found = f"it would add {added:,} empty windows, more than {limit:,}"
    field = f"windows.{window.name}.empty_limit"
    raise StateRefused("EMPTY_LIMIT", f"{field}: {found}; raise the limit, {then}")


def closing_gaps(closing: Closing, window: OnSteps, table: str) -> tuple[DataFrame, Range]:
    """The windows up to W that this run makes visible, and the times they span.

    They are those by which a key's extent grew in this run and those that W passed, as ranges of
    window numbers: [keys, __low, __high], both ends inclusive.
    """
    batch = closing.batch
    lateness = batch.pipeline.watermark.allowed_lateness_us
    after_us = closing.after_us or 0
    panes = own_tables.read(batch.spark, batch.pipeline.table(table), own_tables.EVERY_ROW)
    wide = widen_to_growth(panes, Range(after_us, after_us))
    extents = window_extents(panes, window, batch.keys, lateness, wide)
    first_shown = _select_first_shown(closing, window, panes, extents, wide)
    last = F.lit(last_closed(window, after_us))
    up_to_watermark = first_shown.withColumn(HIGH, F.least(HIGH, last))
    return up_to_watermark.where(F.col(LOW) <= F.col(HIGH)), wide


def _select_first_shown(
    closing: Closing, window: OnSteps, panes: DataFrame, extents: DataFrame, wide: Range
) -> DataFrame:
    """The parts of the `extents` that no run could show before this one.

    It does not matter whether W has passed them by now. Where there was no watermark they are all
    of `extents`, because what a backfill has added until then was never shown.
    """
    if closing.before_us is None:
        return extents
    batch = closing.batch
    keys = list(batch.keys)
    lateness = batch.pipeline.watermark.allowed_lateness_us
    stored_before = panes.where(~batch.stamp.of_run)
    extents_before = window_extents(stored_before, window, batch.keys, lateness, wide)
    growth = extents.join(_rename_to_old(extents_before), keys, "left")
    grown_by = ranges_between(growth, batch.keys)
    first_open = F.lit(last_closed(window, closing.before_us) + 1)
    since_first_open = F.greatest(F.col(LOW), first_open)
    passed = extents.select(*keys, since_first_open.alias(LOW), HIGH)
    return grown_by.unionByName(passed)
