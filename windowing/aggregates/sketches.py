"""Aggregates within a stated error: sketches of bounded size (docs/aggregates.md says how far off they are)."""

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import FRACTIONS, INTEGERS, Algebra, Input, Part

TRACKED = 1_024
"""How many values a top_k sketch tells apart before counts become estimates."""


def count_distinct(i: Input) -> Algebra:
    """A theta sketch: merged sketches keep the smallest hashes, so the estimate does not depend on merge order."""
    part = Part(f"{i.name}__theta", F.theta_sketch_agg(_hashable(i)), F.theta_union_agg)
    return Algebra(
        (part,), F.coalesce(F.theta_sketch_estimate(F.col(part.name)), F.lit(0)).cast("bigint")
    )


def quantile(i: Input) -> Algebra:
    """A KLL sketch, k = 200: the smallest value whose rank is at least the argument, nearly."""
    kind, name = "bigint" if isinstance(i.type, INTEGERS) else "double", f"{i.name}__kll"
    sketch = F.call_function(f"kll_sketch_agg_{kind}", i.value.cast(kind))
    some = F.call_function(f"kll_sketch_get_n_{kind}", F.col(name)) > 0
    value = F.call_function(f"kll_sketch_get_quantile_{kind}", F.col(name), F.lit(i.argument))
    return Algebra(
        (Part(name, sketch, lambda c: F.call_function(f"kll_merge_agg_{kind}", c)),),
        F.when(some, value),
    )


def top_k(i: Input) -> Algebra:
    """A frequent-items sketch: [{value, count}] of the most frequent values, by count, then value; one sketch serves every k."""
    name = f"{i.name}__items"
    # -0.0 + 0.0 is 0.0: equal values are one value.
    told = i.value + F.lit(0).cast(i.type) if isinstance(i.type, FRACTIONS) else i.value
    sketch = F.call_function("approx_top_k_accumulate", told, F.lit(TRACKED))
    part = Part(name, sketch, lambda c: F.call_function("approx_top_k_combine", c, F.lit(TRACKED)))
    return Algebra(
        (part,), F.when(F.col(name).isNotNull(), _most_frequent(name, int(i.argument or 0), i.type))
    )


def _hashable(i: Input) -> Column:
    if isinstance(i.type, INTEGERS):
        return i.value.cast("bigint")
    if isinstance(i.type, FRACTIONS):
        return i.value.cast("double")
    # A theta sketch leaves out empty text.
    return F.concat(F.lit("="), i.value.cast("string"))


def _most_frequent(name: str, k: int, kind: T.DataType) -> Column:
    # Spark counts null as a value, and gives values of one count in no order.
    items = F.filter(
        F.call_function("approx_top_k_estimate", F.col(name), F.lit(TRACKED)),
        lambda x: x["item"].isNotNull(),
    )
    ranked = F.array_sort(
        F.transform(
            items, lambda x: F.struct((-x["count"]).alias("less"), x["item"].alias("value"))
        )
    )
    shown = F.transform(
        F.slice(ranked, 1, k),
        lambda x: F.struct(x["value"].alias("value"), (-x["less"]).alias("count")),
    )
    return shown.cast(
        T.ArrayType(
            T.StructType([T.StructField("value", kind), T.StructField("count", T.LongType())])
        )
    )
