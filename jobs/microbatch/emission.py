"""What happens once, at the end of a run, when the watermark has moved: outputs that wait for it show what it has passed.

    state + W before + W after -> windows that the run touched, or that W passed -> those to show -> outputs

Everything is recomputed from state and compared with what is stored, so doing it again changes nothing.
"""

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch import empty_windows
from jobs.microbatch.context import Batch, Closing
from jobs.microbatch.outputs import Step, derive, written
from jobs.microbatch.parallel import together
from windowing import delta
from windowing.aggregates.algebra import Algebra, Part
from windowing.columns import BATCH, END, JUDGED, PANE, RUN, START, TOUCHED
from windowing.grid.frame import instant
from windowing.ledger.rule import total
from windowing.merge import frame as merges
from windowing.merge.rule import bounds, in_output, output
from windowing.panes import frame as partials
from windowing.panes.frame import Range
from windowing.panes.rule import Family, families, span
from windowing.source import table as source
from windowing.spec.kinds import CHANGES, ON_CHANGE, Aligned, Global
from windowing.windows import aligned
from windowing.windows.gaps import filled


def emit(closing: Closing) -> dict[str, int]:
    """Brings every output that waits for the watermark up to date; returns their counts."""
    pipeline = closing.batch.pipeline
    steps: list[Step] = []
    if closing.within is None and closing.before_us == closing.after_us:
        return {}
    for family in families(pipeline):
        for window in family.windows:
            if (
                not isinstance(window, Global)
                and window.shown.emit != ON_CHANGE
                and closing.after_us is not None
            ):
                steps.append(partial(_aligned, closing, family, window))
    steps += [partial(derive, closing, w) for w in pipeline.windows if not in_output(w)]
    return total(together(steps)) if steps else {}


def _aligned(closing: Closing, family: Family, window: Aligned) -> dict[str, int]:
    batch, target = closing.batch, output(closing.batch.pipeline, window)
    path = batch.pipeline.table(family.table)
    if not delta.exists(batch.spark, path):
        return {}
    algebras = partials.algebras(
        batch.pipeline, window.aggregates, source.schema(batch.spark, batch.pipeline)
    )
    kept = partials.parts(algebras.values())
    found, within = _pool(closing, delta.read(batch.spark, path), window)
    pool = found.select(
        *batch.keys, PANE, JUDGED, TOUCHED, *(p.name for p in kept)
    ).localCheckpoint(eager=True)
    runs = aligned.stretches(
        pool, window, batch.keys, kept, batch.pipeline.watermark.allowed_lateness_us, within
    )
    if window.shown.emit == CHANGES:
        rows = _affected(
            closing,
            window,
            pool,
            within,
            changes(runs.localCheckpoint(eager=True), window, batch, algebras, within),
        )
    else:
        found = _closed(closing, family, window, runs, kept, within)
        rows = found.where((F.col(TOUCHED) > 0) | closing.since(F.col(END)))
        rows = merges.values(rows, [*batch.keys, *bounds(window)], window.aggregates, algebras)
    shown = merges.qualifying(rows.where(closing.closed(F.col(END))), window.shown.having)
    if delta.is_new(batch.spark, target.path):
        return written(batch, window, target, merges.inserts(shown, target))
    stored = delta.read(batch.spark, target.path)
    old = _affected(closing, window, pool, within, stored)
    if filled(window):
        shown = shown.localCheckpoint(eager=True)
        old = _with_those_of(shown, stored, old, [*batch.keys, START, END])
    return written(batch, window, target, merges.replacements(shown, old, target))


def _with_those_of(
    shown: DataFrame, stored: DataFrame, old: DataFrame, ids: list[str]
) -> DataFrame:
    """`old`, and the `stored` rows of the windows `shown`: windows without events before W are touched by no event of theirs."""
    ends = shown.agg(F.min(F.unix_micros(START)), F.max(F.unix_micros(START))).first()
    if ends is None or ends[0] is None:
        return old
    near = stored.where(F.col(START).between(instant(ends[0]), instant(ends[1])))
    return old.unionByName(near.join(shown.select(*ids), ids, "left_semi")).dropDuplicates(ids)


