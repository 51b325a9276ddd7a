"""Windows that depend on the order of events, cut from the events of a key.

These are capped sessions, count, delta and punctuation windows.

    events[key, t, order, inputs, base] -> events + [window_index]
        -> windows[key, start, end, index or last, closed_by, parts]

Events begin with an anchor: the first event of a window, before which nothing has changed; `base`
is that window's index. Each cut of a delta window or a capped session depends on the cut before
it, so they are found by a fold over a key's events, in one expression.
"""

from decimal import ROUND_FLOOR, Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import Parts, lift_parts
from windowing.columns import BASE, CLOSED_BY, END, INDEX, LAST, ORDER, ROWS, START, TIME, Names
from windowing.expressions.exact_decimals import (
    MOST_DIGITS,
    exactly,
    loses_places,
    split_decimal,
    subtract_parts,
)
from windowing.grid.frame import div
from windowing.panes.frame import add_event_chains
from windowing.rows import is_true
from windowing.spec.kinds import CappedSession, Count, Delta, EventDriven, Punctuation
from windowing.windows.fold import OPENS, number_openings
from windowing.windows.keyed_rows import order_rows, up_to_row
from windowing.windows.session import shift_moment

_NTH, _MARKS, _INDEX = "__nth", "__marks", "__index"
_INTEGER_TYPES = ("byte", "short", "integer", "long")


def cut_windows(
    events: DataFrame,
    window: CappedSession | EventDriven,
    keys: Names,
    kept: Parts,
) -> DataFrame:
    """The windows of `events`.

    -> [keys, window_start, window_end, parts] and last_event (capped sessions), or window_index
    and closed_by (the others). `closed_by` is the time of the event that made a window complete:
    its last one (count), or the one that closed it; null before that.
    """
    match window:
        case Count():
            numbered = _number_counted(events, window, keys)
            found = _merge_by_index(numbered, keys, kept)
            is_complete = F.col(ROWS) == window.count
            last_event = shift_moment(F.col(END), -1)
            return found.withColumn(CLOSED_BY, F.when(is_complete, last_event))
        case Delta():
            numbered = _number_delta(events, window, keys)
            found = _merge_by_index(numbered, keys, kept)
            next_start = F.lead(START).over(order_rows(keys, INDEX))
            return found.withColumn(CLOSED_BY, next_start)
        case Punctuation():
            return _punctuation_windows(events, window, keys, kept)
        case CappedSession():
            return _capped_sessions(events, window, keys, kept)


def _merge_by_index(events: DataFrame, keys: Names, kept: Parts) -> DataFrame:
    """Windows from their first event to just after their last, with the index of their events."""
    first_us, last_us = F.min(TIME), F.max(TIME)
    start = F.timestamp_micros(first_us).alias(START)
    end = F.timestamp_micros(last_us + 1).alias(END)
    number = F.col(_INDEX).alias(INDEX)
    return events.groupBy(*keys, number).agg(start, end, *lift_parts(kept))


def _number_counted(events: DataFrame, window: Count, keys: Names) -> DataFrame:
    """One row for each event and count window that contains it, with the window's `__index`."""
    position = F.row_number().over(order_rows(keys, ORDER)) - 1
    numbered = events.withColumn(_NTH, position)
    last_ended = div(F.col(_NTH) - window.count, window.every)
    first = F.greatest(F.lit(0).cast("bigint"), last_ended + 1)
    last = div(F.col(_NTH), window.every)
    base = F.col(BASE)
    indexes = F.sequence(base + first, base + last)
    return numbered.withColumn(_INDEX, F.explode(indexes))


def _number_delta(events: DataFrame, window: Delta, keys: Names) -> DataFrame:
    """Adds `__index`: the index of the delta window of each event."""
    value = F.col(f"`{window.attribute}`")
    data_type = events.schema[window.attribute].dataType
    if window.delta_us is not None:
        number = F.unix_micros(value)
        step = F.lit(window.delta_us)
    else:
        number = _exact_number(value, data_type)
        step = _delta_step(window, data_type)
    subtract = subtract_parts if loses_places(data_type) else F.try_subtract

    def opens(now: Column, first: Column) -> Column:
        # A difference that overflows is null. It is beyond any step, so only its sign decides.
        is_beyond = subtract(now, first) > step
        return F.coalesce(is_beyond, now > first)

    opened = number_openings(events, keys, number, opens)
    number_in_events = F.col(OPENS) - 1
    return opened.withColumn(_INDEX, number_in_events + F.col(BASE))


