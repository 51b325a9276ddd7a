"""The grid rule as Spark expressions.

Instants are BIGINT columns in microseconds since 1970, and boundary numbers are BIGINT columns.
"""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.grid.range import Range
from windowing.grid.rule import Grid, Run, grid_runs
from windowing.grid.zone import micros, moment

_LAST_YEAR_OF_OTHER_CLOCKS = 1970


def instant(us: int) -> Column:
    """The instant `us` microseconds after 1970, as a TIMESTAMP literal.

    Beyond the years 1 to 9999 it is the nearer end of the calendar.
    """
    at = moment(us)
    if at.year > _LAST_YEAR_OF_OTHER_CLOCKS:
        return F.lit(at)
    # PySpark converts datetimes with Java's old calendar and the clock of the JVM, which is ten
    # days off before 1582 and, in some zones, minutes off before 1970. A number is not converted.
    return F.timestamp_micros(F.lit(micros(at)))


def div(a: Column, b: int) -> Column:
    """`a / b` rounded down, exact for every BIGINT, also below zero."""
    multiple = a - F.pmod(a, F.lit(b))
    return F.call_function("div", multiple, F.lit(b)).cast("bigint")


def index(grid: Grid, t: Column, within: Range) -> Column:
    """The number of the last boundary at or before `t`; right for times of `within`."""
    runs = grid_runs(grid, within.low_us, within.high_us)
    return _choose_run(runs, t, lambda run: run.at_us, lambda run: _index_in(run, t))


def start(grid: Grid, t: Column, within: Range) -> Column:
    """The last boundary at or before `t`, in one step; right for times of `within`."""
    runs = grid_runs(grid, within.low_us, within.high_us)
    return _choose_run(runs, t, lambda run: run.at_us, lambda run: _start_in(run, t))


def boundary(grid: Grid, k: Column, within: Range) -> Column:
    """The instant of boundary `k`.

    Right for the boundaries from the last one before or at the beginning of `within` to the first
    one after its end.
    """
    runs = grid_runs(grid, within.low_us, within.high_us)
    return _choose_run(runs, k, lambda run: run.first, lambda run: _boundary_in(run, k))


def _index_in(run: Run, t: Column) -> Column:
    if not run.step_us:
        return F.lit(run.last).cast("bigint")
    since_begin = t - F.lit(run.at_us)
    periods = div(since_begin, run.step_us)
    k = F.lit(run.first) + periods * F.lit(run.per)
    if run.per > 1:
        since_period = F.pmod(since_begin, F.lit(run.step_us))
        k = k + div(since_period, run.inner_us)
    if run.last is not None:
        k = F.least(k, F.lit(run.last))
    return k.cast("bigint")


def _start_in(run: Run, t: Column) -> Column:
    if not run.step_us:
        return F.lit(run.at_us).cast("bigint")
    since_boundary = F.pmod(t - F.lit(run.at_us), F.lit(run.step_us))
    if run.per > 1:
        since_boundary = F.pmod(since_boundary, F.lit(run.inner_us))
    begun = t - since_boundary
    if run.last is None:
        return begun
    return F.least(begun, F.lit(run.instant(run.last)))


def _boundary_in(run: Run, k: Column) -> Column:
    nth = k - F.lit(run.first)
    begin = F.lit(run.at_us)
    step = F.lit(run.step_us)
    if run.per == 1:
        return (begin + nth * step).cast("bigint")
    period = div(nth, run.per)
    inner = F.pmod(nth, F.lit(run.per)) * F.lit(run.inner_us)
    return (begin + period * step + inner).cast("bigint")


def _choose_run(
    runs: Sequence[Run], by: Column, begin: Callable[[Run], int], value: Callable[[Run], Column]
) -> Column:
    """The value of the last run that begins at or before `by`, found by halving.

    Nested halves keep the expression shallow: a zone has hundreds of runs in a century.
    """
    if len(runs) == 1:
        return value(runs[0])
    middle = len(runs) // 2
    left = _choose_run(runs[:middle], by, begin, value)
    right = _choose_run(runs[middle:], by, begin, value)
    begin_of_right = F.lit(begin(runs[middle]))
    return F.when(by < begin_of_right, left).otherwise(right)


def between(rows: DataFrame, column: str, low_us: int, high_us: int) -> DataFrame:
    """The rows whose `column` lies in [low, high)."""
    at = F.col(column)
    return rows.where((at >= instant(low_us)) & (at < instant(high_us)))
