"""Events to partials: accepted[key, t, inputs] -> panes[key, pane_start, rows, parts] and -> fragments[key, first, last, rows, parts]."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import FIRST, LAST, PANE
from windowing.columns import T as TIME
from windowing.grid.frame import start
from windowing.panes.algebra import Algebra, Input, Part, algebra, rows_part
from windowing.panes.rule import Family
from windowing.spec.pipeline import Aggregate, Pipeline, Source


@dataclass(frozen=True)
class Range:
    """Event times from `low_us` to `high_us`, both inside."""

    low_us: int
    high_us: int


def algebras(pipeline: Pipeline, aggregates: Iterable[Aggregate], schema: T.StructType) -> dict[str, Algebra]:
    """The algebra of each aggregate, by name, for a source of this schema."""
    return {a.name: algebra(a, None if a.column is None else _input(pipeline.source, a, schema)) for a in aggregates}


def parts(algebras_of: Iterable[Algebra]) -> list[Part]:
    """Every part some algebra keeps, each once; the number of rows comes first."""
    found = {p.name: p for a in algebras_of for p in a.parts}
    return [rows_part(), *(p for name, p in sorted(found.items()) if name != rows_part().name)]


def panes(accepted: DataFrame, keys: Sequence[str], family: Family, kept: Sequence[Part], within: Range) -> DataFrame:
    """One row for each (key, pane) that got an event. accepted[keys, t, inputs] -> [keys, pane_start, rows, parts]."""
    starts = [start(g, F.col(TIME), within.low_us, within.high_us) for g in family.cuts]
    begun = starts[0] if len(starts) == 1 else F.greatest(*starts)
    return accepted.groupBy(*keys, F.timestamp_micros(begun).alias(PANE)).agg(*(p.lift.alias(p.name) for p in kept))


def fragments(accepted: DataFrame, keys: Sequence[str], gap_us: int, kept: Sequence[Part]) -> DataFrame:
    """One row for each maximal chain of a key's events at most `gap_us` apart.

    accepted[keys, t, inputs] -> [keys, first_event, last_event, rows, parts]; both ends are events.
    """
    ordered = Window.partitionBy(*keys).orderBy(TIME)
    begins = F.col(TIME) - F.lag(TIME).over(ordered) > F.lit(gap_us)
    chained = accepted.withColumn("__begins", F.coalesce(begins, F.lit(True)).cast("int"))
    numbered = chained.withColumn("__chain", F.sum("__begins").over(ordered.rowsBetween(Window.unboundedPreceding, 0)))
    bounds = (F.timestamp_micros(F.min(TIME)).alias(FIRST), F.timestamp_micros(F.max(TIME)).alias(LAST))
    return numbered.groupBy(*keys, "__chain").agg(*bounds, *(p.lift.alias(p.name) for p in kept)).drop("__chain")


def bad_value(source: Source, aggregate: Aggregate, schema: T.StructType) -> Column | None:
    """True where the input of `aggregate` is NaN, infinite or text that is no number; None where that can't be."""
    if aggregate.column is None or aggregate.function in ("first", "last", "count_distinct"):
        return None
    kind, value = schema[aggregate.column].dataType, F.col(f"`{aggregate.column}`")
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return _not_finite(value)
    if isinstance(kind, T.StringType) and aggregate.function in ("sum", "avg", "quantile"):
        number = value.try_cast("double")
        return value.isNotNull() & (number.isNull() | _not_finite(number))
    return None


def _not_finite(value: Column) -> Column:
    return F.coalesce(F.isnan(value) | (F.abs(value) == F.lit(float("inf"))), F.lit(False))


def _input(source: Source, aggregate: Aggregate, schema: T.StructType) -> Input:
    name = aggregate.column or ""
    kind, value = schema[name].dataType, F.col(f"`{name}`")
    text = isinstance(kind, T.StringType) and aggregate.function in ("sum", "avg", "quantile")
    bad = bad_value(source, aggregate, schema)
    clean = value if bad is None else F.when(~bad, value)
    order = [F.col(TIME), *(F.col(f"`{c}`") for c in (source.event_id, *source.order_by) if c)]
    return Input(name, clean.try_cast("double") if text else clean, T.DoubleType() if text else kind, tuple(order), aggregate.argument)

