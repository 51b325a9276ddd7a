"""Lifts events to the partial aggregates of panes and fragments.

accepted[key, t, inputs] -> panes[key, pane_start, rows, parts]
and -> fragments[key, first, last, rows, parts]
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from hashlib import sha256
from operator import and_

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import FRACTIONS, Algebra, Input, Part, lift_parts, rows_part
from windowing.aggregates.catalog import AGGREGATES
from windowing.columns import FIRST, LAST, PANE, ROWS, TIME
from windowing.expressions.compile import compile_condition
from windowing.grid.frame import start
from windowing.grid.range import Range
from windowing.panes.rule import Family
from windowing.rows import column_named, not_finite, read_double
from windowing.spec.aggregate_description import Takes, describe_aggregate
from windowing.spec.kinds import Aggregate
from windowing.spec.pipeline import Pipeline, Source


def algebras_of(
    pipeline: Pipeline, aggregates: Iterable[Aggregate], schema: T.StructType
) -> dict[str, Algebra]:
    """The algebra of each aggregate, by name, for a source of this schema."""
    algebras = {}
    for aggregate in aggregates:
        algebras[aggregate.name] = _build_algebra(pipeline.source, aggregate, schema)
    return algebras


def parts_of(algebras: Iterable[Algebra]) -> list[Part]:
    """Every part that some algebra keeps, each once; the number of rows comes first."""
    by_name: dict[str, Part] = {}
    for algebra in algebras:
        for part in algebra.parts:
            by_name[part.name] = part
    number_of_rows = rows_part()
    by_name.pop(number_of_rows.name, None)
    others = [by_name[name] for name in sorted(by_name)]
    return [number_of_rows, *others]


def part_names(pipeline: Pipeline, schema: T.StructType) -> list[tuple[Aggregate, str]]:
    """Each aggregate of the pipeline with the names of its parts in state.

    An aggregate is returned once for each part. `schema` is that of the source.
    """
    names = []
    for aggregate in pipeline.aggregates:
        algebra = _build_algebra(pipeline.source, aggregate, schema)
        for part in algebra.parts:
            names.append((aggregate, part.name))
    return names


def aggregate_panes(
    accepted: DataFrame, keys: Sequence[str], family: Family, kept: Sequence[Part], within: Range
) -> DataFrame:
    """One row for each key and pane that contain an event.

    accepted[keys, t, inputs] -> [keys, pane_start, rows, parts]
    """
    time = F.col(TIME)
    boundaries = [start(grid, time, within) for grid in family.cuts]
    # A pane begins at the last boundary of any grid. `greatest` refuses a single column.
    last_boundary = boundaries[0] if len(boundaries) == 1 else F.greatest(*boundaries)
    pane_start = F.timestamp_micros(last_boundary).alias(PANE)
    return accepted.groupBy(*keys, pane_start).agg(*lift_parts(kept))


def aggregate_fragments(
    accepted: DataFrame, keys: Sequence[str], gap_us: int, kept: Sequence[Part]
) -> DataFrame:
    """One row for each maximal chain of a key's events at most `gap_us` apart.

    accepted[keys, t, inputs] -> [keys, first_event, last_event, rows, parts]; both ends are events.
    """
    first_event = F.timestamp_micros(F.min(TIME)).alias(FIRST)
    last_event = F.timestamp_micros(F.max(TIME)).alias(LAST)
    chains = add_event_chains(accepted, keys, gap_us).groupBy(*keys, "__chain")
    return chains.agg(first_event, last_event, *lift_parts(kept)).drop("__chain")


def add_event_chains(events: DataFrame, keys: Sequence[str], gap_us: int) -> DataFrame:
    """Adds `__chain`: the same number for a key's events of a chain, at most `gap_us` apart.

    events[keys, t, ...] -> events + [__chain].
    """
    by_time = Window.partitionBy(*keys).orderBy(TIME)
    since_last_event = F.col(TIME) - F.lag(TIME).over(by_time)
    return number_chains(events, by_time, since_last_event > F.lit(gap_us))


def number_chains(rows: DataFrame, in_order: WindowSpec, is_apart: Column) -> DataFrame:
    """Adds `__chain`: the same number for the rows of a key from one that is apart to the next.

    `is_apart` is about a row and those before it, so it is null for the first row of a key, which
    begins a chain, too.
    """
    begins_chain = F.coalesce(is_apart, F.lit(True))
    marked = rows.withColumn("__begins", begins_chain.cast("int"))
    up_to_row = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    numbered = marked.withColumn("__chain", F.sum("__begins").over(up_to_row))
    return numbered.drop("__begins")


def column_that_may_be_bad(aggregate: Aggregate, schema: T.StructType) -> str | None:
    """The column of `aggregate` that can contain a bad value; None where none can.

    Bad values are NaN, infinity, and text where a number is needed.
    """
    column = aggregate.by if aggregate.by is not None else aggregate.column
    described = describe_aggregate(aggregate.function)
    takes_numbers = described.takes is Takes.NUMBERS
    if column is None or not (takes_numbers or described.compares):
        return None
    kind = schema[column].dataType
    is_number_as_text = takes_numbers and isinstance(kind, T.StringType)
    return column if isinstance(kind, FRACTIONS) or is_number_as_text else None


def bad_value(aggregate: Aggregate, schema: T.StructType) -> dict[str, Column]:
    """The column of `aggregate` that can contain a bad value, and where it does.

    A bad value is bad in every row, also where the aggregate's `where` is not true.
    """
    column = column_that_may_be_bad(aggregate, schema)
    if column is None:
        return {}
    value = column_named(column)
    if isinstance(schema[column].dataType, FRACTIONS):
        return {column: not_finite(value)}
    number = read_double(value)
    return {column: value.isNotNull() & (number.isNull() | not_finite(number))}


def _build_algebra(source: Source, aggregate: Aggregate, schema: T.StructType) -> Algebra:
    build = AGGREGATES[aggregate.function]
    return build(_build_input(source, aggregate, schema))


def _build_input(source: Source, aggregate: Aggregate, schema: T.StructType) -> Input:
    kind = T.LongType() if aggregate.column is None else schema[aggregate.column].dataType
    value = _select_counted_value(aggregate, aggregate.column, schema)
    takes_numbers = describe_aggregate(aggregate.function).takes is Takes.NUMBERS
    if takes_numbers and isinstance(kind, T.StringType):
        kind = T.DoubleType()
        value = read_double(value)
    by = None
    if aggregate.by is not None:
        by = _select_counted_value(aggregate, aggregate.by, schema)
    name = _name_input(aggregate)
    return Input(name, value, kind, _event_order(source), aggregate.argument, by)


def _event_order(source: Source) -> tuple[Column, ...]:
    """The event time, the event id if there is one, and the columns of `order_by`."""
    order = [F.col(TIME)]
    if source.event_id:
        order.append(column_named(source.event_id))
    for name in source.order_by:
        order.append(column_named(name))
    return tuple(order)


def _select_counted_value(aggregate: Aggregate, column: str | None, schema: T.StructType) -> Column:
    """The column where its value isn't bad and `where` is true, else null; 1 for no column."""
    value = F.lit(1) if column is None else column_named(column)
    is_bad = bad_value(aggregate, schema).get(column or "")
    conditions = []
    if is_bad is not None:
        conditions.append(~is_bad)
    if aggregate.where is not None:
        field = f"aggregates.{aggregate.name}.where"
        conditions.append(compile_condition(aggregate.where, schema, field))
    if not conditions:
        return value
    return F.when(reduce(and_, conditions), value)


def _name_input(aggregate: Aggregate) -> str:
    """What the names of the parts of `aggregate` begin with.

    It is the column, followed by a digest of what else the value depends on. The names are columns
    of stored state, so what is digested never changes.
    """
    column = aggregate.column or ROWS
    where = None if aggregate.where is None else aggregate.where.sql
    if aggregate.by is None and where is None:
        return column
    inputs = repr((aggregate.column, aggregate.by, where))
    digest = sha256(inputs.encode()).hexdigest()
    return f"{column}__{digest[:8]}"
