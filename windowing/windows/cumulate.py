"""Cumulating windows as numbers.

Window n runs from the beginning of its period to boundary n of the grid; inner boundaries are
counted too.

panes[key, pane_start, parts, judged_by, touched]
    -> stretches of windows that contain the same panes[key, from, to, parts, touched]
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Part
from windowing.columns import FROM, HIGH, JUDGED, LOW, PANE, TO, TOUCHED
from windowing.grid.frame import boundary, div, index
from windowing.panes.frame import Range
from windowing.panes.rule import longest_span
from windowing.spec.kinds import Cumulate


def placed(panes: DataFrame, window: Cumulate, lateness_us: int | None, within: Range) -> DataFrame:
    """Adds the first and the last window number that each pane counts in, `__low` and `__high`.

    Panes that count in no window are left out.
    """
    step = index(window.grid, F.unix_micros(PANE), within.low_us, within.high_us)
    per = window.grid.per
    low = step + F.lit(1)
    high = (div(step, per) + 1) * F.lit(per)
    if lateness_us is not None:
        low = F.greatest(low, _first_open(window, lateness_us, within))
    numbered = panes.withColumn(LOW, low).withColumn(HIGH, high)
    return numbered.where(F.col(LOW) <= F.col(HIGH))


def stretches(
    placed_panes: DataFrame, window: Cumulate, keys: Sequence[str], kept: Sequence[Part]
) -> DataFrame:
    """Stretches of windows `__from`..`__to`, both inside, that contain the same panes.

    One merge for each pane, however many windows contain it.
    """
    merges = [part.merged() for part in kept]
    merged = placed_panes.groupBy(*keys, HIGH, LOW).agg(*merges, F.max(TOUCHED).alias(TOUCHED))
    # All windows of one period have the same `__high`: its last boundary.
    order = Window.partitionBy(*keys, HIGH).orderBy(LOW)
    running = order.rowsBetween(Window.unboundedPreceding, 0)
    to = F.coalesce(F.lead(LOW).over(order) - 1, F.col(HIGH))
    return merged.select(
        *keys,
        F.col(LOW).alias(FROM),
        to.alias(TO),
        *(part.running(running) for part in kept),
        F.max(TOUCHED).over(running).alias(TOUCHED),
    )


def bounds(window: Cumulate, n: Column, within: Range) -> tuple[Column, Column]:
    """Start and end, in microseconds, of window `n`, which contains an instant of `within`."""
    beyond, grid = longest_span(window), window.grid
    low, high = within.low_us - beyond, within.high_us + beyond
    start = boundary(grid.periods, div(n - 1, grid.per), low, high)
    end = boundary(grid, n, low, high)
    return start, end


def repeats(window: Cumulate, n: Column, within: Range) -> Column | None:
    """True for a window `n` whose end window `n` + 1 repeats; None where that can't be.

    Boundaries repeat where a zone's clock jumps over them, or where they lie beyond a short month.
    """
    grid = window.grid
    if grid.zone is None and grid.step_us:
        return None
    _, end = bounds(window, n, within)
    _, next_end = bounds(window, n + 1, within)
    ends_period = F.pmod(n, F.lit(grid.per)) == F.lit(0)
    return (end == next_end) & ~ends_period


def following(window: Cumulate, t: Column, within: Range) -> Column | None:
    """None, because no window of the next period changes with this one."""
    return None


def block(window: Cumulate, t: Column, within: Range) -> Column:
    """The number of the period that contains an instant; windows reach no further."""
    return index(window.grid.periods, t, within.low_us, within.high_us)


def _first_open(window: Cumulate, lateness_us: int, within: Range) -> Column:
    """The first window that ends after judged_by - lateness; null where no window is closed.

    judged_by is null where no watermark judged the events: in a first run, or in a backfill.
    """
    low, high = F.lit(within.low_us), F.lit(within.high_us)
    closed = F.least(F.unix_micros(JUDGED) - F.lit(lateness_us), high)
    edge = index(window.grid, F.greatest(closed, low), within.low_us, within.high_us)
    passed = F.col(JUDGED).isNotNull() & (closed >= low)
    return F.when(passed, edge + F.lit(1))
