"""Lifts events to the partial aggregates of panes and fragments.

accepted[key, t, inputs] -> panes[key, pane_start, rows, parts]
and -> fragments[key, first, last, rows, parts]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import FRACTIONS, NUMERIC, Algebra, Input, Part, rows_part
from windowing.aggregates.catalog import AGGREGATES
from windowing.columns import FIRST, LAST, PANE, ROWS, TIME
from windowing.expressions.compile import compile_condition
from windowing.grid.frame import start
from windowing.panes.rule import Family
from windowing.spec.kinds import Aggregate
from windowing.spec.pipeline import Pipeline, Source

_COMPARING = ("min", "max", "min_by", "max_by")


@dataclass(frozen=True)
class Range:
    """Event times from `low_us` to `high_us`, both inside."""

    low_us: int
    high_us: int


def algebras_of(
    pipeline: Pipeline, aggregates: Iterable[Aggregate], schema: T.StructType
) -> dict[str, Algebra]:
    """The algebra of each aggregate, by name, for a source of this schema."""
    return {a.name: _algebra(pipeline.source, a, schema) for a in aggregates}


def parts_of(algebras_of: Iterable[Algebra]) -> list[Part]:
    """Every part that some algebra keeps, each once; the number of rows comes first."""
    found = {p.name: p for a in algebras_of for p in a.parts}
    return [rows_part(), *(p for name, p in sorted(found.items()) if name != rows_part().name)]


def part_names(pipeline: Pipeline, schema: T.StructType) -> list[tuple[Aggregate, str]]:
    """Each aggregate of the pipeline with the names of its parts in state.

    An aggregate is returned once for each part. `schema` is that of the source.
    """
    made = ((a, _algebra(pipeline.source, a, schema)) for a in pipeline.aggregates)
    return [(aggregate, part.name) for aggregate, algebra in made for part in algebra.parts]


def aggregate_panes(
    accepted: DataFrame, keys: Sequence[str], family: Family, kept: Sequence[Part], within: Range
) -> DataFrame:
    """One row for each key and pane that contain an event.

    accepted[keys, t, inputs] -> [keys, pane_start, rows, parts]
    """
    starts = [start(g, F.col(TIME), within.low_us, within.high_us) for g in family.cuts]
    begun = starts[0] if len(starts) == 1 else F.greatest(*starts)
    return accepted.groupBy(*keys, F.timestamp_micros(begun).alias(PANE)).agg(
        *(p.lift.alias(p.name) for p in kept)
    )


def aggregate_fragments(
    accepted: DataFrame, keys: Sequence[str], gap_us: int, kept: Sequence[Part]
) -> DataFrame:
    """One row for each maximal chain of a key's events at most `gap_us` apart.

    accepted[keys, t, inputs] -> [keys, first_event, last_event, rows, parts]; both ends are events.
    """
    ordered = Window.partitionBy(*keys).orderBy(TIME)
    begins = F.col(TIME) - F.lag(TIME).over(ordered) > F.lit(gap_us)
    chained = accepted.withColumn("__begins", F.coalesce(begins, F.lit(True)).cast("int"))
    numbered = chained.withColumn(
        "__chain", F.sum("__begins").over(ordered.rowsBetween(Window.unboundedPreceding, 0))
    )
    bounds = (
        F.timestamp_micros(F.min(TIME)).alias(FIRST),
        F.timestamp_micros(F.max(TIME)).alias(LAST),
    )
    return (
        numbered.groupBy(*keys, "__chain")
        .agg(*bounds, *(p.lift.alias(p.name) for p in kept))
        .drop("__chain")
    )


def bad_value(aggregate: Aggregate, schema: T.StructType) -> dict[str, Column]:
    """The columns of `aggregate` that can contain a bad value, and where they do.

    Bad values are NaN, infinity, and text where a number is needed. A bad value is bad in every
    row, also where the aggregate's `where` is not true.
    """
    column = aggregate.by if aggregate.by is not None else aggregate.column
    if column is None or aggregate.function not in (*NUMERIC, *_COMPARING):
        return {}
    kind, value = schema[column].dataType, F.col(f"`{column}`")
    if isinstance(kind, FRACTIONS):
        return {column: not_finite(value)}
    if isinstance(kind, T.StringType) and aggregate.function in NUMERIC:
        number = value.try_cast("double")
        return {column: value.isNotNull() & (number.isNull() | not_finite(number))}
    return {}


def not_finite(value: Column) -> Column:
    """True for NaN and both infinities."""
    return F.coalesce(F.isnan(value) | (F.abs(value) == F.lit(float("inf"))), F.lit(False))


def _algebra(source: Source, aggregate: Aggregate, schema: T.StructType) -> Algebra:
    return AGGREGATES[aggregate.function](_input(source, aggregate, schema))


def _input(source: Source, aggregate: Aggregate, schema: T.StructType) -> Input:
    kind = T.LongType() if aggregate.column is None else schema[aggregate.column].dataType
    text = isinstance(kind, T.StringType) and aggregate.function in NUMERIC
    value = _clean(aggregate, aggregate.column, schema)
    by = None if aggregate.by is None else _clean(aggregate, aggregate.by, schema)
    order = [F.col(TIME), *(F.col(f"`{c}`") for c in (source.event_id, *source.order_by) if c)]
    known = value.try_cast("double") if text else value
    return Input(
        _stem(aggregate),
        known,
        T.DoubleType() if text else kind,
        tuple(order),
        aggregate.argument,
        by,
    )


def _clean(aggregate: Aggregate, column: str | None, schema: T.StructType) -> Column:
    """The column where its value isn't bad and `where` is true, else null; 1 for no column."""
    value, bad = (
        F.lit(1) if column is None else F.col(f"`{column}`"),
        bad_value(aggregate, schema).get(column or ""),
    )
    counted = [] if bad is None else [~bad]
    if aggregate.where is not None:
        counted.append(
            compile_condition(aggregate.where, schema, f"aggregates.{aggregate.name}.where")
        )
    return F.when(reduce(lambda x, y: x & y, counted), value) if counted else value


def _stem(aggregate: Aggregate) -> str:
    """What the names of the parts of `aggregate` begin with.

    It is the column, followed by a digest of what else the value depends on.
    """
    column, where = aggregate.column or ROWS, aggregate.where
    if aggregate.by is None and where is None:
        return column
    said = repr((aggregate.column, aggregate.by, None if where is None else where.sql))
    return f"{column}__{sha256(said.encode()).hexdigest()[:8]}"
