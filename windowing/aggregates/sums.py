"""Aggregates that add numbers: counts, sums, means and variances.

Integers are added exactly, decimals in 38 digits, fractions as doubles.
"""

from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import (
    INTEGERS,
    Algebra,
    Input,
    Part,
    Step,
    add,
    count_part,
    rows_part,
)
from windowing.aggregates.decimals import WideSum, is_wide
from windowing.columns import ROWS
from windowing.rows import not_finite

_HALF = 32
"""Bits of the lower half of a 64-bit integer."""

_Total = tuple[tuple[Part, ...], Column, Column | None]
"""Parts of a sum, its value in the result type, and where that overflowed."""


def count(i: Input) -> Algebra:
    """How many events there are."""
    part = rows_part() if i.name == ROWS else count_part(i)
    return Algebra((part,), F.coalesce(F.col(part.name), F.lit(0)))


def count_if(i: Input) -> Algebra:
    """How many values are true; null is not."""
    part = Part(f"{i.name}__true", F.count_if(i.value), F.sum, invertible=True, join=add)
    return Algebra((part,), F.coalesce(F.col(part.name), F.lit(0)))


def sum_of(i: Input) -> Algebra:
    """The sum; null where there is no value or the result type can't contain it."""
    parts, total, overflow = _build_total(i)
    has_values = F.col(f"{i.name}__n") > 0
    if overflow is not None:
        overflow = has_values & overflow
    return Algebra((*parts, count_part(i)), F.when(has_values, total), overflow)


def avg(i: Input) -> Algebra:
    """The mean; null where there is no value, or the sum of decimals or doubles leaves its type."""
    parts, _, _ = _build_total(i)
    n = F.col(f"{i.name}__n")
    mean = F.when(n > 0, F.try_divide(_choose_dividend(i), n))
    overflow = None
    # Whole numbers are divided in a type that has every sum of theirs.
    if not isinstance(i.type, INTEGERS):
        overflow = (n > 0) & mean.isNull()
    return Algebra((*parts, count_part(i)), mean, overflow)


def variance(i: Input) -> Algebra:
    """The sample variance; null below two values."""
    part = _moments_part(i)
    moments = F.col(part.name)
    value = F.when(moments["n"] > 1, moments["m2"] / (moments["n"] - 1))
    return Algebra((part,), value)


def stddev(i: Input) -> Algebra:
    """The square root of the sample variance."""
    squared = variance(i)
    return Algebra(squared.parts, F.sqrt(squared.lower))


def _build_total(i: Input) -> _Total:
    if isinstance(i.type, T.LongType):
        return _build_total_of_longs(i)
    if isinstance(i.type, T.DecimalType):
        return _build_total_of_decimals(i, i.type)
    # Sums of shorter integers are exact, so they can be inverted; sums of doubles are rounded.
    name = f"{i.name}__sum"
    invertible = isinstance(i.type, INTEGERS)
    join = add if invertible else None
    part = Part(name, F.sum(i.value), F.sum, invertible=invertible, join=join)
    total = F.col(name)
    if invertible:
        return (part,), total, None
    # The values are finite, so a sum that is not has left its type.
    overflow = not_finite(total)
    return (part,), F.when(~overflow, total), overflow


def _build_total_of_longs(i: Input) -> _Total:
    """A sum kept as two sums of halves, because a sum of 64-bit integers can overflow."""
    upper_half = F.shiftright(i.value, _HALF)
    lower_half = i.value.bitwiseAND(F.lit((1 << _HALF) - 1))
    parts = (
        Part(f"{i.name}__high", F.sum(upper_half), F.sum, invertible=True, join=add),
        Part(f"{i.name}__low", F.sum(lower_half), F.sum, invertible=True, join=add),
    )
    whole, fits = _add_halves(i)
    value = F.when(fits, whole)
    return parts, value, value.isNull()


