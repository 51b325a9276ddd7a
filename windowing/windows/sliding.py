"""Tumbling and sliding windows as numbers: window n covers the steps [n * slide, n * slide + size) of its grid.

panes[key, pane_start, parts, judged_by, touched] -> stretches of windows that hold the same panes[key, from, to, parts, touched]
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Part
from windowing.columns import FROM, HIGH, JUDGED, LOW, PANE, ROWS, TO, TOUCHED
from windowing.grid.frame import boundary, div, index
from windowing.panes.frame import Range
from windowing.panes.rule import Shape, shape, span
from windowing.spec.kinds import CHANGES, Sliding, Tumbling

_NEXT, _BLOCK = "__next", "__in"


def placed(
    panes: DataFrame, window: Tumbling | Sliding, lateness_us: int | None, within: Range
) -> DataFrame:
    """Adds the first and the last window number each pane counts in, `__low` and `__high`; panes that count in none are gone."""
    form = shape(window)
    step = index(form.grid, F.unix_micros(PANE), within.low_us, within.high_us)
    low = div(step + F.lit(form.slide - form.size), form.slide)
    if lateness_us is not None:
        low = F.greatest(low, _first_open(form, lateness_us, within))
    numbered = panes.withColumn(LOW, low).withColumn(HIGH, div(step, form.slide))
    return numbered.where(F.col(LOW) <= F.col(HIGH))


def stretches(
    placed_panes: DataFrame, window: Tumbling | Sliding, keys: Sequence[str], kept: Sequence[Part]
) -> DataFrame:
    """Runs of windows `__from`..`__to` that hold the same panes; windows without a pane are in none."""
    form = shape(window)
    if form.size > form.slide and all(p.invertible for p in kept):
        return _by_change(placed_panes, keys, kept)
    if window.shown.emit == CHANGES:
        return _by_point(placed_panes, keys, kept, -(-form.size // form.slide))
    return _by_window(placed_panes, keys, kept)


def bounds(window: Tumbling | Sliding, n: Column, within: Range) -> tuple[Column, Column]:
    """Start and end, in microseconds, of window `n`, which holds an instant of `within`."""
    form, beyond = shape(window), span(window)
    low, high = within.low_us - beyond, within.high_us + beyond
    return boundary(form.grid, n * form.slide, low, high), boundary(
        form.grid, n * form.slide + form.size, low, high
    )


def repeats(window: Tumbling | Sliding, n: Column, within: Range) -> Column | None:
    """True for a window that window `n` + 1 repeats, both bounds having collapsed in a zone; None where that can't be."""
    if window.grid.zone is None:
        return None
    this, after = bounds(window, n, within), bounds(window, n + 1, within)
    return (this[0] == after[0]) & (this[1] == after[1])


def following(window: Tumbling | Sliding, t: Column, within: Range) -> Column:
    """The start, in microseconds, of the first window that begins after the instant `t`."""
    form, beyond = shape(window), span(window)
    low, high = within.low_us - beyond, within.high_us + beyond
    return boundary(
        form.grid, (div(index(form.grid, t, low, high), form.slide) + 1) * form.slide, low, high
    )


def block(window: Tumbling | Sliding, t: Column, within: Range) -> Column:
    """The block of `size` steps an instant lies in: windows of one block reach no further than the blocks beside it."""
    form = shape(window)
    return div(index(form.grid, t, within.low_us, within.high_us), form.size)


def _first_open(form: Shape, lateness_us: int, within: Range) -> Column:
    """The first window that ends after judged_by - lateness; nothing is closed where judged_by is null."""
    closed = F.least(F.unix_micros(JUDGED) - F.lit(lateness_us), F.lit(within.high_us))
    edge = index(form.grid, F.greatest(closed, F.lit(within.low_us)), within.low_us, within.high_us)
    passed = F.col(JUDGED).isNotNull() & (closed >= F.lit(within.low_us))
    return F.when(passed, div(edge - F.lit(form.size), form.slide) + F.lit(1))


def _by_window(panes: DataFrame, keys: Sequence[str], kept: Sequence[Part]) -> DataFrame:
    """A merge for each (pane, window): for windows of few panes and for parts that can't be subtracted."""
    each = panes.withColumn(FROM, F.explode(F.sequence(LOW, HIGH)))
    merged = each.groupBy(*keys, FROM).agg(
        *(p.merged() for p in kept), F.max(TOUCHED).alias(TOUCHED)
    )
    return merged.withColumn(TO, F.col(FROM))


def _by_change(panes: DataFrame, keys: Sequence[str], kept: Sequence[Part]) -> DataFrame:
    """Running sums over the points where something enters or leaves: two rows for each pane, however many windows hold it."""
    names = [*(p.name for p in kept), TOUCHED]
    enters = panes.select(
        *keys, F.col(LOW).alias(FROM), *(F.coalesce(F.col(n), F.lit(0)).alias(n) for n in names)
    )
    leaves = panes.select(
        *keys,
        (F.col(HIGH) + 1).alias(FROM),
        *((-F.coalesce(F.col(n), F.lit(0))).alias(n) for n in names),
    )
    order = Window.partitionBy(*keys).orderBy(FROM)
    running = order.rowsBetween(Window.unboundedPreceding, 0)
    summed = enters.unionByName(leaves).select(
        *keys,
        FROM,
        *(F.sum(n).over(running).alias(n) for n in names),
        F.lead(FROM).over(order).alias(_NEXT),
    )
    lasting = summed.where((F.col(ROWS) > 0) & (F.col(_NEXT) > F.col(FROM)))
    return lasting.withColumn(TO, F.col(_NEXT) - 1).drop(_NEXT)


def _by_point(panes: DataFrame, keys: Sequence[str], kept: Sequence[Part], wide: int) -> DataFrame:
    """A merge for each pane and window at which something enters or leaves: for parts that can't be subtracted, shown where they change.

    Windows meet panes in blocks of `wide` numbers, of which a pane lies in two at most.
    """
    edges = (
        panes.select(*keys, F.col(LOW).alias(FROM))
        .unionByName(panes.select(*keys, (F.col(HIGH) + 1).alias(FROM)))
        .distinct()
    )
    order = Window.partitionBy(*keys).orderBy(FROM)
    points = edges.withColumn(TO, F.lead(FROM).over(order) - 1).withColumn(
        _BLOCK, div(F.col(FROM), wide)
    )
    blocks = F.explode(F.sequence(div(F.col(LOW), wide), div(F.col(HIGH), wide)))
    held = (F.col(LOW) <= F.col(FROM)) & (F.col(FROM) <= F.col(HIGH))
    pairs = points.join(panes.withColumn(_BLOCK, blocks), [*keys, _BLOCK]).where(held)
    return pairs.groupBy(*keys, FROM, TO).agg(
        *(p.merged() for p in kept), F.max(TOUCHED).alias(TOUCHED)
    )
