"""Aggregates as an algebra: lift (events -> partial), merge (partials -> partial), lower (partial -> value), all Spark expressions.

An aggregate is one entry of `AGGREGATES`: a function from its input column to the parts it keeps and how they become a value. Parts are
named after the column they come from, so two aggregates of one column share them. `merge` is associative and commutative.

    sum of {3, null, 4}:  lift -> (sum 7, n 2)   merge with (sum 1, n 1) -> (sum 8, n 3)   lower -> 8   (lower of n 0 -> null)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import ROWS
from windowing.spec.pipeline import Aggregate

Merge = Callable[[Column], Column]
_HALF = 32
INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
FRACTIONS = (T.FloatType, T.DoubleType)


@dataclass(frozen=True)
class Part:
    """One stored column of a partial; `invertible` parts may be taken back by subtraction without loss."""

    name: str
    lift: Column
    merge: Merge
    invertible: bool = False


@dataclass(frozen=True)
class Input:
    """What an aggregate is fed: a clean column (bad values already null), its type and the event order."""

    name: str
    value: Column
    type: T.DataType
    order: tuple[Column, ...]
    argument: float | None = None


@dataclass(frozen=True)
class Algebra:
    """The parts an aggregate keeps and the value they stand for; `overflow` is true where a sum left its type."""

    parts: tuple[Part, ...]
    lower: Column
    overflow: Column | None = None


def rows_part() -> Part:
    """The number of events: kept by every pane, fragment and window."""
    return Part(ROWS, F.count(F.lit(1)), F.sum, invertible=True)


def algebra(aggregate: Aggregate, inputs: Input | None) -> Algebra:
    """The algebra of one output column; `inputs` is None only for count()."""
    if inputs is None:
        return Algebra((rows_part(),), F.coalesce(F.col(ROWS), F.lit(0)))
    return AGGREGATES[aggregate.function](inputs)


def _count_part(i: Input) -> Part:
    return Part(f"{i.name}__n", F.count(i.value), F.sum, invertible=True)


def _sum(i: Input) -> Algebra:
    parts, total, overflow = _total(i)
    value = F.when(F.col(f"{i.name}__n") > 0, total)
    return Algebra((*parts, _count_part(i)), value, None if overflow is None else (F.col(f"{i.name}__n") > 0) & overflow)


def _avg(i: Input) -> Algebra:
    parts, _, _ = _total(i)
    n = F.col(f"{i.name}__n")
    return Algebra((*parts, _count_part(i)), F.when(n > 0, _wide(i) / n))


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
        return (Part(f"{i.name}__sum", F.sum(i.value), F.sum, invertible=True),), F.col(f"{i.name}__sum"), None
    if isinstance(i.type, T.DecimalType):
        total, lost = f"{i.name}__sum", f"{i.name}__lost"
        wide = i.value.cast(T.DecimalType(38, i.type.scale))
        summed = F.try_sum(wide)
        parts = (Part(total, summed, F.try_sum), Part(lost, (F.count(wide) > 0).__and__(summed.isNull()).cast("bigint"), F.sum))
        value = F.when(F.col(lost) == 0, F.col(total))
        return parts, value, value.isNull()
    return (Part(f"{i.name}__sum", F.sum(i.value), F.sum),), F.col(f"{i.name}__sum"), None


def _exact(i: Input) -> Column:
    """The whole sum of 64-bit integers, kept as two halves that can't overflow themselves."""
    high, low = F.col(f"{i.name}__high"), F.col(f"{i.name}__low")
    return high.cast("decimal(38,0)") * F.lit(1 << _HALF).cast("decimal(11,0)") + low.cast("decimal(38,0)")


def _wide(i: Input) -> Column:
    if isinstance(i.type, T.LongType):
        return F.col(f"{i.name}__high").cast("double") * F.lit(float(1 << _HALF)) + F.col(f"{i.name}__low").cast("double")
    if isinstance(i.type, T.DecimalType):
        return F.when(F.col(f"{i.name}__lost") == 0, F.col(f"{i.name}__sum"))
    return F.col(f"{i.name}__sum").cast("double")


def _min(i: Input) -> Algebra:
    return Algebra((Part(f"{i.name}__min", F.min(i.value), F.min),), F.col(f"{i.name}__min"))


def _max(i: Input) -> Algebra:
    return Algebra((Part(f"{i.name}__max", F.max(i.value), F.max),), F.col(f"{i.name}__max"))


def _first(i: Input) -> Algebra:
    name = f"{i.name}__first"
    return Algebra((Part(name, F.min(_placed(i)), F.min),), F.col(name)["value"])


def _last(i: Input) -> Algebra:
    name = f"{i.name}__last"
    return Algebra((Part(name, F.max(_placed(i)), F.max),), F.col(name)["value"])


def _placed(i: Input) -> Column:
    """The value with its place in event order in front, or null where the value is null."""
    place = [column.alias(f"at{n}") for n, column in enumerate(i.order)]
    return F.when(i.value.isNotNull(), F.struct(*place, i.value.alias("value")))


def _count_distinct(i: Input) -> Algebra:
    """A theta sketch: merged sketches keep the smallest hashes, so the estimate does not depend on merge order."""
    name = f"{i.name}__theta"
    hashed = i.value if isinstance(i.type, (T.StringType, T.IntegerType, T.LongType, T.DoubleType)) else i.value.cast("string")
    part = Part(name, F.theta_sketch_agg(hashed), F.theta_union_agg)
    return Algebra((part,), F.coalesce(F.theta_sketch_estimate(F.col(name)), F.lit(0)).cast("bigint"))


def _quantile(i: Input) -> Algebra:
    """A KLL sketch, k = 200: the smallest value whose rank is at least the argument, within 1.65 % of rank."""
    whole = isinstance(i.type, INTEGERS)
    kind, name = ("bigint", f"{i.name}__kll") if whole else ("double", f"{i.name}__kll")
    sketch = F.call_function(f"kll_sketch_agg_{kind}", i.value.cast(kind))
    sized = F.call_function(f"kll_sketch_get_n_{kind}", F.col(name)) > 0
    value = F.call_function(f"kll_sketch_get_quantile_{kind}", F.col(name), F.lit(i.argument))
    return Algebra((Part(name, sketch, lambda c: F.call_function(f"kll_merge_agg_{kind}", c)),), F.when(sized, value))


AGGREGATES: Mapping[str, Callable[[Input], Algebra]] = {
    "sum": _sum,
    "avg": _avg,
    "min": _min,
    "max": _max,
    "first": _first,
    "last": _last,
    "count_distinct": _count_distinct,
    "quantile": _quantile,
}
