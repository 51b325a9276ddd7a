"""Windows whose bounds are the same for every key, made from panes: tumbling and sliding.

    panes[key, pane_start, rows, parts, judged_by, touched] -> steps of the window's grid -> windows[key, start, end, rows, parts, touched]

Window j covers the steps [j * slide, j * slide + size) of its grid. A pane counts in the windows that hold its first instant and that
were not late by the watermark its run was judged by (window_end + allowed lateness > judged_by).
"""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.columns import END, JUDGED, PANE, ROWS, START, TOUCHED
from windowing.grid.frame import boundary, div, index
from windowing.panes.algebra import Part
from windowing.panes.frame import Range
from windowing.panes.rule import Shape, shape, span
from windowing.spec.pipeline import Sliding, Tumbling

_LOW, _HIGH, _J = "__low", "__high", "__j"


def neighbourhood(window: Tumbling | Sliding, within: Range) -> Callable[[Column], Column]:
    """The block of `size` steps an instant (microseconds) lies in: windows of one block reach no further than the blocks beside it."""
    wide, form = reach(window, within), shape(window)
    return lambda t: div(index(form.grid, t, wide.low_us, wide.high_us), form.size)


def reach(window: Tumbling | Sliding, within: Range) -> Range:
    """`within`, widened by one window to each side: every pane that shares a window with an event of `within` begins inside."""
    return Range(within.low_us - span(window), within.high_us + span(window))


def windows(
    panes: DataFrame, window: Tumbling | Sliding, keys: Sequence[str], kept: Sequence[Part], lateness_us: int | None, within: Range
) -> DataFrame:
    """Every window that holds a row of `panes`, all event times being inside `within`.

    panes[keys, pane_start, rows, parts, judged_by, touched] -> [keys, window_start, window_end, rows, parts, touched].
    """
    form = shape(window)
    placed = _placed(panes, form, lateness_us, within)
    merged = _by_change(placed, keys, kept) if _subtracts(form, kept) else _by_window(placed, keys, kept)
    start, end = _bounds(form, within, span(window))
    return merged.withColumn(START, start).withColumn(END, end).drop(_J)


def _placed(panes: DataFrame, form: Shape, lateness_us: int | None, within: Range) -> DataFrame:
    """Adds the first and the last window number a pane counts in; panes that count in none are gone."""
    step = index(form.grid, F.unix_micros(PANE), within.low_us, within.high_us)
    low = div(step + F.lit(form.slide - form.size), form.slide)
    if lateness_us is not None:
        low = F.greatest(low, _first_open(form, lateness_us, within))
    placed = panes.withColumn(_LOW, low).withColumn(_HIGH, div(step, form.slide))
    return placed.where(F.col(_LOW) <= F.col(_HIGH))


def _first_open(form: Shape, lateness_us: int, within: Range) -> Column:
    """The first window that ends after judged_by - lateness; nothing is closed where judged_by is null."""
    closed = F.least(F.unix_micros(JUDGED) - F.lit(lateness_us), F.lit(within.high_us))
    edge = index(form.grid, F.greatest(closed, F.lit(within.low_us)), within.low_us, within.high_us)
    passed = F.col(JUDGED).isNotNull() & (closed >= F.lit(within.low_us))
    return F.when(passed, div(edge - F.lit(form.size), form.slide) + F.lit(1))


def _subtracts(form: Shape, kept: Sequence[Part]) -> bool:
    return form.size > form.slide and all(p.invertible for p in kept)


def _by_window(placed: DataFrame, keys: Sequence[str], kept: Sequence[Part]) -> DataFrame:
    """A merge for each (pane, window): for windows of few panes and for parts that can't be subtracted."""
    each = placed.withColumn(_J, F.explode(F.sequence(_LOW, _HIGH)))
    merges = [p.merge(F.col(p.name)).alias(p.name) for p in kept]
    return each.groupBy(*keys, _J).agg(*merges, F.max(TOUCHED).alias(TOUCHED))


def _by_change(placed: DataFrame, keys: Sequence[str], kept: Sequence[Part]) -> DataFrame:
    """Running sums over the points where something enters or leaves: two rows for each pane, however many windows hold it."""
    names = [*(p.name for p in kept), TOUCHED]
    enters = placed.select(*keys, F.col(_LOW).alias(_J), *(F.coalesce(F.col(n), F.lit(0)).alias(n) for n in names))
    leaves = placed.select(*keys, (F.col(_HIGH) + 1).alias(_J), *((-F.coalesce(F.col(n), F.lit(0))).alias(n) for n in names))
    order = Window.partitionBy(*keys).orderBy(_J)
    running = order.rowsBetween(Window.unboundedPreceding, 0)
    summed = enters.unionByName(leaves).select(
        *keys, _J, *(F.sum(n).over(running).alias(n) for n in names), F.lead(_J).over(order).alias("__next")
    )
    lasting = summed.where((F.col(ROWS) > 0) & (F.col(TOUCHED) > 0) & (F.col("__next") > F.col(_J)))
    return lasting.withColumn(_J, F.explode(F.sequence(F.col(_J), F.col("__next") - 1))).drop("__next")


def _bounds(form: Shape, within: Range, span_us: int) -> tuple[Column, Column]:
    low, high = within.low_us - span_us, within.high_us + span_us
    start = boundary(form.grid, F.col(_J) * form.slide, low, high)
    end = boundary(form.grid, F.col(_J) * form.slide + form.size, low, high)
    return F.timestamp_micros(start), F.timestamp_micros(end)


def beside(before: DataFrame, fresh: DataFrame, window: Tumbling | Sliding, keys: Sequence[str], within: Range) -> DataFrame:
    """The stored panes that share a window with a fresh one of the same key; now and then a few more."""
    block = neighbourhood(window, within)
    near = F.explode(F.array(*(block(F.unix_micros(PANE)) + d for d in ((0,) if shape(window).size == 1 else (-1, 0, 1)))))
    wanted = fresh.select(*keys, near.alias("__block")).distinct()
    return before.withColumn("__block", block(F.unix_micros(PANE))).join(wanted, [*keys, "__block"], "left_semi").drop("__block")