def _build_total_of_decimals(i: Input, kind: T.DecimalType) -> _Total:
    if is_wide(kind):
        wide_sum = WideSum(i.name, kind.scale)
        value = wide_sum.value()
        return wide_sum.parts(i.value), value, value.isNull()
    total = f"{i.name}__sum"
    lost = f"{i.name}__lost"
    widened = i.value.cast(T.DecimalType(38, kind.scale))
    lost_by_events = _count_if_lost(widened, lambda aggregate: aggregate)
    # Sums that fit may leave the type together, so a merge counts its own loss, too.
    lost_by_merging = partial(_count_if_lost, total)
    parts = (
        Part(total, F.try_sum(widened), F.try_sum),
        Part(lost, lost_by_events, F.sum, beside=lost_by_merging),
    )
    value = F.when(F.col(lost) == 0, F.col(total))
    return parts, value, value.isNull()


def _count_if_lost(value: str | Column, each: Step) -> Column:
    """1 where the sum of decimals has left its type, else 0.

    `each` is applied to each aggregate function, to add the window that it is computed over.
    """
    has_values = each(F.count(value)) > 0
    has_no_sum = each(F.try_sum(value)).isNull()
    return (has_values & has_no_sum).cast("bigint")


def _add_halves(i: Input) -> tuple[Column, Column]:
    """The sum of 64-bit integers from its two halves, and whether it is a 64-bit integer itself.

    Decimals would do both, but every window would make several of them.
    """
    low = F.col(f"{i.name}__low")
    upper = F.col(f"{i.name}__high") + F.shiftright(low, _HALF)
    lower = low.bitwiseAND(F.lit((1 << _HALF) - 1))
    whole = F.shiftleft(upper, _HALF).bitwiseOR(lower)
    return whole, upper.between(-(1 << _HALF - 1), (1 << _HALF - 1) - 1)


def _exact_sum(i: Input) -> Column:
    """The whole sum of 64-bit integers, kept as two halves that can't overflow themselves."""
    high = F.col(f"{i.name}__high").cast("decimal(38,0)")
    low = F.col(f"{i.name}__low").cast("decimal(38,0)")
    return high * F.lit(1 << _HALF).cast("decimal(11,0)") + low


def _choose_dividend(i: Input) -> Column:
    """The sum in the type in which a mean divides it."""
    if isinstance(i.type, T.LongType):
        whole, fits = _add_halves(i)
        return F.when(fits, whole.cast("double")).otherwise(_exact_sum(i).cast("double"))
    _, total, _ = _build_total(i)
    if isinstance(i.type, T.DecimalType):
        return total
    return total.cast("double")


def _moments_part(i: Input) -> Part:
    """(n, mean, m2): m2 is the sum of squared distances from the mean, as doubles."""
    value = i.value.cast("double")
    n = F.count(value)
    m2 = F.var_pop(value) * n
    lifted = F.struct(n.alias("n"), F.avg(value).alias("mean"), m2.alias("m2"))
    return Part(f"{i.name}__moments", lifted, _collect_moments, fold=_fold_moments)


def _collect_moments(moments: Column) -> Column:
    return F.collect_list(F.when(moments["n"] > 0, moments))


def _fold_moments(moments: Column) -> Column:
    n = F.lit(0).cast("bigint")
    none = F.struct(n.alias("n"), F.lit(0.0).alias("mean"), F.lit(0.0).alias("m2"))
    return F.aggregate(moments, none, _join_moments)


def _join_moments(a: Column, b: Column) -> Column:
    """Moments of two sets together, without a difference of large squares.

    The formula is that of Chan, Golub and LeVeque (1979).
    """
    n = a["n"] + b["n"]
    apart = b["mean"] - a["mean"]
    share = b["n"].cast("double") / n
    mean = a["mean"] + apart * share
    m2 = a["m2"] + b["m2"] + apart * (apart * (a["n"] * share))
    return F.struct(n.alias("n"), mean.alias("mean"), m2.alias("m2"))
