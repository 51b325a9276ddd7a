"""The grid rule as Spark expressions: instants and boundary numbers are BIGINT columns, microseconds and counts."""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.grid.rule import Grid, Run, runs
from windowing.grid.zone import micros, moment

_SAME_CLOCK = 1970


def instant(us: int) -> Column:
    """The instant `us` microseconds after 1970, beyond the years 1 to 9999 the end of the calendar that is nearer.

    PySpark hands dates over by Java's old calendar and the clock of the JVM: ten days off before 1582, in some zones minutes before 1970.
    Those are made of the number.
    """
    at = moment(us)
    return F.lit(at) if at.year > _SAME_CLOCK else F.timestamp_micros(F.lit(micros(at)))


def div(a: Column, b: int) -> Column:
    """`a / b` rounded down, exact for every BIGINT, also below zero."""
    return F.call_function("div", a - F.pmod(a, F.lit(b)), F.lit(b)).cast("bigint")


def index(grid: Grid, t: Column, low_us: int, high_us: int) -> Column:
    """The number of the last boundary at or before `t`; right for `low_us` <= t <= `high_us`."""
    return _tree(runs(grid, low_us, high_us), t, lambda r: r.at_us, lambda r: _index_in(r, t))


def start(grid: Grid, t: Column, low_us: int, high_us: int) -> Column:
    """The last boundary at or before `t`, in one step; right for `low_us` <= t <= `high_us`."""
    return _tree(runs(grid, low_us, high_us), t, lambda r: r.at_us, lambda r: _start_in(r, t))


def boundary(grid: Grid, k: Column, low_us: int, high_us: int) -> Column:
    """The instant of boundary `k`; right for the boundaries from the last <= `low_us` to the first > `high_us`."""
    return _tree(runs(grid, low_us, high_us), k, lambda r: r.first, lambda r: _boundary_in(r, k))


def _index_in(run: Run, t: Column) -> Column:
    if not run.step_us:
        return F.lit(run.last).cast("bigint")
    into = t - F.lit(run.at_us)
    k = F.lit(run.first) + div(into, run.step_us) * F.lit(run.per)
    if run.per > 1:
        k = k + div(F.pmod(into, F.lit(run.step_us)), run.inner_us)
    return (k if run.last is None else F.least(k, F.lit(run.last))).cast("bigint")


def _start_in(run: Run, t: Column) -> Column:
    if not run.step_us:
        return F.lit(run.at_us).cast("bigint")
    into = F.pmod(t - F.lit(run.at_us), F.lit(run.step_us))
    begun = t - (F.pmod(into, F.lit(run.inner_us)) if run.per > 1 else into)
    return begun if run.last is None else F.least(begun, F.lit(run.instant(run.last)))


def _boundary_in(run: Run, k: Column) -> Column:
    nth = k - F.lit(run.first)
    if run.per == 1:
        return (F.lit(run.at_us) + nth * F.lit(run.step_us)).cast("bigint")
    inside = F.pmod(nth, F.lit(run.per)) * F.lit(run.inner_us)
    return (F.lit(run.at_us) + div(nth, run.per) * F.lit(run.step_us) + inside).cast("bigint")


def _tree(
    pieces: Sequence[Run], by: Column, begin: Callable[[Run], int], value: Callable[[Run], Column]
) -> Column:
    """The value of the last piece that begins at or before `by`, found by halving."""
    if len(pieces) == 1:
        return value(pieces[0])
    middle = len(pieces) // 2
    left, right = _tree(pieces[:middle], by, begin, value), _tree(pieces[middle:], by, begin, value)
    return F.when(by < F.lit(begin(pieces[middle])), left).otherwise(right)


def between(rows: DataFrame, column: str, low_us: int, high_us: int) -> DataFrame:
    """The rows whose `column` lies in [low, high)."""
    return rows.where((F.col(column) >= instant(low_us)) & (F.col(column) < instant(high_us)))
