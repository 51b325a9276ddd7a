"""How far a change of events reaches in windows that depend on the order of events.

For each key it is a range of event times and a range of window starts.

    reached[key, t0, t1] x stored[key, window_start, ...]
        -> regions[key, low, high, from, to, base]

`__low` is the first event of a window at a clean boundary: every earlier event is strictly before
it and in earlier windows only. So the windows from there on can be cut as if nothing came before;
`__base` is the index of the first of them. Times are microseconds; [low, high) are event times,
and `__from` <= window_start < `__to` are the windows that are recomputed.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from windowing.columns import BASE, CLOSED_BY, END, INDEX, LAST, START
from windowing.spec.kinds import CappedSession, Count, EventDriven, OrderDependent, RecordSliding

# Beyond every event time, and far enough from the ends of BIGINT for sums that can't overflow.
_LEAST, _MOST = -(2**62), 2**62


def regions(
    reached: DataFrame, stored: DataFrame | None, window: OrderDependent, keys: Sequence[str]
) -> DataFrame:
    """What must be recomputed when events from `__t0` to `__t1` (both inside) of each key change.

    reached[keys, __t0, __t1] x stored windows -> [keys, __low, __high, __from, __to, __base].
    """
    if isinstance(window, RecordSliding):
        return _record_regions(reached, window, keys)
    if stored is None:
        nothing = F.lit(None).cast("struct<low:bigint,base:bigint>")
        return _with_bounds(reached.withColumn("__at", nothing), F.lit(None), keys)
    rows = stored.join(reached, [*keys])
    begun = F.unix_micros(START)
    clean = rows.withColumn("__clean", _is_clean(window, keys))
    place = F.struct(begun.alias("low"), _window_index(window).alias("base"))
    anchor = F.max(F.when(F.col("__clean") & (begun < F.col("__t0")), place))
    end = F.lit(None).cast("bigint")
    if isinstance(window, CappedSession):
        # Chains are cut independently of each other, so recomputing ends before the next one.
        beyond = begun > F.col("__t1") + F.lit(window.gap_us)
        end = F.min(F.when(F.col("__clean") & beyond, begun))
    found = clean.groupBy(*keys).agg(anchor.alias("__at"), end.alias("__end"))
    return _with_bounds(reached.join(found, [*keys], "left"), F.col("__end"), keys)


def windows_in_regions(rows: DataFrame, found: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The windows of `rows` that lie in the regions `found`."""
    same_key = [F.col(f"w.`{k}`") == F.col(f"r.`{k}`") for k in keys]
    begun = F.unix_micros(f"w.{START}")
    within = (begun >= F.col("r.__from")) & (begun < F.col("r.__to"))
    spans = found.select(*keys, "__from", "__to")
    return rows.alias("w").join(spans.alias("r"), [*same_key, within], "left_semi")


def _with_bounds(rows: DataFrame, end: Column, keys: Sequence[str]) -> DataFrame:
    """From the anchor `__at` to `end`; everything on the side where there is none."""
    anchor = F.col("__at")
    low = F.coalesce(anchor["low"], F.lit(_LEAST))
    high = F.coalesce(end.cast("bigint"), F.lit(_MOST))
    base = F.coalesce(anchor["base"], F.lit(0)).cast("bigint")
    return rows.select(
        *keys,
        low.alias("__low"),
        high.alias("__high"),
        low.alias("__from"),
        high.alias("__to"),
        base.alias(BASE),
    )


def _is_clean(window: CappedSession | EventDriven, keys: Sequence[str]) -> Column:
    """True for stored windows that begin at a clean boundary.

    Every earlier event is strictly before their first event, and in windows that a change from
    `__t0` on leaves alone.
    """
    if isinstance(window, CappedSession):
        last_before = F.lag(LAST).over(Window.partitionBy(*keys).orderBy(START))
        chain_ends = F.unix_micros(last_before) + F.lit(window.gap_us)
        return last_before.isNull() | (chain_ends < F.unix_micros(START))
    order = Window.partitionBy(*keys).orderBy(INDEX)
    if isinstance(window, Count) and window.every != window.count:
        return _is_clean_overlapping(window, order)
    end_before = F.lag(END).over(order)
    return end_before.isNull() | (end_before <= F.col(START))


def _is_clean_overlapping(window: Count, order: WindowSpec) -> Column:
    """`_is_clean` for count windows that overlap, because `every` is not `count`.

    No window before it reaches its first event, and all windows before it were complete by `__t0`.
    """
    is_first = F.col(INDEX) == F.lit(0)
    if window.count % window.every:
        return is_first
    overlapping = window.count // window.every
    apart = F.lag(END, overlapping).over(order) <= F.col(START)
    complete = F.lag(CLOSED_BY).over(order).isNotNull()
    ended = F.unix_micros(F.lag(END).over(order)) <= F.col("__t0")
    return is_first | F.coalesce(apart & (complete & ended), F.lit(False))


def _window_index(window: CappedSession | EventDriven) -> Column:
    """The index of a stored window; 0 for capped sessions, which have none."""
    index = F.lit(0) if isinstance(window, CappedSession) else F.col(INDEX)
    return index.cast("bigint")


def _record_regions(reached: DataFrame, window: RecordSliding, keys: Sequence[str]) -> DataFrame:
    """The regions of record_sliding windows, which follow from the bounds of the change alone.

    Windows that contain a changed event, or that one makes, begin at most `difference` before it
    and one tick after it.
    """
    tick, width = window.tick_us, window.difference_us + window.tick_us
    first = F.col("__t0") - F.pmod(F.col("__t0"), F.lit(tick))
    last = F.col("__t1") - F.pmod(F.col("__t1"), F.lit(tick))
    # The events of those windows, and the ticks that make them, lie within two widths.
    low = first - F.lit(2 * width)
    high = last + F.lit(2 * width)
    start = first - F.lit(window.difference_us)
    end = last + F.lit(2 * tick)
    return reached.select(
        *keys,
        low.alias("__low"),
        high.alias("__high"),
        start.alias("__from"),
        end.alias("__to"),
        F.lit(0).cast("bigint").alias(BASE),
    )
