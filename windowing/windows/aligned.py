"""Windows whose bounds are the same for every key, made from panes: tumbling, sliding and cumulate.

    panes[key, pane_start, parts, judged_by, touched] -> stretches[key, from, to, parts, touched]
        -> windows[key, start, end, parts, touched]                    every window that holds a pane
        -> points[key, start, end, parts, touched]                     only where the step function may change, down to nothing

A pane counts in the windows that hold its first instant and that were not late by the watermark its run was judged by
(window_end + allowed lateness > judged_by). What differs between kinds is in sliding.py and cumulate.py, under the same names.
"""

from collections.abc import Sequence
from types import ModuleType

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Part
from windowing.columns import END, FROM, JUDGED, PANE, ROWS, START, TO, TOUCHED
from windowing.grid.zone import longest_jump_us
from windowing.panes.frame import Range
from windowing.panes.rule import shape, span
from windowing.spec.kinds import CHANGES, Aligned, Cumulate, Sliding, Tumbling
from windowing.windows import cumulate, sliding

BEFORE, GROUP = "__before", "__group"
"""Marks points that only stand for what was before a key's first window; what windows are compared within."""


def kind(window: Aligned) -> ModuleType:
    """What is particular to this kind of window."""
    return cumulate if isinstance(window, Cumulate) else sliding


def reach(window: Aligned, within: Range) -> Range:
    """`within`, widened so that every pane that shares a window with an event of `within`, or the next window, begins inside."""
    wide = 2 if window.shown.emit == CHANGES else 1
    return Range(within.low_us - wide * span(window), within.high_us + wide * span(window))


def stretches(
    panes: DataFrame,
    window: Aligned,
    keys: Sequence[str],
    kept: Sequence[Part],
    lateness_us: int | None,
    within: Range,
) -> DataFrame:
    """Runs of windows that hold the same panes, all event times being inside `within`."""
    of = kind(window)
    found: DataFrame = of.stretches(
        of.placed(panes, window, lateness_us, within), window, keys, kept
    )
    return found


def windows(runs: DataFrame, window: Aligned, within: Range) -> DataFrame:
    """Every window of `runs`, once and none of no length: [keys, from, to, ...] -> [keys, window_start, window_end, ...]."""
    each = runs.withColumn(FROM, F.explode(F.sequence(FROM, TO))).drop(TO)
    repeated = kind(window).repeats(window, F.col(FROM), within)
    return (
        bounded(each, window, within)
        if repeated is None
        else lasting(each.where(~repeated), window, within)
    )


def lasting(numbered: DataFrame, window: Aligned, within: Range) -> DataFrame:
    """`bounded`, without windows of no length: those a zone's clock jumped over."""
    return bounded(numbered, window, within).where(F.col(START) < F.col(END))


def bounded(numbered: DataFrame, window: Aligned, within: Range) -> DataFrame:
    """Numbers become bounds: [keys, from, ...] -> [keys, window_start, window_end, ...]."""
    start, end = kind(window).bounds(window, F.col(FROM), within)
    return numbered.withColumns(
        {START: F.timestamp_micros(start), END: F.timestamp_micros(end)}
    ).drop(FROM)


def points(
    runs: DataFrame, window: Aligned, keys: Sequence[str], kept: Sequence[Part], within: Range
) -> DataFrame:
    """Every window at which the value may differ from the one before: [keys, from, to, parts] -> [keys, group, bounds, parts, __before].

    The first window of each stretch; where nothing follows it directly, the one after it, without parts (not for cumulate, which begins
    anew); and, marked `__before`, one without parts that stands for what was before the first of a group.
    """
    period = (
        F.floor((F.col(FROM) - 1) / F.lit(window.grid.per))
        if isinstance(window, Cumulate)
        else F.lit(0)
    )
    grouped = runs.withColumn(GROUP, period.cast("bigint"))
    columns = [*keys, GROUP, FROM]
    begins = grouped.select(*columns, *(p.name for p in kept))
    nothing = [F.lit(None).cast(begins.schema[p.name].dataType).alias(p.name) for p in kept]
    before = (
        grouped.groupBy(*keys, GROUP).agg((F.min(FROM) - 1).alias(FROM)).select(*columns, *nothing)
    )
    if not isinstance(window, Cumulate):
        begins = begins.unionByName(_ends(grouped, window, keys, within).select(*columns, *nothing))
    found = lasting(begins, window, within).withColumn(BEFORE, F.lit(False))
    return found.unionByName(bounded(before, window, within).withColumn(BEFORE, F.lit(True)))


