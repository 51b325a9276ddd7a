"""Windows without events that a micro-batch or the end of a run brings to an output, and how many it may bring."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import Batch, Closing
from windowing import delta
from windowing.aggregates.algebra import rows_part
from windowing.columns import BATCH, FROM, HIGH, LOW, PANE, RUN, TO, TOUCHED
from windowing.errors import StateRefused
from windowing.panes import table as state
from windowing.panes.frame import Range
from windowing.panes.rule import span
from windowing.windows import aligned
from windowing.windows.gaps import OLD_HIGH, OLD_LOW, Filled, extents, last_closed, ranges


def grown(
    batch: Batch, window: Filled, table: str, fresh: DataFrame, within: Range
) -> tuple[DataFrame, Range]:
    """The extent of every key of `fresh` before and with it: [keys, __low, __high, __old_low, __old_high], and the times it spans."""
    before = state.panes_of(batch.spark, batch.pipeline, table, batch.stamp)
    keys, columns = list(batch.keys), [*batch.keys, PANE, "judged_by"]
    others = (
        fresh.limit(0)
        if before is None
        else before.join(fresh.select(*keys).distinct(), keys, "left_semi")
    )
    old, new = others.select(*columns), fresh.select(*columns)
    ends = spanned(old.unionByName(new), within)
    wide = Range(ends.low_us - span(window), ends.high_us + span(window))
    lateness = batch.pipeline.watermark.allowed_lateness_us
    was = extents(old, window, keys, lateness, wide).withColumnsRenamed(
        {LOW: OLD_LOW, HIGH: OLD_HIGH}
    )
    return extents(old.unionByName(new), window, keys, lateness, wide).join(was, keys, "left"), wide


def spanned(panes: DataFrame, within: Range) -> Range:
    """`within`, widened to every pane of `panes`."""
    ends = panes.agg(F.min(F.unix_micros(PANE)), F.max(F.unix_micros(PANE))).first()
    if ends is None or ends[0] is None:
        return within
    return Range(min(within.low_us, ends[0]), max(within.high_us, ends[1]))


def gaps(
    batch: Batch, window: Filled, table: str, fresh: DataFrame, within: Range
) -> tuple[DataFrame, Range]:
    """The windows that a key's extent has grown by: [keys, __low, __high], both inside, and the times they span."""
    found, wide = grown(batch, window, table, fresh, within)
    return ranges(found, batch.keys), wide


def checked(batch: Batch, window: Filled, table: str, fresh: DataFrame, within: Range) -> int:
    """How many windows without events the batch adds; StateRefused if they are more than the output's limit."""
    ranges, wide = gaps(batch, window, table, fresh, within)
    kept = [rows_part()]
    runs = aligned.stretches(
        fresh, window, batch.keys, kept, batch.pipeline.watermark.allowed_lateness_us, wide
    )
    both = ranges.alias("g").join(
        runs.alias("r"), [F.col(f"g.`{k}`") == F.col(f"r.`{k}`") for k in batch.keys]
    )
    overlap = F.least(f"r.{TO}", f"g.{HIGH}") - F.greatest(f"r.{FROM}", f"g.{LOW}") + 1
    with_events = both.where(overlap > 0).agg(F.coalesce(F.sum(overlap), F.lit(0))).collect()[0][0]
    all_of = _windows(ranges, LOW, HIGH)
    return _within_limit(
        window,
        int(all_of - with_events),
        "and the next run finishes this one; nothing of this batch was written",
    )


def affordable(
    batch: Batch, window: Filled, before: DataFrame | None, after: DataFrame, within: Range
) -> None:
    """StateRefused if `after` in place of the panes `before` (None: a new output) brings more windows without events than may be."""
    added = _lacking(batch, window, after, within) - (
        0 if before is None else _lacking(batch, window, before, within)
    )
    _within_limit(window, added, "then ask again; nothing was written")


def _lacking(batch: Batch, window: Filled, panes: DataFrame, within: Range) -> int:
    """How many windows without events lie between each key's first and last: panes[keys, pane_start, judged_by, rows] -> number."""
    ends, lateness = spanned(panes, within), batch.pipeline.watermark.allowed_lateness_us
    wide = Range(ends.low_us - span(window), ends.high_us + span(window))
    touched = panes.withColumn(TOUCHED, F.lit(1).cast("bigint"))
    runs = aligned.stretches(touched, window, batch.keys, [rows_part()], lateness, wide)
    return _windows(extents(panes, window, batch.keys, lateness, wide), LOW, HIGH) - _windows(
        runs, FROM, TO
    )


def _windows(ranges: DataFrame, low: str, high: str) -> int:
    return int(
        ranges.agg(F.coalesce(F.sum(F.col(high) - F.col(low) + 1), F.lit(0))).collect()[0][0]
    )


def _within_limit(window: Filled, added: int, then: str) -> int:
    limit = window.shown.empty_limit or 0
    if added > limit:
        field = f"windows.{window.name}.empty_limit"
        said = f"{field}: it would add {added:,} windows without events, more than {limit:,}; raise the limit, {then}"
        raise StateRefused("EMPTY_LIMIT", said)
    return added


def closing_gaps(closing: Closing, window: Filled, table: str) -> tuple[DataFrame, Range]:
    """The windows up to W that a key's extent grew by in this run, or that W passed: [keys, __low, __high], and the times they span."""
    batch = closing.batch
    panes = delta.read(batch.spark, batch.pipeline.table(table))
    wide = spanned(panes, Range(closing.after_us or 0, closing.after_us or 0))
    found = extents(panes, window, batch.keys, batch.pipeline.watermark.allowed_lateness_us, wide)
    last = F.lit(last_closed(window, closing.after_us or 0))
    return _shown_first(closing, window, panes, found, wide).withColumn(
        HIGH, F.least(HIGH, last)
    ).where(F.col(LOW) <= F.col(HIGH)), wide


def _shown_first(
    closing: Closing, window: Filled, panes: DataFrame, found: DataFrame, wide: Range
) -> DataFrame:
    """Of the extents `found` the parts that no run could show before this one, whether W has passed them by now or not.

    All of them where there was no watermark: what a backfill has brought until then was never shown.
    """
    if closing.before_us is None:
        return found
    batch = closing.batch
    fresh = (F.col(RUN) == batch.stamp.run) & (F.col(BATCH) >= 0)
    before = extents(
        panes.where(~fresh), window, batch.keys, batch.pipeline.watermark.allowed_lateness_us, wide
    )
    was = before.withColumnsRenamed({LOW: OLD_LOW, HIGH: OLD_HIGH})
    grown_by = ranges(found.join(was, list(batch.keys), "left"), batch.keys)
    since = F.greatest(F.col(LOW), F.lit(last_closed(window, closing.before_us) + 1))
    return grown_by.unionByName(found.select(*batch.keys, since.alias(LOW), HIGH))
