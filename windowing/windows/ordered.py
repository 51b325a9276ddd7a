"""Windows that depend on the order of events: capped sessions, count, delta and punctuation windows, cut from a key's events.

    events[key, t, order, inputs, base] -> events + [window_index] -> windows[key, start, end, index or last, closed_by, parts]

Events come from an anchor on: the first event of a window, before which nothing has changed; `base` is that window's index. The cuts of
delta windows and capped sessions each depend on the one before; they are found by a fold over a key's events, in one expression.
"""

from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Decimal

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import Part
from windowing.columns import BASE, CLOSED_BY, END, INDEX, LAST, ORDER, START
from windowing.columns import T as TIME
from windowing.expressions.exact_decimals import exactly
from windowing.grid.frame import div
from windowing.spec.kinds import CappedSession, Count, Counted, Delta, Punctuation
from windowing.windows.session import later

_NTH, _OPENS, _FIRST, _MARKS, _INDEX = "__nth", "__opens", "__first", "__marks", "__index"
_STARTS = "__starts"


def windows(
    events: DataFrame, window: CappedSession | Counted, keys: Sequence[str], kept: Sequence[Part]
) -> DataFrame:
    """The windows of `events`: [keys, window_start, window_end, parts] and last_event, or window_index and closed_by.

    `closed_by` is the time of the event that made a window complete: its last one (count), or the one that closed it; null before that.
    """
    match window:
        case Count():
            found = _built(_counted(events, window, keys), keys, kept)
            complete = F.col("rows") == F.lit(window.count)
            return found.withColumn(CLOSED_BY, F.when(complete, later(F.col(END), -1)))
        case Delta():
            found = _built(_grown(events, window, keys), keys, kept)
            return found.withColumn(
                CLOSED_BY, F.lead(START).over(Window.partitionBy(*keys).orderBy(INDEX))
            )
        case Punctuation():
            return _punctuated(events, window, keys, kept)
        case CappedSession():
            return _capped(events, window, keys, kept)


def _built(events: DataFrame, keys: Sequence[str], kept: Sequence[Part]) -> DataFrame:
    """Windows from the first event to just after the last, numbered on from their base."""
    bounds = (
        F.timestamp_micros(F.min(TIME)).alias(START),
        F.timestamp_micros(F.max(TIME) + 1).alias(END),
    )
    return events.groupBy(*keys, F.col(_INDEX).alias(INDEX)).agg(
        *bounds, *(p.lift.alias(p.name) for p in kept)
    )


def _in_order(keys: Sequence[str]) -> WindowSpec:
    return Window.partitionBy(*keys).orderBy(ORDER)


def _counted(events: DataFrame, window: Count, keys: Sequence[str]) -> DataFrame:
    numbered, nth = (
        events.withColumn(_NTH, F.row_number().over(_in_order(keys)) - F.lit(1)),
        F.col(_NTH),
    )
    first = F.greatest(
        F.lit(0).cast("bigint"), div(nth - F.lit(window.count), window.every) + F.lit(1)
    )
    return numbered.withColumn(
        _INDEX, F.explode(F.sequence(F.col(BASE) + first, F.col(BASE) + div(nth, window.every)))
    )


def _grown(events: DataFrame, window: Delta, keys: Sequence[str]) -> DataFrame:
    value = F.col(f"`{window.attribute}`")
    if window.delta_us is not None:
        number, step = F.unix_micros(value), F.lit(window.delta_us)
    else:
        number, step = (
            _number(value, events, window.attribute),
            _step(window, events.schema[window.attribute].dataType),
        )

    def opens(now: Column, first: Column) -> Column:
        return F.coalesce(F.try_subtract(now, first) > step, now > first)

    opened = _folded(events.withColumn(_FIRST, number), keys, opens)
    return opened.withColumn(_INDEX, F.col(_OPENS) - F.lit(1) + F.col(BASE))


def _number(value: Column, events: DataFrame, attribute: str) -> Column:
    """Whole numbers as decimals, whose differences can't overflow."""
    return (
        value.cast("decimal(20,0)")
        if events.schema[attribute].dataType.typeName() in _WHOLE
        else value
    )


