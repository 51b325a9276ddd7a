"""Rows as they arrived -> rows with an event time, or with the reason why they can't be admitted."""

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import UNANSWERED, WHY
from windowing.columns import T as TIME
from windowing.expressions.compile import column, condition
from windowing.grid.rule import Span, local_spans
from windowing.grid.zone import FIRST_US, LAST_US
from windowing.panes.frame import bad_value, not_finite
from windowing.source.rule import CHANGE, FEED
from windowing.spec.duration import Duration
from windowing.spec.expressions.parse import may_lose
from windowing.spec.kinds import Delta, Expression
from windowing.spec.pipeline import Pipeline

_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DATED = r"^\s*[+-]?\d{4}"
"""What a text that names a day begins with; a time of day alone would be read as one of today."""
_LOCAL = r"^\s*[+-]?\d+(-\d\d?(-\d\d?([T ](\d\d?:\d\d?(:\d\d?(\.\d*)?)?)?)?)?)?\s*$"
"""A text that ends without an offset or a zone."""
NAIVE = "__naive"
"""Local wall-clock time of a naive timestamp or text, microseconds; null where the row names an instant itself."""


def shaped(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Adds the computed columns and leaves out rows that are no events. rows -> rows + columns."""
    wider = add_computed_columns(rows, pipeline)
    is_event = _is_event(wider, pipeline)
    return wider if is_event is None else wider.where(is_event)


def add_computed_columns(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Adds the computed columns. rows -> rows + columns."""
    schema = rows.schema
    computed = {
        name: column(made, schema, f"source.columns.{name}")
        for name, made in pipeline.source.columns
    }
    return rows.withColumns(computed) if computed else rows


def mark_unanswered(wider: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Leaves out the rows that are no events, but for those where `source.where` lost its answer.

    It is NULL there although every column of the table that it is made from has a value. They are
    marked, to be counted and then left out.
    rows + columns -> events and marked rows + [__unanswered].
    """
    is_event, made = _is_event(wider, pipeline), _made_for_where(pipeline)
    if is_event is None or not any(map(may_lose, made)):
        events = wider if is_event is None else wider.where(is_event)
        return events.withColumn(UNANSWERED, F.lit(False))
    computed = dict(pipeline.source.columns)
    stored = dict.fromkeys(c for each in made for c in each.columns if c not in computed)
    marked = wider.withColumn(UNANSWERED, is_event.isNull() & _have_values(stored))
    return marked.where(F.coalesce(is_event, F.col(UNANSWERED)))


def find_lost_values(pipeline: Pipeline) -> dict[str, Column]:
    """By computed column where it is NULL although every column that it names has a value.

    The conditions are for rows that have the computed columns.
    """
    return {
        name: F.col(f"`{name}`").isNull() & _have_values(made.columns)
        for name, made in pipeline.source.columns
        if may_lose(made)
    }


def _is_event(wider: DataFrame, pipeline: Pipeline) -> Column | None:
    """The condition for which a row is an event; None where all are."""
    where = pipeline.source.where
    return None if where is None else condition(where, wider.schema, "source.where")


def _made_for_where(pipeline: Pipeline) -> list[Expression]:
    """`source.where` and the computed columns that it names."""
    where = pipeline.source.where
    if where is None:
        return []
    return [where, *(made for name, made in pipeline.source.columns if name in where.columns)]


def _have_values(columns: Iterable[str]) -> Column:
    quoted = (f"`{c.replace('`', '``')}`" for c in columns)
    return reduce(lambda x, y: x & y, (F.col(c).isNotNull() for c in quoted), F.lit(True))


def arrived(rows: DataFrame, arrival_us: int) -> DataFrame:
    """Every row happens when it arrives. rows -> rows + [__t, __naive]."""
    return rows.withColumns(
        {TIME: F.lit(arrival_us).cast("bigint"), NAIVE: F.lit(None).cast("bigint")}
    )


def timed(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Adds the event time `__t` where the row names an instant, else the local time `__naive`. rows -> rows + [__t, __naive]."""
    event_time, name = pipeline.source.event_time, pipeline.source.event_time.column or ""
    kind, value, none = rows.schema[name].dataType, F.col(f"`{name}`"), F.lit(None).cast("bigint")
    if event_time.unit:
        return rows.withColumn(TIME, _scaled(value, kind, _UNITS[event_time.unit])).withColumn(
            NAIVE, none
        )
    if isinstance(kind, T.TimestampType):
        return rows.withColumn(TIME, F.unix_micros(value)).withColumn(NAIVE, none)
    if isinstance(kind, T.StringType):
        parsed = F.when(value.rlike(_DATED), F.unix_micros(value.try_cast("timestamp_ltz")))
        local = value.rlike(_LOCAL)
        return rows.withColumn(TIME, F.when(~local, parsed)).withColumn(
            NAIVE, F.when(local, parsed)
        )
    return rows.withColumn(TIME, none).withColumn(NAIVE, F.unix_micros(value.cast("timestamp_ltz")))


def placed(rows: DataFrame, zone: str | None, low_us: int, high_us: int) -> DataFrame:
    """Turns local times from `low_us` to `high_us` into instants: in a fold the earlier one, in a gap none. Later ones count as UTC."""
    naive = F.col(NAIVE)
    found = _instant(local_spans(zone, low_us, high_us), naive)
    return rows.withColumn(
        TIME, F.coalesce(F.col(TIME), F.when(naive > F.lit(high_us), naive).otherwise(found))
    )


def checked(
    rows: DataFrame, pipeline: Pipeline, schema: T.StructType, arrival_us: int
) -> DataFrame:
    """Adds `__why`: the reason to quarantine a row, or null. rows[..., __t, __naive] -> rows[..., __t, __why]."""
    reasons = [
        *_time_reasons(pipeline, arrival_us),
        *_key_reasons(pipeline, schema),
        *_attribute_reasons(pipeline, schema),
    ]
    reasons += _value_reasons(pipeline, schema)
    return rows.withColumn(WHY, F.coalesce(*reasons, F.lit(None).cast("string"))).drop(NAIVE)


def _scaled(value: Column, kind: T.DataType, unit_us: int) -> Column:
    """Numbers since 1970 as whole microseconds, rounded down; null where that is no 64-bit number."""
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return F.when(~F.isnan(value), F.floor(value * F.lit(float(unit_us))).try_cast("bigint"))
    return F.floor(value.try_cast("decimal(38,12)") * F.lit(unit_us)).try_cast("bigint")


def _instant(spans: Sequence[Span], local: Column) -> Column:
    if len(spans) == 1:
        span = spans[0]
        return (
            local - F.lit(span.low_us - span.at_us) if span.on_clock else F.lit(None).cast("bigint")
        )
    middle = len(spans) // 2
    left, right = _instant(spans[:middle], local), _instant(spans[middle:], local)
    return F.when(local < F.lit(spans[middle].low_us), left).otherwise(right)


def _time_reasons(pipeline: Pipeline, arrival_us: int) -> list[Column]:
    name, zone = pipeline.source.event_time.column, pipeline.source.zone
    if name is None:
        return []
    ahead = Duration(pipeline.watermark.max_future_us)
    gap = F.col(NAIVE).isNotNull() & F.col(TIME).isNull()
    return [
        F.when(F.col(f"`{name}`").isNull(), f"{name} is null"),
        F.when(gap, f"{name} does not exist on the clock of {zone}"),
        F.when(
            F.col(TIME).isNull() | ~F.col(TIME).between(FIRST_US, LAST_US),
            f"{name} can't be read as a time",
        ),
        F.when(
            F.col(TIME) > F.lit(arrival_us + ahead.us),
            f"{name} is more than {ahead} ahead of the arrival",
        ),
    ]


def _key_reasons(pipeline: Pipeline, schema: T.StructType) -> list[Column]:
    return [F.when(F.col(f"`{k}`").isNull(), f"{k} is null") for k in pipeline.source.key]


def _attribute_reasons(pipeline: Pipeline, schema: T.StructType) -> list[Column]:
    """An event without an attribute is in no delta window."""
    names = dict.fromkeys(w.attribute for w in pipeline.windows if isinstance(w, Delta))
    missing = [F.when(F.col(f"`{name}`").isNull(), f"{name} is null") for name in names]
    unfit = [
        F.when(not_finite(F.col(f"`{name}`")), f"{name} is not a finite number")
        for name in names
        if _fraction(schema, name)
    ]
    return [*missing, *unfit]


def _fraction(schema: T.StructType, name: str) -> bool:
    return isinstance(schema[name].dataType, (T.FloatType, T.DoubleType))


def _value_reasons(pipeline: Pipeline, schema: T.StructType) -> list[Column]:
    if pipeline.source.on_bad_value == "null":
        return []
    bad = {name: found for a in pipeline.aggregates for name, found in bad_value(a, schema).items()}
    return [F.when(found, f"{name} is not a finite number") for name, found in bad.items()]


def inserted(rows: DataFrame) -> DataFrame:
    """The rows that are new; all of them where the source is read without its change feed."""
    return rows.where(F.col(CHANGE) == "insert").drop(*FEED) if CHANGE in rows.columns else rows
