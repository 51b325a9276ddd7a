"""Record-driven sliding windows (KIP-450), made from ticks.

A tick is the events of a key that share an event time, rounded down to `window.tick_us`.

    events[key, t, judged_by, inputs] -> ticks[key, tick, judged_by, parts]
        -> windows[key, start, end, parts]

A tick makes the window that ends with it, and the one that begins after it if that contains an
event. A window [s, s + difference], both ends inside, is late for an event when
s + difference + tick + allowed lateness <= judged_by: the event neither makes nor enters it.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Part
from windowing.columns import END, EVENTS_JUDGED, START, TIME
from windowing.grid.frame import div
from windowing.spec.kinds import RecordSliding

_TICK, _AT, _BLOCK = "__tick", "__at", "__block"


def windows(
    events: DataFrame,
    window: RecordSliding,
    keys: Sequence[str],
    kept: Sequence[Part],
    lateness_us: int | None,
) -> DataFrame:
    """Every window that `events` make. -> [keys, window_start, window_end, parts]."""
    tick = (F.col(TIME) - F.pmod(F.col(TIME), F.lit(window.tick_us))).alias(_TICK)
    lifts = [part.lift.alias(part.name) for part in kept]
    ticks = events.groupBy(*keys, tick, EVENTS_JUDGED).agg(*lifts)
    # Windows and ticks are joined by blocks as wide as a window: a window lies in two at most.
    width = window.difference_us + window.tick_us
    first_block = div(F.col(_AT), width)
    blocks = F.explode(F.array(first_block, first_block + 1))
    starts = _window_starts(ticks, window, keys, lateness_us).withColumn(_BLOCK, blocks)
    placed = ticks.withColumn(_BLOCK, div(F.col(_TICK), width))
    last_tick = F.col(_AT) + F.lit(window.difference_us)
    inside = F.col(_TICK).between(F.col(_AT), last_tick)
    in_time = _is_in_time(F.col(_AT), window, lateness_us)
    pairs = starts.join(placed, [*keys, _BLOCK]).where(inside & in_time)
    merged = pairs.groupBy(*keys, _AT).agg(*(part.merged() for part in kept))
    start = F.timestamp_micros(_AT)
    end = F.timestamp_micros(F.col(_AT) + F.lit(width))
    return merged.withColumns({START: start, END: end}).drop(_AT)


def _window_starts(
    ticks: DataFrame, window: RecordSliding, keys: Sequence[str], lateness_us: int | None
) -> DataFrame:
    """The starts of the windows that ticks make: [keys, __at], each once.

    A tick that is late for its last window makes none.
    """
    start_of_ending = F.col(_TICK) - F.lit(window.difference_us)
    start_of_next = F.col(_TICK) + F.lit(window.tick_us)
    ending = ticks.select(*keys, EVENTS_JUDGED, start_of_ending.alias(_AT))
    ending = ending.where(_is_in_time(F.col(_AT), window, lateness_us)).select(*keys, _AT)
    # The last window that contains a tick begins with it, so the tick's own time is judged here.
    after = ticks.where(_is_in_time(F.col(_TICK), window, lateness_us))
    after = after.select(*keys, start_of_next.alias(_AT))
    return ending.unionByName(after).distinct()


def _is_in_time(at: Column, window: RecordSliding, lateness_us: int | None) -> Column:
    """True where the window that begins at `at`, microseconds, is not late for the events."""
    if lateness_us is None:
        return F.lit(True)
    judged = F.col(EVENTS_JUDGED)
    end = at + F.lit(window.difference_us + window.tick_us)
    return judged.isNull() | (end + F.lit(lateness_us) > F.unix_micros(judged))
