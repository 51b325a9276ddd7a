"""Rows as they arrived -> rows with an event time, or with the reason to quarantine them."""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import TIME, UNANSWERED, WHY
from windowing.expressions.compile import compile_condition, compile_value
from windowing.expressions.nested import have_values
from windowing.grid.frame import choose_last
from windowing.grid.rule import Span, local_spans
from windowing.grid.zone import FIRST_US, LAST_US
from windowing.panes.frame import bad_value
from windowing.rows import column_named, not_finite
from windowing.source.rule import CHANGE, FEED
from windowing.spec.description import describe_window
from windowing.spec.duration import Duration
from windowing.spec.expressions.parse import Path, inputs_of, may_lose
from windowing.spec.kinds import Expression
from windowing.spec.pipeline import Pipeline

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""How long the units of numeric event times are, in microseconds."""
_DATED = r"^[\p{Cntrl} ]*[+-]?\d{4}"
"""How a text that names a day begins; Spark would read a time of day alone as one of today."""
_ZONED = r":[\s\S]*[A-Za-z+-]"
"""A text that ends with `Z`, an offset or the name of a zone.

Spark reads one only after seconds. The rest of a local time has no letter or sign after a colon.
"""
NAIVE = "__naive"
"""Local wall-clock time of a naive timestamp or text, microseconds.

It is null where the row names an instant itself.
"""


def shape_rows(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Adds the computed columns and leaves out rows that are no events. rows -> rows + columns."""
    wider = add_computed_columns(rows, pipeline)
    is_event = _is_event(wider, pipeline)
    return wider if is_event is None else wider.where(is_event)


