"""Record-driven sliding windows (KIP-450), made from ticks: the events of a key that share a time, rounded down.

    events[key, t, judged_by, inputs] -> ticks[key, tick, judged_by, parts] -> windows[key, start, end, parts]

A tick makes the window that ends with it and the one that begins after it, where that holds an event. A window [s, s + difference], ends
included, is late for an event when s + difference + tick + allowed lateness <= judged_by: the event neither makes nor enters it.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Part
from windowing.columns import END, EVENTS_JUDGED, START
from windowing.columns import T as TIME
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
    ticks = events.groupBy(*keys, tick, EVENTS_JUDGED).agg(*(p.lift.alias(p.name) for p in kept))
    width = window.difference_us + window.tick_us
    blocks = [div(F.col(_AT), width), div(F.col(_AT), width) + 1]
    made = _made(ticks, window, keys, lateness_us).withColumn(_BLOCK, F.explode(F.array(*blocks)))
    placed = ticks.withColumn(_BLOCK, div(F.col(_TICK), width))
    inside = F.col(_TICK).between(F.col(_AT), F.col(_AT) + F.lit(window.difference_us)) & _in_time(
        F.col(_AT), window, lateness_us
    )
    merged = (
        made.join(placed, [*keys, _BLOCK])
        .where(inside)
        .groupBy(*keys, _AT)
        .agg(*(p.merged() for p in kept))
    )
    start, end = F.timestamp_micros(_AT), F.timestamp_micros(F.col(_AT) + F.lit(width))
    return merged.withColumns({START: start, END: end}).drop(_AT)


def _made(
    ticks: DataFrame, window: RecordSliding, keys: Sequence[str], lateness_us: int | None
) -> DataFrame:
    """The starts of the windows that ticks make: [keys, __at], each once; a tick that is late for its last window makes none."""
    ending = ticks.select(
        *keys, EVENTS_JUDGED, (F.col(_TICK) - F.lit(window.difference_us)).alias(_AT)
    )
    ending = ending.where(_in_time(F.col(_AT), window, lateness_us)).select(*keys, _AT)
    after = ticks.where(_in_time(F.col(_TICK), window, lateness_us)).select(
        *keys, (F.col(_TICK) + F.lit(window.tick_us)).alias(_AT)
    )
    return ending.unionByName(after).distinct()


def _in_time(at: Column, window: RecordSliding, lateness_us: int | None) -> Column:
    if lateness_us is None:
        return F.lit(True)
    end = at + F.lit(window.difference_us + window.tick_us)
    return F.col(EVENTS_JUDGED).isNull() | (end + F.lit(lateness_us) > F.unix_micros(EVENTS_JUDGED))
