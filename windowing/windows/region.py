"""How far a change of events reaches in windows that depend on the order of events.

For each key it is a range of event times and a range of window starts.

    reached[key, t0, t1] x stored[key, window_start, ...]
        -> regions[key, low, high, from, to, base]

`__low` is the first event of a window at a clean boundary: every earlier event is strictly before
it and in earlier windows only. So the windows from there on can be cut as if nothing came before;
`__base` is the index of the first of them. Times are microseconds; [low, high) are event times,
and `__from` <= window_start < `__to` are the windows that are recomputed.
"""

from pyspark.sql import Column, DataFrame, WindowSpec
from pyspark.sql import functions as F

from windowing.columns import BASE, CLOSED_BY, END, INDEX, LAST, START, Names
from windowing.rows import is_true
from windowing.spec.kinds import CappedSession, Count, EventDriven, OrderDependent, RecordSliding
from windowing.windows.keyed_rows import Ends, keep_matching, order_rows

# Beyond every event time, and far enough from the ends of BIGINT for sums that can't overflow.
_LEAST, _MOST = -(2**62), 2**62


def find_regions(
    reached: DataFrame, stored: DataFrame | None, window: OrderDependent, keys: Names
) -> DataFrame:
    """What must be recomputed when events from `__t0` to `__t1` (both inside) of each key change.

    reached[keys, __t0, __t1] x stored windows -> [keys, __low, __high, __from, __to, __base].
    """
    if isinstance(window, RecordSliding):
        return _record_regions(reached, window, keys)
    if stored is None:
        nothing = F.lit(None).cast("struct<low:bigint,base:bigint>")
        placed = reached.withColumn("__at", nothing)
        return _with_bounds(placed, F.lit(None), keys)
    rows = stored.join(reached, [*keys])
    marked = rows.withColumn("__clean", _is_clean(window, keys))
    is_clean = F.col("__clean")
    begun = F.unix_micros(START)
    is_before = begun < F.col("__t0")
    base = _window_index(window).alias("base")
    place = F.struct(begun.alias("low"), base)
    anchor = F.max(F.when(is_clean & is_before, place))
    end = F.lit(None).cast("bigint")
    if isinstance(window, CappedSession):
        # Chains are cut independently of each other, so recomputing ends before the next one.
        end_of_chain = F.col("__t1") + window.gap_us
        is_beyond = begun > end_of_chain
        end = F.min(F.when(is_clean & is_beyond, begun))
    places = [anchor.alias("__at"), end.alias("__end")]
    found = marked.groupBy(*keys).agg(*places)
    placed = reached.join(found, [*keys], "left")
    return _with_bounds(placed, F.col("__end"), keys)


def windows_in_regions(rows: DataFrame, found: DataFrame, keys: Names) -> DataFrame:
    """The windows of `rows` that lie in the regions `found`."""
    begun = F.unix_micros(f"l.{START}")
    is_after_first = begun >= F.col("r.__from")
    is_before_end = begun < F.col("r.__to")
    starts_within = is_after_first & is_before_end
    starts = found.select(*keys, "__from", "__to")
    return keep_matching(rows, starts, keys, starts_within)


def _with_bounds(rows: DataFrame, end: Column, keys: Names) -> DataFrame:
    """From the anchor `__at` to `end`; everything on the side where there is none."""
    anchor = F.col("__at")
    low = F.coalesce(anchor["low"], F.lit(_LEAST))
    high = F.coalesce(end.cast("bigint"), F.lit(_MOST))
    base = F.coalesce(anchor["base"], F.lit(0))
    both = low, high
    return _select_region(rows, keys, both, both, base)


def _select_region(
    rows: DataFrame,
    keys: Names,
    events: Ends,
    starts: Ends,
    base: Column,
) -> DataFrame:
    """The columns of a region: [low, high) of event times, and of starts of windows."""
    low, high = events
    first, end = starts
    return rows.select(
        *keys,
        low.alias("__low"),
        high.alias("__high"),
        first.alias("__from"),
        end.alias("__to"),
        base.cast("bigint").alias(BASE),
    )


def _is_clean(window: CappedSession | EventDriven, keys: Names) -> Column:
    """True for stored windows that begin at a clean boundary.

    Every earlier event is strictly before their first event, and in windows that a change from
    `__t0` on leaves alone.
    """
    if isinstance(window, CappedSession):
        last_before = F.lag(LAST).over(order_rows(keys, START))
        chain_ends = F.unix_micros(last_before) + window.gap_us
        is_apart = chain_ends < F.unix_micros(START)
        return last_before.isNull() | is_apart
    order = order_rows(keys, INDEX)
    if isinstance(window, Count) and window.every != window.count:
        return _is_clean_overlapping(window, order)
    end_before = F.lag(END).over(order)
    is_apart = end_before <= F.col(START)
    return end_before.isNull() | is_apart


def _is_clean_overlapping(window: Count, order: WindowSpec) -> Column:
    """`_is_clean` for count windows that overlap, because `every` is not `count`.

    No window before it reaches its first event, and all windows before it were complete by `__t0`.
    """
    is_first = F.col(INDEX) == F.lit(0)
    if window.count % window.every:
        return is_first
    overlapping = window.count // window.every
    last_overlapping = F.lag(END, overlapping).over(order)
    apart = last_overlapping <= F.col(START)
    complete = F.lag(CLOSED_BY).over(order).isNotNull()
    end_before = F.lag(END).over(order)
    ended = F.unix_micros(end_before) <= F.col("__t0")
    return is_first | is_true(apart & (complete & ended))


def _window_index(window: CappedSession | EventDriven) -> Column:
    """The index of a stored window; 0 for capped sessions, which have none."""
    index = F.lit(0) if isinstance(window, CappedSession) else F.col(INDEX)
    return index.cast("bigint")


def _record_regions(reached: DataFrame, window: RecordSliding, keys: Names) -> DataFrame:
    """The regions of record_sliding windows, which follow from the bounds of the change alone.

    Windows that contain a changed event, or that one makes, begin at most `difference` before it
    and one tick after it.
    """
    first = _round_to_tick("__t0", window)
    last = _round_to_tick("__t1", window)
    # The events of those windows, and the ticks that make them, lie within two widths.
    two_widths = 2 * (window.difference_us + window.tick_us)
    two_ticks = 2 * window.tick_us
    events = first - two_widths, last + two_widths
    starts = first - window.difference_us, last + two_ticks
    return _select_region(reached, keys, events, starts, F.lit(0))


def _round_to_tick(time: str, window: RecordSliding) -> Column:
    since_tick = F.pmod(time, F.lit(window.tick_us))
    return F.col(time) - since_tick