def _ends(
    grouped: DataFrame, window: Tumbling | Sliding, keys: Sequence[str], within: Range
) -> DataFrame:
    """The window right after each stretch that nothing follows directly; more than one where a zone's clock may have jumped over it."""
    follows = F.lead(FROM).over(Window.partitionBy(*keys, GROUP).orderBy(FROM))
    skipped = (
        longest_jump_us(window.grid.zone, within.low_us, within.high_us) // window.grid.step_us
    )
    last = F.least(F.col(TO) + F.lit(1 + skipped), F.col("__follows") - F.lit(1))
    alone = grouped.withColumn("__follows", follows).where(
        F.col("__follows").isNull() | (F.col("__follows") > F.col(TO) + 1)
    )
    return alone.select(*keys, GROUP, F.explode(F.sequence(F.col(TO) + 1, last)).alias(FROM))


def empties(
    extents: DataFrame,
    filled: DataFrame,
    window: Aligned,
    keys: Sequence[str],
    kept: Sequence[Part],
) -> DataFrame:
    """The windows of `extents` [keys, __low, __high] that are not in `filled` [keys, from, to, parts, touched]: without rows, touched."""
    types = {f.name: f.dataType for f in filled.schema.fields}
    each = extents.select(*keys, F.explode(F.sequence("__low", "__high")).alias(FROM)).distinct()
    there = filled.select(*keys, F.explode(F.sequence(FROM, TO)).alias(FROM))
    nothing = [F.lit(None).cast(types[p.name]).alias(p.name) for p in kept if p.name != ROWS]
    lacking = each.join(there, [*keys, FROM], "left_anti")
    return lacking.select(
        *keys,
        FROM,
        F.col(FROM).alias(TO),
        F.lit(0).cast("bigint").alias(ROWS),
        *nothing,
        F.lit(1).cast("bigint").alias(TOUCHED),
    )


def touches(window: Aligned, lateness_us: int | None, within: Range) -> Column:
    """True where window [s.window_start, s.window_end) changes with pane f: it holds the pane in time, or (changes) may be the next one.

    For a join of stored rows `s` with fresh panes `f` [pane_start, judged_by].
    """
    pane, judged = F.unix_micros(F.col(f"f.{PANE}")), F.unix_micros(F.col(f"f.{JUDGED}"))
    start, end = F.unix_micros(F.col(f"s.{START}")), F.unix_micros(F.col(f"s.{END}"))
    holds = (start <= pane) & (pane < end)
    if lateness_us is not None:
        holds = holds & (judged.isNull() | (end + F.lit(lateness_us) > judged))
    after = kind(window).following(window, pane, within) if window.shown.emit == CHANGES else None
    return holds if after is None else holds | (start == after)


def beside(
    before: DataFrame, fresh: DataFrame, window: Aligned, keys: Sequence[str], within: Range
) -> DataFrame:
    """The stored panes that share a window, or one with the next window, with a fresh one of the same key; now and then a few more."""
    of, wide = kind(window), reach(window, within)
    alone = isinstance(window, Cumulate) or (
        shape(window).size == 1 and window.shown.emit != CHANGES
    )
    far = 2 if window.shown.emit == CHANGES else 1
    near = F.explode(
        F.array(
            *(
                of.block(window, F.unix_micros(PANE), wide) + d
                for d in ((0,) if alone else range(-far, far + 1))
            )
        )
    )
    wanted = fresh.select(*keys, near.alias("__block")).distinct()
    placed = before.withColumn("__block", of.block(window, F.unix_micros(PANE), wide))
    return placed.join(wanted, [*keys, "__block"], "left_semi").drop("__block")
