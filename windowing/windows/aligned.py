"""Windows whose bounds are the same for every key, made from panes: tumbling, sliding and cumulate.

    panes[key, pane_start, parts, judged_by, touched] -> stretches[key, from, to, parts, touched]
        -> windows[key, start, end, parts, touched]    every window that contains a pane
        -> points[key, start, end, parts, touched]     only where the step function may change,
                                                       down to nothing

A pane counts in the windows that contain its first instant and that were not late by the watermark
its run was judged by (window_end + allowed lateness > judged_by). What differs between kinds is in
sliding.py and cumulate.py, under the same names.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import assert_never

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Part
from windowing.columns import END, FROM, HIGH, JUDGED, LOW, PANE, ROWS, START, TO, TOUCHED
from windowing.grid.frame import div
from windowing.grid.rule import Grid
from windowing.grid.zone import longest_jump_us
from windowing.panes.frame import Range
from windowing.panes.rule import grid_shape, longest_span
from windowing.spec.kinds import CHANGES, Aligned, Cumulate, Sliding, Tumbling
from windowing.windows import cumulate, sliding

BEFORE, GROUP = "__before", "__group"
"""True for points that stand for what was before a key's first window; the group to compare in."""


def kind(window: Aligned) -> ModuleType:
    """What is particular to this kind of window."""
    match window:
        case Tumbling() | Sliding():
            return sliding
        case Cumulate():
            return cumulate
        case _:
            assert_never(window)


def reach(window: Aligned, within: Range) -> Range:
    """`within`, widened so that it contains the start of every pane that a recomputation needs.

    Those share a window with an event of `within`, or with the window next to such a window. The
    ends of these windows are inside too, because they decide which panes were late.
    """
    wide = _windows_apart(window) * longest_span(window)
    return Range(within.low_us - wide, within.high_us + wide)


def _windows_apart(window: Aligned) -> int:
    """How many windows lie between an event and the panes that its windows are computed from.

    With `emit: changes` each window is compared with the one before it, so it is one more.
    """
    return 2 if window.shown.emit == CHANGES else 1


def stretches(
    panes: DataFrame,
    window: Aligned,
    keys: Sequence[str],
    kept: Sequence[Part],
    lateness_us: int | None,
    within: Range,
) -> DataFrame:
    """Stretches of windows that contain the same panes; all event times are inside `within`.

    panes[keys, pane_start, parts, judged_by, touched] -> [keys, from, to, parts, touched].
    """
    of_kind = kind(window)
    placed = of_kind.placed(panes, window, lateness_us, within)
    found: DataFrame = of_kind.stretches(placed, window, keys, kept)
    return found


def has_one_pane(window: Aligned, cuts: Sequence[Grid]) -> bool:
    """Whether a window is exactly one of the panes that are cut by `cuts`."""
    return isinstance(window, Tumbling) and tuple(cuts) == (window.grid,)


def stretches_of_different_panes(
    panes: DataFrame,
    window: Aligned,
    cuts: Sequence[Grid],
    keys: Sequence[str],
    kept: Sequence[Part],
    lateness_us: int | None,
    within: Range,
) -> DataFrame:
    """`stretches` of panes that are cut by `cuts`, where no two are the same pane of a key.

    Where a window is one pane there is nothing to merge then, so no row is sent between tasks.
    """
    if not has_one_pane(window, cuts) or not all(part.is_same_alone for part in kept):
        return stretches(panes, window, keys, kept, lateness_us, within)
    placed = kind(window).placed(panes, window, lateness_us, within)
    bounds = [F.col(LOW).alias(FROM), F.col(HIGH).alias(TO)]
    names = [part.name for part in kept]
    found: DataFrame = placed.select(*keys, *bounds, *names, TOUCHED)
    return found


def windows(runs: DataFrame, window: Aligned, within: Range) -> DataFrame:
    """Every window of `runs`, each once and without windows of no length.

    [keys, from, to, ...] -> [keys, window_start, window_end, ...].
    """
    each = runs.withColumn(FROM, F.explode(F.sequence(FROM, TO))).drop(TO)
    repeated = kind(window).repeats(window, F.col(FROM), within)
    if repeated is None:
        return bounded(each, window, within)
    return lasting(each.where(~repeated), window, within)


def lasting(numbered: DataFrame, window: Aligned, within: Range) -> DataFrame:
    """`bounded`, without windows of no length, because a zone's clock may jump over windows."""
    return bounded(numbered, window, within).where(F.col(START) < F.col(END))


def bounded(numbered: DataFrame, window: Aligned, within: Range) -> DataFrame:
    """Numbers become bounds: [keys, from, ...] -> [keys, window_start, window_end, ...]."""
    start_us, end_us = kind(window).bounds(window, F.col(FROM), within)
    bounds = {START: F.timestamp_micros(start_us), END: F.timestamp_micros(end_us)}
    return numbered.withColumns(bounds).drop(FROM)


def points(
    runs: DataFrame, window: Aligned, keys: Sequence[str], kept: Sequence[Part], within: Range
) -> DataFrame:
    """Every window at which the value may differ from the one before.

    [keys, from, to, parts] -> [keys, group, bounds, parts, __before].

    - The first window of each stretch.
    - Where no stretch follows directly, the window after it, without parts. Not for cumulate, which
      begins with nothing in each period.
    - Marked `__before`: a window without parts, for what was before the first window of a group.
    """
    grouped = runs.withColumn(GROUP, _group_of(window).cast("bigint"))
    columns = [*keys, GROUP, FROM]
    begins = grouped.select(*columns, *(part.name for part in kept))
    nothing = [
        F.lit(None).cast(begins.schema[part.name].dataType).alias(part.name) for part in kept
    ]
    first = grouped.groupBy(*keys, GROUP).agg((F.min(FROM) - 1).alias(FROM))
    before = first.select(*columns, *nothing)
    if not isinstance(window, Cumulate):
        ends = _windows_after(grouped, window, keys, within)
        begins = begins.unionByName(ends.select(*columns, *nothing))
    found = lasting(begins, window, within).withColumn(BEFORE, F.lit(False))
    return found.unionByName(bounded(before, window, within).withColumn(BEFORE, F.lit(True)))


