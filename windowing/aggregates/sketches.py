"""Aggregates within a stated error: sketches of bounded size.

docs/aggregates.md says how far off they are.
"""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import FRACTIONS, INTEGERS, Algebra, Input, Near, Part

EXACT = 4_096
"""Up to so many values a quantile is exact. A sketch of that size contains each of them."""
FEW = 200
"""Up to so many values a pane is kept as a sketch of that size: a merge allocates what fits in."""
EMPTY = bytes.fromhex("02010f01c8000800")
"""A KLL sketch of `FEW` places without a value, in the stored form of DataSketches."""
STAYS = 0.003
"""How far in rank a quantile of more values may be from one computed again from the same events.

It is seven standard errors of the difference of two such sketches.
"""
TRACKED = 1_024
"""How many values a top_k sketch tells apart before counts become estimates."""


def count_distinct(i: Input) -> Algebra:
    """A theta sketch: the estimated number of distinct values.

    Merged sketches keep the smallest hashes, so the estimate does not depend on merge order.
    """
    name = f"{i.name}__theta"
    lifted = F.theta_sketch_agg(_hashable_value(i))
    part = Part(name, lifted, F.theta_union_agg, join=F.theta_union)
    estimate = F.theta_sketch_estimate(F.col(name))
    return Algebra((part,), F.coalesce(estimate, F.lit(0)).cast("bigint"))


def quantile(i: Input) -> Algebra:
    """A KLL sketch: the least value whose rank is at least the argument.

    A sketch of at most `EXACT` values contains all of them, in whatever order it was merged. One of
    more draws random numbers. Sketches of 200 values, which earlier releases have stored, are
    merged like all others.
    """
    name = f"{i.name}__kll"
    kind = "bigint" if isinstance(i.type, INTEGERS) else "double"

    def merge_sketches(sketches: Column) -> Column:
        return F.call_function(f"kll_merge_agg_{kind}", sketches, F.lit(EXACT))

    def value_at(rank: float) -> Column:
        return F.call_function(f"kll_sketch_get_quantile_{kind}", F.col(name), F.lit(rank))

    lifted = F.call_function(f"kll_sketch_agg_{kind}", i.value.cast(kind), F.lit(EXACT))
    has_few = F.call_function(f"kll_sketch_get_n_{kind}", lifted) <= FEW
    small = F.call_function(f"kll_sketch_merge_{kind}", F.lit(EMPTY), lifted)
    part = Part(name, F.when(has_few, small).otherwise(lifted), merge_sketches)
    count = F.call_function(f"kll_sketch_get_n_{kind}", F.col(name))
    rank = i.argument or 0.0
    return Algebra((part,), F.when(count > 0, value_at(rank)), near=_near(rank, count, value_at))


def _near(rank: float, count: Column, value_at: Callable[[float], Column]) -> Near | None:
    """The values that are as good as the one at `rank`; the ends of a sketch are always exact."""
    if rank in (0, 1):
        return None
    is_drawn = count > EXACT
    low = F.when(is_drawn, value_at(max(0.0, rank - STAYS)))
    high = F.when(is_drawn, value_at(min(1.0, rank + STAYS)))
    return Near(low, high)


def top_k(i: Input) -> Algebra:
    """A frequent-items sketch: [{value, count}] of the most frequent values.

    They are in the order of counts, then of values. One sketch serves every k.
    """
    name = f"{i.name}__items"
    value = i.value
    if isinstance(i.type, FRACTIONS):
        # -0.0 + 0.0 is 0.0: equal values are one value.
        value = value + F.lit(0).cast(i.type)
    sketch = F.call_function("approx_top_k_accumulate", value, F.lit(TRACKED))
    part = Part(name, sketch, _combine_items)
    items = _most_frequent(name, int(i.argument or 0), i.type)
    return Algebra((part,), F.when(F.col(name).isNotNull(), items))


def _combine_items(sketches: Column) -> Column:
    return F.call_function("approx_top_k_combine", sketches, F.lit(TRACKED))


def _hashable_value(i: Input) -> Column:
    if isinstance(i.type, INTEGERS):
        return i.value.cast("bigint")
    if isinstance(i.type, FRACTIONS):
        return i.value.cast("double")
    # A theta sketch leaves out empty text.
    return F.concat(F.lit("="), i.value.cast("string"))


def _most_frequent(name: str, k: int, kind: T.DataType) -> Column:
    # Spark counts null as a value, and gives values of one count in no order.
    estimated = F.call_function("approx_top_k_estimate", F.col(name), F.lit(TRACKED))
    items = F.filter(estimated, lambda x: x["item"].isNotNull())
    ranked = F.array_sort(F.transform(items, _rank_item))
    shown = F.transform(F.slice(ranked, 1, k), _show_item)
    fields = [T.StructField("value", kind), T.StructField("count", T.LongType())]
    return shown.cast(T.ArrayType(T.StructType(fields)))


def _rank_item(x: Column) -> Column:
    """Structs are sorted in ascending order, so the count is negated."""
    return F.struct((-x["count"]).alias("less"), x["item"].alias("value"))


def _show_item(x: Column) -> Column:
    return F.struct(x["value"].alias("value"), (-x["less"]).alias("count"))