def add_computed_columns(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Adds the computed columns. rows -> rows + columns."""
    schema = rows.schema
    computed = {}
    for name, expression in pipeline.source.computed.items():
        field = pipeline.source.field_of(name)
        computed[name] = compile_value(expression, schema, field).column
    return rows.withColumns(computed) if computed else rows


def mark_unanswered(wider: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Leaves out the rows that are no events, except where `source.where` lost its answer.

    It is NULL there although every stored column that it is computed from has a value. Such rows
    are marked, because they are counted before they are left out.
    rows + columns -> events and marked rows + [__unanswered].
    """
    is_event = _is_event(wider, pipeline)
    if is_event is None:
        return wider.withColumn(UNANSWERED, F.lit(False))
    if not may_leave_unanswered(pipeline):
        return wider.where(is_event).withColumn(UNANSWERED, F.lit(False))
    stored = _stored_inputs(_expressions_of_where(pipeline), pipeline)
    marked = wider.withColumn(UNANSWERED, is_event.isNull() & have_values(stored))
    return marked.where(F.coalesce(is_event, F.col(UNANSWERED)))


def may_leave_unanswered(pipeline: Pipeline) -> bool:
    """Whether `source.where` can lose its answer although all its columns have values."""
    return any(may_lose(expression) for expression in _expressions_of_where(pipeline))


def find_lost_values(pipeline: Pipeline) -> dict[str, Column]:
    """By computed column where it is NULL although every input of its expression has a value.

    Inputs are columns and parts of columns. What a part is read by can't be lost, so that `parts`
    of the source are not among them.

    The conditions are for rows that have the computed columns.
    """
    lost = {}
    for name, expression in pipeline.source.columns:
        if may_lose(expression):
            inputs = inputs_of(expression)
            lost[name] = column_named(name).isNull() & have_values(inputs)
    return lost


def _is_event(wider: DataFrame, pipeline: Pipeline) -> Column | None:
    """The condition that makes a row an event; None where every row is one."""
    where = pipeline.source.where
    return None if where is None else compile_condition(where, wider.schema, "source.where")


def _expressions_of_where(pipeline: Pipeline) -> list[Expression]:
    """`source.where` and the computed columns that it names."""
    where = pipeline.source.where
    if where is None:
        return []
    expressions = [where]
    for name, expression in pipeline.source.computed.items():
        if name in where.columns:
            expressions.append(expression)
    return expressions


def _stored_inputs(expressions: Iterable[Expression], pipeline: Pipeline) -> list[Path]:
    """The columns that the expressions read and that are not computed, or parts, each once."""
    computed = pipeline.source.computed
    stored: dict[Path, None] = {}
    for expression in expressions:
        for path in inputs_of(expression):
            if path[0] not in computed:
                stored[path] = None
    return list(stored)


def time_by_arrival(rows: DataFrame, arrival_us: int) -> DataFrame:
    """Every row happens when it arrives. rows -> rows + [__t, __naive]."""
    arrival = F.lit(arrival_us).cast("bigint")
    return rows.withColumns({TIME: arrival, NAIVE: F.lit(None).cast("bigint")})


def read_event_time(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Adds the event time `__t` where the row names an instant, else the local time `__naive`.

    rows -> rows + [__t, __naive].
    """
    event_time = pipeline.source.event_time
    name = event_time.column or ""
    kind = rows.schema[name].dataType
    value = column_named(name)
    time = F.lit(None).cast("bigint")
    naive = F.lit(None).cast("bigint")
    if event_time.unit:
        time = _scale_number(value, kind, UNITS[event_time.unit])
    elif isinstance(kind, T.TimestampType):
        time = F.unix_micros(value)
    elif isinstance(kind, T.StringType):
        parsed = F.when(value.rlike(_DATED), F.unix_micros(value.try_cast("timestamp_ltz")))
        is_zoned = value.rlike(_ZONED)
        time = F.when(is_zoned, parsed)
        naive = F.when(~is_zoned, parsed)
    else:
        # The session's zone is UTC, so a naive timestamp keeps the digits of its clock.
        naive = F.unix_micros(value.cast("timestamp_ltz"))
    return rows.withColumn(TIME, time).withColumn(NAIVE, naive)


def place_local_times(rows: DataFrame, zone: str | None, low_us: int, high_us: int) -> DataFrame:
    """Turns local times from `low_us` to `high_us` into instants.

    In a fold it is the earlier instant, in a gap none. Later local times are taken as UTC.
    rows[..., __t, __naive] -> the same columns.
    """
    naive = F.col(NAIVE)
    spans = local_spans(zone, low_us, high_us)
    on_clock = choose_last(
        spans, naive, lambda span: span.low_us, lambda span: _instant_in(span, naive)
    )
    instant = F.when(naive > F.lit(high_us), naive).otherwise(on_clock)
    return rows.withColumn(TIME, F.coalesce(F.col(TIME), instant))


def check_rows(
    rows: DataFrame, pipeline: Pipeline, schema: T.StructType, arrival_us: int
) -> DataFrame:
    """Adds `__why`: the reason to quarantine a row, or null.

    rows[..., __t, __naive] -> rows[..., __t, __why].
    """
    reasons = [
        *_time_reasons(pipeline, arrival_us),
        *_key_reasons(pipeline),
        *_attribute_reasons(pipeline, schema),
        *_value_reasons(pipeline, schema),
    ]
    # The first reason counts, in the order of the list.
    first_reason = F.coalesce(*reasons, F.lit(None).cast("string"))
    return rows.withColumn(WHY, first_reason).drop(NAIVE)


def _scale_number(value: Column, kind: T.DataType, unit_us: int) -> Column:
    """Numbers since 1970 as whole microseconds, rounded down; null beyond 64 bits."""
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        scaled = F.floor(value * F.lit(float(unit_us))).try_cast("bigint")
        return F.when(~F.isnan(value), scaled)
    return F.floor(value.try_cast("decimal(38,12)") * F.lit(unit_us)).try_cast("bigint")


def _instant_in(span: Span, local: Column) -> Column:
    """The instant of a local time of a span; null in a gap of the clock."""
    if not span.on_clock:
        return F.lit(None).cast("bigint")
    return local - F.lit(span.low_us - span.at_us)


def _time_reasons(pipeline: Pipeline, arrival_us: int) -> list[Column]:
    name = pipeline.source.event_time.column
    if name is None:
        return []
    time = F.col(TIME)
    max_future = Duration(pipeline.watermark.max_future_us)
    in_gap = F.col(NAIVE).isNotNull() & time.isNull()
    off_calendar = time.isNull() | ~time.between(FIRST_US, LAST_US)
    too_far_ahead = time > F.lit(arrival_us + max_future.us)
    return [
        _null_reason(name),
        F.when(in_gap, f"{name} does not exist on the clock of {pipeline.source.zone}"),
        F.when(off_calendar, f"{name} can't be read as a time"),
        F.when(too_far_ahead, f"{name} is more than {max_future} ahead of the arrival"),
    ]


def _key_reasons(pipeline: Pipeline) -> list[Column]:
    return [_null_reason(name) for name in pipeline.source.key]


def _null_reason(name: str) -> Column:
    return F.when(column_named(name).isNull(), f"{name} is null")


def _attribute_reasons(pipeline: Pipeline, schema: T.StructType) -> list[Column]:
    """An event without the attribute of a window can be in none of its windows."""
    attributes = [describe_window(window).attribute for window in pipeline.windows]
    names = dict.fromkeys(column.name for column in attributes if column is not None)
    missing = [F.when(column_named(name).isNull(), f"{name} is null") for name in names]
    unfit = [
        F.when(not_finite(column_named(name)), f"{name} is not a finite number")
        for name in names
        if _is_fraction(schema, name)
    ]
    return [*missing, *unfit]


def _is_fraction(schema: T.StructType, name: str) -> bool:
    return isinstance(schema[name].dataType, (T.FloatType, T.DoubleType))


def _value_reasons(pipeline: Pipeline, schema: T.StructType) -> list[Column]:
    if pipeline.source.on_bad_value == "null":
        return []
    bad: dict[str, Column] = {}
    for aggregate in pipeline.aggregates:
        bad.update(bad_value(aggregate, schema))
    return [F.when(is_bad, f"{name} is not a finite number") for name, is_bad in bad.items()]


def keep_inserts(rows: DataFrame) -> DataFrame:
    """The rows that are new; all of them where the source is read without its change feed."""
    if CHANGE not in rows.columns:
        return rows
    return rows.where(F.col(CHANGE) == "insert").drop(*FEED)