def _exact_number(value: Column, data_type: T.DataType) -> Column:
    """The value in a form whose differences are exact.

    Whole numbers become decimals, whose differences can't overflow, and decimals become PARTS where
    Spark would round their differences.
    """
    if data_type.typeName() in _INTEGER_TYPES:
        return value.cast("decimal(20,0)")
    if not loses_places(data_type):
        return value
    if _tens(data_type):
        value = value / F.lit("0.1").cast("decimal(1,1)")
    return split_decimal(value)


def _tens(data_type: T.DataType) -> int:
    """By which power of ten PARTS of values of this type are multiplied.

    It is 1 where they have 38 places, because PARTS of that many places can't be subtracted.
    """
    return int(isinstance(data_type, T.DecimalType) and data_type.scale == MOST_DIGITS)


def _delta_step(window: Delta, data_type: T.DataType) -> Column:
    """The step as a number that `data_type` can be compared with.

    For decimals and whole numbers it is rounded down to their places, because Spark would round a
    wide decimal to make room for a longer fraction.
    """
    if isinstance(data_type, (T.FloatType, T.DoubleType)):
        return F.lit(window.delta).cast("decimal(38,9)")
    places = data_type.scale if isinstance(data_type, T.DecimalType) else 0
    step = Decimal(window.delta or 0)
    if not loses_places(data_type):
        return exactly(step, places, ROUND_FLOOR)
    tens = _tens(data_type)
    in_tens = exactly(step.scaleb(tens), places - tens, ROUND_FLOOR)
    return split_decimal(in_tens)


def _capped_sessions(
    events: DataFrame, window: CappedSession, keys: Names, kept: Parts
) -> DataFrame:
    """Chains of events at most a session gap apart, cut where they reach the longest duration."""

    def opens(now: Column, first: Column) -> Column:
        return now - first >= window.longest_us

    chain = [*keys, "__chain"]
    chained = add_event_chains(events, keys, window.gap_us)
    opened = number_openings(chained, chain, F.col(TIME), opens)
    first_us, last_us = F.min(TIME), F.max(TIME)
    start = F.timestamp_micros(first_us).alias(START)
    last = F.timestamp_micros(last_us).alias(LAST)
    sessions = opened.groupBy(*chain, OPENS)
    found = sessions.agg(start, last, *lift_parts(kept)).drop("__chain", OPENS)
    end_by_gap = shift_moment(F.col(LAST), window.gap_us)
    end_by_cap = shift_moment(F.col(START), window.longest_us)
    return found.withColumn(END, F.least(end_by_gap, end_by_cap))


def _punctuation_windows(
    events: DataFrame, window: Punctuation, keys: Names, kept: Parts
) -> DataFrame:
    """The events between markers; a marker closes the window before it and belongs to none."""
    marker = is_true(F.col(f"`{window.marker}`"))
    marks_so_far = F.count_if(marker).over(up_to_row(keys, ORDER))
    counted = events.withColumn(_MARKS, marks_so_far)
    inside = counted.where(~marker)
    # Markers that follow each other directly have no window between them and so use up no index.
    rank = F.dense_rank().over(order_rows(keys, _MARKS))
    numbered = inside.withColumn(_INDEX, rank - 1 + F.col(BASE))
    found = _merge_by_index(numbered, [*keys, _MARKS], kept)
    closed_marks = (F.col(_MARKS) - 1).alias(_MARKS)
    closed_by = F.timestamp_micros(TIME).alias(CLOSED_BY)
    markers = counted.where(marker)
    closing = markers.select(*keys, closed_marks, closed_by)
    return found.join(closing, [*keys, _MARKS], "left").drop(_MARKS)
