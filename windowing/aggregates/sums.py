"""Aggregates that add up: counts, sums, means and variances of numbers.

Integers are added exactly, decimals in 38 digits, fractions as doubles.
"""

from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import INTEGERS, Algebra, Input, Part, Step, count_part, rows_part
from windowing.aggregates.decimals import WideSum, is_wide
from windowing.columns import ROWS

_HALF = 32


def count(i: Input) -> Algebra:
    """How many events there are."""
    part = rows_part() if i.name == ROWS else count_part(i)
    return Algebra((part,), F.coalesce(F.col(part.name), F.lit(0)))


def count_if(i: Input) -> Algebra:
    """How many values are true; null is not."""
    part = Part(f"{i.name}__true", F.count_if(i.value), F.sum, invertible=True)
    return Algebra((part,), F.coalesce(F.col(part.name), F.lit(0)))


def sum_of(i: Input) -> Algebra:
    """The sum; null where there is no value or the result type can't hold it."""
    parts, total, overflow = _total(i)
    some = F.col(f"{i.name}__n") > 0
    return Algebra(
        (*parts, count_part(i)), F.when(some, total), None if overflow is None else some & overflow
    )


def avg(i: Input) -> Algebra:
    """The mean; null where there is no value or decimals leave their type."""
    parts, _, _ = _total(i)
    n = F.col(f"{i.name}__n")
    mean = F.when(n > 0, F.try_divide(_wide(i), n))
    return Algebra(
        (*parts, count_part(i)),
        mean,
        (n > 0) & mean.isNull() if isinstance(i.type, T.DecimalType) else None,
    )


def variance(i: Input) -> Algebra:
    """The sample variance; null below two values."""
    part = _moments(i)
    moments = F.col(part.name)
    return Algebra((part,), F.when(moments["n"] > 1, moments["m2"] / (moments["n"] - 1)))


def stddev(i: Input) -> Algebra:
    """The square root of the sample variance."""
    squared = variance(i)
    return Algebra(squared.parts, F.sqrt(squared.lower))


def _total(i: Input) -> tuple[tuple[Part, ...], Column, Column | None]:
    """Parts of a sum, its value in the result type, and where that overflowed."""
    if isinstance(i.type, T.LongType):
        high, low = f"{i.name}__high", f"{i.name}__low"
        parts = (
            Part(high, F.sum(F.shiftright(i.value, _HALF)), F.sum, invertible=True),
            Part(low, F.sum(i.value.bitwiseAND(F.lit((1 << _HALF) - 1))), F.sum, invertible=True),
        )
        value = _exact(i).try_cast("bigint")
        return parts, value, value.isNull()
    if isinstance(i.type, INTEGERS):
        return (
            (Part(f"{i.name}__sum", F.sum(i.value), F.sum, invertible=True),),
            F.col(f"{i.name}__sum"),
            None,
        )
    if isinstance(i.type, T.DecimalType) and is_wide(i.type):
        wide_sum = WideSum(i.name, i.type.scale)
        value = wide_sum.value()
        return wide_sum.parts(i.value), value, value.isNull()
    if isinstance(i.type, T.DecimalType):
        total, lost = f"{i.name}__sum", f"{i.name}__lost"
        wide = i.value.cast(T.DecimalType(38, i.type.scale))
        summed = F.try_sum(wide)
        parts = (
            Part(total, summed, F.try_sum),
            Part(lost, _left(wide, lambda one: one), F.sum, beside=partial(_left, total)),
        )
        value = F.when(F.col(lost) == 0, F.col(total))
        return parts, value, value.isNull()
    return (Part(f"{i.name}__sum", F.sum(i.value), F.sum),), F.col(f"{i.name}__sum"), None


def _left(value: str | Column, each: Step) -> Column:
    """1 where the sum of decimals has left its type, else 0; `each` says over what the aggregate functions are."""
    return (each(F.count(value)) > 0).__and__(each(F.try_sum(value)).isNull()).cast("bigint")


def _exact(i: Input) -> Column:
    """The whole sum of 64-bit integers, kept as two halves that can't overflow themselves."""
    high, low = F.col(f"{i.name}__high"), F.col(f"{i.name}__low")
    return high.cast("decimal(38,0)") * F.lit(1 << _HALF).cast("decimal(11,0)") + low.cast(
        "decimal(38,0)"
    )


def _wide(i: Input) -> Column:
    if isinstance(i.type, T.LongType):
        return _exact(i).cast("double")
    if isinstance(i.type, T.DecimalType):
        return _total(i)[1]
    return F.col(f"{i.name}__sum").cast("double")


def _moments(i: Input) -> Part:
    """(n, mean, m2): m2 is the sum of squared distances from the mean, as doubles."""
    value = i.value.cast("double")
    n = F.count(value)
    lifted = F.struct(n.alias("n"), F.avg(value).alias("mean"), (F.var_pop(value) * n).alias("m2"))
    return Part(
        f"{i.name}__moments", lifted, lambda c: F.collect_list(F.when(c["n"] > 0, c)), fold=_folded
    )


def _folded(moments: Column) -> Column:
    none = F.struct(
        F.lit(0).cast("bigint").alias("n"), F.lit(0.0).alias("mean"), F.lit(0.0).alias("m2")
    )
    return F.aggregate(moments, none, _joined)


def _joined(a: Column, b: Column) -> Column:
    """Moments of two sets together (Chan, Golub and LeVeque 1979): no difference of large squares is taken."""
    n, apart = a["n"] + b["n"], b["mean"] - a["mean"]
    share = b["n"].cast("double") / n
    mean = a["mean"] + apart * share
    m2 = a["m2"] + b["m2"] + apart * (apart * (a["n"] * share))
    return F.struct(n.alias("n"), mean.alias("mean"), m2.alias("m2"))