def changes(
    runs: DataFrame, window: Aligned, batch: Batch, algebras: dict[str, Algebra], within: Range
) -> DataFrame:
    """The windows whose aggregates differ from those of the one before: [keys, start, end, aggregates, __overflow]."""
    points = aligned.points(runs, window, batch.keys, partials.parts(algebras.values()), within)
    columns = [*batch.keys, aligned.GROUP, *bounds(window), aligned.BEFORE]
    valued = merges.values(points, columns, window.aggregates, algebras)
    names = [a.name for a in window.aggregates]
    differ = merges.differing(
        valued, [*batch.keys, aligned.GROUP], [START, END], names, aligned.BEFORE
    )
    return differ.drop(aligned.GROUP, aligned.BEFORE)


def _closed(
    closing: Closing,
    family: Family,
    window: Aligned,
    runs: DataFrame,
    kept: list[Part],
    within: Range,
) -> DataFrame:
    """Every window of `runs`, and where the output shows them the windows without events."""
    if not filled(window):
        return aligned.windows(runs, window, within)
    gaps, wide = empty_windows.closing_gaps(closing, window, family.table)
    return aligned.windows(
        runs.unionByName(aligned.empties(gaps, runs, window, closing.batch.keys, kept)),
        window,
        wide,
    )


def _pool(closing: Closing, panes: DataFrame, window: Aligned) -> tuple[DataFrame, Range]:
    """The panes that windows touched by this run, or passed by W, are made from; and the range they lie in."""
    batch, reach = closing.batch, 2 * span(window)
    fresh = (F.col(RUN) == batch.stamp.run) & (F.col(BATCH) >= 0)
    marked = panes.withColumn(TOUCHED, fresh.cast("bigint")).where(
        F.col(PANE) < instant(closing.after_us or 0)
    )
    within = _times(closing, panes)
    within = Range(within.low_us - reach, within.high_us + reach)
    marked = marked.where(F.col(PANE) >= instant(within.low_us))
    if (
        closing.before_us is None
        or closing.within is None
        or closing.within.low_us >= closing.before_us
    ):
        return marked, within
    edge = instant(closing.before_us - reach)
    newer, older = marked.where(F.col(PANE) >= edge), marked.where(F.col(PANE) < edge)
    return newer.unionByName(
        aligned.beside(older, marked.where(F.col(TOUCHED) > 0), window, batch.keys, within)
    ), within


def _times(closing: Closing, panes: DataFrame) -> Range:
    """The event times that the run touched or W passed; W passes everything when it is set for the first time.

    A backfill may have brought panes before there was a watermark, and no output has shown them yet.
    """
    times = [closing.before_us, closing.after_us]
    if closing.within is not None:
        times += [closing.within.low_us, closing.within.high_us]
    known = [us for us in times if us is not None]
    passed = Range(min(known), max(known))
    return empty_windows.spanned(panes, passed) if closing.before_us is None else passed


def _affected(
    closing: Closing, window: Aligned, pool: DataFrame, within: Range, rows: DataFrame
) -> DataFrame:
    """The rows of windows that this run touched or W passed; the same windows whether the rows are new or stored."""
    batch = closing.batch
    fresh = pool.where(F.col(TOUCHED) > 0).select(*batch.keys, PANE, JUDGED)
    same = [F.col(f"s.`{k}`") == F.col(f"f.`{k}`") for k in batch.keys]
    hit = aligned.touches(window, batch.pipeline.watermark.allowed_lateness_us, within)
    near = rows.where((F.col(END) > instant(within.low_us)) & ~closing.since(F.col(END)))
    touched = near.alias("s").join(fresh.alias("f"), [*same, hit], "left_semi")
    return touched.unionByName(rows.where(closing.since(F.col(END))))