def _step(window: Delta, kind: T.DataType) -> Column:
    """The step, of decimals and whole numbers rounded down to their places: Spark would round a wide decimal to meet a longer fraction."""
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return F.lit(window.delta).cast("decimal(38,9)")
    return exactly(
        Decimal(window.delta or 0),
        kind.scale if isinstance(kind, T.DecimalType) else 0,
        ROUND_FLOOR,
    )


_WHOLE = ("byte", "short", "integer", "long")


def _capped(
    events: DataFrame, window: CappedSession, keys: Sequence[str], kept: Sequence[Part]
) -> DataFrame:
    order = Window.partitionBy(*keys).orderBy(TIME)
    begins = F.coalesce(
        F.col(TIME) - F.lag(TIME).over(order) > F.lit(window.gap_us), F.lit(True)
    ).cast("int")
    chained = events.withColumn("__begins", begins)
    chained = chained.withColumn(
        "__chain", F.sum("__begins").over(order.rowsBetween(Window.unboundedPreceding, 0))
    ).drop("__begins")
    group = [*keys, "__chain"]
    opened = _folded(
        chained.withColumn(_FIRST, F.col(TIME)),
        group,
        lambda now, first: now - first >= F.lit(window.longest_us),
    )
    bounds = (
        F.timestamp_micros(F.min(TIME)).alias(START),
        F.timestamp_micros(F.max(TIME)).alias(LAST),
    )
    found = (
        opened.groupBy(*group, _OPENS)
        .agg(*bounds, *(p.lift.alias(p.name) for p in kept))
        .drop("__chain", _OPENS)
    )
    return found.withColumn(
        END, F.least(later(F.col(LAST), window.gap_us), later(F.col(START), window.longest_us))
    )


def _folded(
    events: DataFrame, group: Sequence[str], opens: Callable[[Column, Column], Column]
) -> DataFrame:
    """Numbers each event's window from 1: an event for which `opens(its value, the open window's first value)` begins the next one.

    The value is in `__first`. One pass over each group's sorted values, which keeps only the positions at which windows begin.
    """
    numbered = events.withColumn(
        _NTH, F.row_number().over(Window.partitionBy(*group).orderBy(ORDER)).cast("bigint")
    )
    values = F.array_sort(F.collect_list(F.struct(_NTH, _FIRST)))
    begun = F.struct(
        F.element_at(values, 1)[_FIRST].alias(_FIRST), F.array(F.lit(1).cast("bigint")).alias("at")
    )

    def step(state: Column, event: Column) -> Column:
        opened = F.struct(
            event[_FIRST].alias(_FIRST), F.concat(state["at"], F.array(event[_NTH])).alias("at")
        )
        return F.when(opens(event[_FIRST], state[_FIRST]), opened).otherwise(state)

    starts = numbered.groupBy(*group).agg(F.aggregate(values, begun, step)["at"].alias(_STARTS))
    marks = starts.select(*group, F.explode(_STARTS).alias(_NTH), F.lit(1).alias("__mark"))
    joined = numbered.join(marks, [*group, _NTH], "left")
    running = Window.partitionBy(*group).orderBy(_NTH).rowsBetween(Window.unboundedPreceding, 0)
    return joined.withColumn(_OPENS, F.count("__mark").over(running)).drop("__mark", _NTH, _FIRST)


def _punctuated(
    events: DataFrame, window: Punctuation, keys: Sequence[str], kept: Sequence[Part]
) -> DataFrame:
    marker = F.coalesce(F.col(f"`{window.marker}`"), F.lit(False))
    running = _in_order(keys).rowsBetween(Window.unboundedPreceding, 0)
    counted = events.withColumn(_MARKS, F.count_if(marker).over(running))
    inside = counted.where(~marker)
    numbered = inside.withColumn(
        _INDEX,
        F.dense_rank().over(Window.partitionBy(*keys).orderBy(_MARKS)) - F.lit(1) + F.col(BASE),
    )
    found = _built(numbered, [*keys, _MARKS], kept)
    closing = counted.where(marker).select(
        *keys, (F.col(_MARKS) - 1).alias(_MARKS), F.timestamp_micros(TIME).alias(CLOSED_BY)
    )
    return found.join(closing, [*keys, _MARKS], "left").drop(_MARKS)