def _group_of(window: Aligned) -> Column:
    """What windows are compared within: all of a key, or for cumulate those of one period."""
    if isinstance(window, Cumulate):
        return div(F.col(FROM) - 1, window.grid.per)
    return F.lit(0)


def _windows_after(
    grouped: DataFrame, window: Tumbling | Sliding, keys: Sequence[str], within: Range
) -> DataFrame:
    """The window right after each stretch that no other follows directly: [keys, group, from].

    It is more than one where a zone's clock may have jumped over it: those of no length are left
    out later.
    """
    follows = F.lead(FROM).over(Window.partitionBy(*keys, GROUP).orderBy(FROM))
    longest_jump = longest_jump_us(window.grid.zone, within.low_us, within.high_us)
    skipped = longest_jump // window.grid.step_us
    last = F.least(F.col(TO) + F.lit(1 + skipped), F.col("__follows") - F.lit(1))
    nothing_follows = F.col("__follows").isNull()
    follows_later = F.col("__follows") > F.col(TO) + 1
    alone = grouped.withColumn("__follows", follows).where(nothing_follows | follows_later)
    return alone.select(*keys, GROUP, F.explode(F.sequence(F.col(TO) + 1, last)).alias(FROM))


def empties(
    extents: DataFrame,
    filled: DataFrame,
    window: Aligned,
    keys: Sequence[str],
    kept: Sequence[Part],
) -> DataFrame:
    """The windows of `extents` that are not in `filled`: 0 rows, null parts, and touched.

    extents[keys, __low, __high] x filled[keys, from, to, parts, touched] -> columns of `filled`.
    """
    types = {field.name: field.dataType for field in filled.schema.fields}
    each = extents.select(*keys, F.explode(F.sequence("__low", "__high")).alias(FROM)).distinct()
    present = filled.select(*keys, F.explode(F.sequence(FROM, TO)).alias(FROM))
    names = [part.name for part in kept if part.name != ROWS]
    nothing = [F.lit(None).cast(types[name]).alias(name) for name in names]
    lacking = each.join(present, [*keys, FROM], "left_anti")
    return lacking.select(
        *keys,
        FROM,
        F.col(FROM).alias(TO),
        F.lit(0).cast("bigint").alias(ROWS),
        *nothing,
        F.lit(1).cast("bigint").alias(TOUCHED),
    )


def touches(window: Aligned, lateness_us: int | None, within: Range) -> Column:
    """True where window [s.window_start, s.window_end) changes with pane `f`.

    The window contains the pane, which was not late for it. With `emit: changes` it may also be the
    next window. For a join of stored rows `s` with fresh panes `f` [pane_start, judged_by].
    """
    pane = F.unix_micros(F.col(f"f.{PANE}"))
    judged = F.unix_micros(F.col(f"f.{JUDGED}"))
    start = F.unix_micros(F.col(f"s.{START}"))
    end = F.unix_micros(F.col(f"s.{END}"))
    contains = (start <= pane) & (pane < end)
    if lateness_us is not None:
        in_time = judged.isNull() | (end + F.lit(lateness_us) > judged)
        contains = contains & in_time
    if window.shown.emit != CHANGES:
        return contains
    after = kind(window).following(window, pane, within)
    return contains if after is None else contains | (start == after)


def beside(
    before: DataFrame, fresh: DataFrame, window: Aligned, keys: Sequence[str], within: Range
) -> DataFrame:
    """The stored panes that share a window with a fresh pane of the same key, and a few more.

    With `emit: changes` also those that share one with the next window.
    """
    return _keep_near(before, PANE, fresh, window, keys, within)


def windows_of(
    stored: DataFrame, fresh: DataFrame, window: Aligned, keys: Sequence[str], within: Range
) -> DataFrame:
    """The stored windows that contain a fresh pane of the same key, and a few more."""
    return _keep_near(stored, START, fresh, window, keys, within)


def _keep_near(
    rows: DataFrame,
    time: str,
    fresh: DataFrame,
    window: Aligned,
    keys: Sequence[str],
    within: Range,
) -> DataFrame:
    """The `rows` of the same key whose `time` is near a fresh pane.

    They are joined by blocks of steps, so a few that need not be read may be among them.
    """
    of_kind, wide = kind(window), reach(window, within)
    block = of_kind.block(window, F.unix_micros(PANE), wide)
    near = F.explode(F.array(*(block + distance for distance in _block_distances(window))))
    wanted = fresh.select(*keys, near.alias("__block")).distinct()
    placed = rows.withColumn("__block", of_kind.block(window, F.unix_micros(time), wide))
    return placed.join(wanted, [*keys, "__block"], "left_semi").drop("__block")


def _block_distances(window: Aligned) -> Sequence[int]:
    """How far from its own block, in blocks, the panes lie that share a window with a pane."""
    if isinstance(window, Cumulate):
        return (0,)
    if grid_shape(window).size == 1 and window.shown.emit != CHANGES:
        return (0,)
    far = _windows_apart(window)
    return range(-far, far + 1)
