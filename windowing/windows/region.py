"""How far a change of events reaches in windows that depend on their order: for each key a range of event times and of window starts.

    reached[key, t0, t1] x stored[key, window_start, ...] -> regions[key, low, high, from, to, base]

`__low` is the first event of a window at a clean boundary: every earlier event is strictly before it and in earlier windows only, so the
windows from there on can be cut anew as if nothing came before; `__base` is that window's index. Times are microseconds; [low, high) are
event times, `__from` <= window_start < `__to` the windows that are recomputed.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.columns import BASE, CLOSED_BY, END, INDEX, LAST, START
from windowing.spec.kinds import CappedSession, Count, Counted, Ordered, RecordSliding

_LEAST, _MOST = -(2**62), 2**62


def regions(
    reached: DataFrame, stored: DataFrame | None, window: Ordered, keys: Sequence[str]
) -> DataFrame:
    """What must be recomputed when events from `__t0` to `__t1` (both inside) of each key change."""
    if isinstance(window, RecordSliding):
        return _around(reached, window, keys)
    if stored is None:
        return _bounded(
            reached.withColumn("__at", F.lit(None).cast("struct<low:bigint,base:bigint>")),
            F.lit(None),
            keys,
        )
    rows = stored.join(reached, [*keys])
    begun = F.unix_micros(START)
    clean = rows.withColumn("__clean", _clean(window, keys))
    anchor = F.max(
        F.when(
            F.col("__clean") & (begun < F.col("__t0")),
            F.struct(begun.alias("low"), _index(window).alias("base")),
        )
    )
    end = F.lit(None).cast("bigint")
    if isinstance(window, CappedSession):
        end = F.min(
            F.when(F.col("__clean") & (begun > F.col("__t1") + F.lit(window.gap_us)), begun)
        )
    found = clean.groupBy(*keys).agg(anchor.alias("__at"), end.alias("__end"))
    return _bounded(reached.join(found, [*keys], "left"), F.col("__end"), keys)


def inside(rows: DataFrame, found: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The windows of `rows` that lie in the regions `found`."""
    same = [F.col(f"w.`{k}`") == F.col(f"r.`{k}`") for k in keys]
    begun = F.unix_micros(f"w.{START}")
    within = (begun >= F.col("r.__from")) & (begun < F.col("r.__to"))
    return rows.alias("w").join(
        found.select(*keys, "__from", "__to").alias("r"), [*same, within], "left_semi"
    )


def _bounded(rows: DataFrame, end: Column, keys: Sequence[str]) -> DataFrame:
    low, high = (
        F.coalesce(F.col("__at")["low"], F.lit(_LEAST)),
        F.coalesce(end.cast("bigint"), F.lit(_MOST)),
    )
    base = F.coalesce(F.col("__at")["base"], F.lit(0)).cast("bigint").alias(BASE)
    return rows.select(
        *keys,
        low.alias("__low"),
        high.alias("__high"),
        low.alias("__from"),
        high.alias("__to"),
        base,
    )


def _clean(window: CappedSession | Counted, keys: Sequence[str]) -> Column:
    """True for stored windows before whose first event every earlier event is strictly earlier, and in windows that `__t0` leaves alone."""
    if isinstance(window, CappedSession):
        before = F.lag(LAST).over(Window.partitionBy(*keys).orderBy(START))
        return before.isNull() | (
            F.unix_micros(before) + F.lit(window.gap_us) < F.unix_micros(START)
        )
    order = Window.partitionBy(*keys).orderBy(INDEX)
    if not isinstance(window, Count) or window.every == window.count:
        before = F.lag(END).over(order)
        return before.isNull() | (before <= F.col(START))
    first = F.col(INDEX) == F.lit(0)
    if window.count % window.every:
        return first
    apart = F.lag(END, window.count // window.every).over(order) <= F.col(START)
    done = F.lag(CLOSED_BY).over(order).isNotNull() & (
        F.unix_micros(F.lag(END).over(order)) <= F.col("__t0")
    )
    return first | F.coalesce(apart & done, F.lit(False))


def _index(window: CappedSession | Counted) -> Column:
    return (
        F.lit(0).cast("bigint")
        if isinstance(window, CappedSession)
        else F.col(INDEX).cast("bigint")
    )


def _around(reached: DataFrame, window: RecordSliding, keys: Sequence[str]) -> DataFrame:
    """Windows that hold a changed event, or that one makes, begin at most `difference` before it and one tick after it."""
    tick, wide = window.tick_us, window.difference_us + window.tick_us
    first = F.col("__t0") - F.pmod(F.col("__t0"), F.lit(tick))
    last = F.col("__t1") - F.pmod(F.col("__t1"), F.lit(tick))
    start, end = first - F.lit(window.difference_us), last + F.lit(2 * tick)
    low, high = first - F.lit(2 * wide), last + F.lit(2 * wide)
    return reached.select(
        *keys,
        low.alias("__low"),
        high.alias("__high"),
        start.alias("__from"),
        end.alias("__to"),
        F.lit(0).cast("bigint").alias(BASE),
    )
