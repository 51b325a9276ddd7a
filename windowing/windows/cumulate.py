"""Cumulating windows as numbers: window n runs from the beginning of its period to boundary n of the grid, inner boundaries counted.

panes[key, pane_start, parts, judged_by, touched] -> stretches of windows that hold the same panes[key, from, to, parts, touched]
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Part
from windowing.columns import FROM, HIGH, JUDGED, LOW, PANE, TO, TOUCHED
from windowing.grid.frame import boundary, div, index
from windowing.panes.frame import Range
from windowing.panes.rule import span
from windowing.spec.kinds import Cumulate


def placed(panes: DataFrame, window: Cumulate, lateness_us: int | None, within: Range) -> DataFrame:
    """Adds the first and the last window number each pane counts in, `__low` and `__high`; panes that count in none are gone."""
    step, per = (
        index(window.grid, F.unix_micros(PANE), within.low_us, within.high_us),
        window.grid.per,
    )
    low = step + F.lit(1)
    if lateness_us is not None:
        low = F.greatest(low, _first_open(window, lateness_us, within))
    numbered = panes.withColumn(LOW, low).withColumn(HIGH, (div(step, per) + 1) * F.lit(per))
    return numbered.where(F.col(LOW) <= F.col(HIGH))


def stretches(
    placed_panes: DataFrame, window: Cumulate, keys: Sequence[str], kept: Sequence[Part]
) -> DataFrame:
    """Runs of windows `__from`..`__to` that hold the same panes: one merge for each pane, however many windows hold it."""
    merged = placed_panes.groupBy(*keys, HIGH, LOW).agg(
        *(p.merged() for p in kept), F.max(TOUCHED).alias(TOUCHED)
    )
    order = Window.partitionBy(*keys, HIGH).orderBy(LOW)
    running = order.rowsBetween(Window.unboundedPreceding, 0)
    to = F.coalesce(F.lead(LOW).over(order) - 1, F.col(HIGH))
    return merged.select(
        *keys,
        F.col(LOW).alias(FROM),
        to.alias(TO),
        *(p.running(running) for p in kept),
        F.max(TOUCHED).over(running).alias(TOUCHED),
    )


def bounds(window: Cumulate, n: Column, within: Range) -> tuple[Column, Column]:
    """Start and end, in microseconds, of window `n`, which holds an instant of `within`."""
    beyond, grid = span(window), window.grid
    low, high = within.low_us - beyond, within.high_us + beyond
    return boundary(grid.periods, div(n - 1, grid.per), low, high), boundary(grid, n, low, high)


def repeats(window: Cumulate, n: Column, within: Range) -> Column | None:
    """True for a window that window `n` + 1 repeats: boundaries that collapsed, or lie beyond a short month; None where that can't be."""
    grid = window.grid
    if grid.zone is None and grid.step_us:
        return None
    this, after = bounds(window, n, within)[1], bounds(window, n + 1, within)[1]
    return (this == after) & (F.pmod(n, F.lit(grid.per)) != F.lit(0))


def following(window: Cumulate, t: Column, within: Range) -> Column | None:
    """None: no window of the next period changes with this one."""
    return None


def block(window: Cumulate, t: Column, within: Range) -> Column:
    """The period an instant lies in; windows reach no further."""
    return index(window.grid.periods, t, within.low_us, within.high_us)


def _first_open(window: Cumulate, lateness_us: int, within: Range) -> Column:
    """The first window that ends after judged_by - lateness; nothing is closed where judged_by is null."""
    closed = F.least(F.unix_micros(JUDGED) - F.lit(lateness_us), F.lit(within.high_us))
    edge = index(
        window.grid, F.greatest(closed, F.lit(within.low_us)), within.low_us, within.high_us
    )
    return F.when(F.col(JUDGED).isNotNull() & (closed >= F.lit(within.low_us)), edge + F.lit(1))
