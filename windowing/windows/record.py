"""Record-driven sliding windows (KIP-450), made from ticks.

A tick is the events of a key that share an event time, rounded down to `window.tick_us`.

    events[key, t, judged_by, inputs] -> ticks[key, tick, judged_by, parts]
        -> windows[key, start, end, parts]

A tick makes the window that ends with it, and the one that begins after it if that contains an
event. A window [s, s + difference], both ends inside, is late for an event when
s + difference + tick + allowed lateness <= judged_by: the event neither makes nor enters it.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Parts, lift_parts, merge_parts
from windowing.columns import END, EVENTS_JUDGED, START, TIME, Names
from windowing.grid.frame import div
from windowing.spec.kinds import RecordSliding

_TICK, _AT, _BLOCK = "__tick", "__at", "__block"


def make_record_windows(
    events: DataFrame,
    window: RecordSliding,
    keys: Names,
    kept: Parts,
    lateness_us: int | None,
) -> DataFrame:
    """Every window that `events` make. -> [keys, window_start, window_end, parts]."""
    since_tick = F.pmod(TIME, F.lit(window.tick_us))
    tick = (F.col(TIME) - since_tick).alias(_TICK)
    ticks = events.groupBy(*keys, tick, EVENTS_JUDGED).agg(*lift_parts(kept))
    # Windows and ticks are joined by blocks as wide as a window: a window lies in two at most.
    width = window.difference_us + window.tick_us
    first_block = div(F.col(_AT), width)
    blocks = F.explode(F.array(first_block, first_block + 1))
    starts = _window_starts(ticks, window, keys, lateness_us)
    placed_starts = starts.withColumn(_BLOCK, blocks)
    placed = ticks.withColumn(_BLOCK, div(F.col(_TICK), width))
    start_us = F.col(_AT)
    last_tick = start_us + window.difference_us
    is_inside = F.col(_TICK).between(start_us, last_tick)
    is_in_time = _is_in_time(start_us, window, lateness_us)
    pairs = placed_starts.join(placed, [*keys, _BLOCK])
    contained = pairs.where(is_inside & is_in_time)
    merged = contained.groupBy(*keys, _AT).agg(*merge_parts(kept))
    start = F.timestamp_micros(_AT)
    end = F.timestamp_micros(start_us + width)
    return merged.withColumns({START: start, END: end}).drop(_AT)


def _window_starts(
    ticks: DataFrame, window: RecordSliding, keys: Names, lateness_us: int | None
) -> DataFrame:
    """The starts of the windows that ticks make: [keys, __at], each once.

    A tick that is late for its last window makes none.
    """
    start_of_ending = F.col(_TICK) - window.difference_us
    start_of_next = F.col(_TICK) + window.tick_us
    makes_ending = _is_in_time(start_of_ending, window, lateness_us)
    ending = ticks.where(makes_ending).select(*keys, start_of_ending.alias(_AT))
    # The last window that contains a tick begins with it, so the tick's own time is judged here.
    makes_next = _is_in_time(F.col(_TICK), window, lateness_us)
    following = ticks.where(makes_next).select(*keys, start_of_next.alias(_AT))
    return ending.unionByName(following).distinct()


def _is_in_time(at: Column, window: RecordSliding, lateness_us: int | None) -> Column:
    """True where the window that begins at `at`, microseconds, is not late for the events."""
    if lateness_us is None:
        return F.lit(True)
    judged_us = F.unix_micros(EVENTS_JUDGED)
    end = at + (window.difference_us + window.tick_us)
    is_open = end + lateness_us > judged_us
    return judged_us.isNull() | is_open
