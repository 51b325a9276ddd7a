"""Session windows: their bounds come from the data, and they are made from fragments.

    fragments[key, first, last, rows, parts] -> chains whose neighbours are <= gap apart
        -> sessions[key, start, end, last, rows, parts]

Stored sessions are maximal, so a fragment reaches exactly the stored sessions it touches: one join
is a closure.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Parts, merge_parts
from windowing.columns import END, FIRST, LAST, START, TOUCHED, Names
from windowing.panes.frame import number_chains
from windowing.windows.keyed_rows import keep_matching, order_rows

_CHAIN = "__chain"


def sessions_touched(
    stored: DataFrame, fragments: DataFrame, keys: Names, gap_us: int
) -> DataFrame:
    """The stored sessions that a fragment extends, joins or lies in.

    Touching (distance == gap) counts.

    stored[keys, window_start, window_end, ...] x fragments[keys, first_event, last_event]
    -> rows of `stored`, each once.
    """
    session_start = F.col(f"l.{START}")
    session_end = F.col(f"l.{END}")
    first_event = F.col(f"r.{FIRST}")
    last_event = F.col(f"r.{LAST}")
    ends_after = session_end >= first_event
    begins_before = session_start <= shift_moment(last_event, gap_us)
    spans = fragments.select(*keys, FIRST, LAST)
    return keep_matching(stored, spans, keys, ends_after & begins_before)


def fragments_of_sessions(fragments: DataFrame, sessions: DataFrame, keys: Names) -> DataFrame:
    """The stored fragments that lie inside one of `sessions`.

    fragments[...] x sessions[keys, window_start, last_event] -> fragments[...].
    """
    first_event = F.col(f"l.{FIRST}")
    last_event = F.col(f"l.{LAST}")
    begins_inside = first_event >= F.col(f"r.{START}")
    ends_inside = last_event <= F.col(f"r.{LAST}")
    spans = sessions.select(*keys, START, LAST)
    return keep_matching(fragments, spans, keys, begins_inside & ends_inside)


def merge_sessions(fragments: DataFrame, keys: Names, gap_us: int, kept: Parts) -> DataFrame:
    """The maximal chains of `fragments`, whose order and overlaps don't matter.

    fragments[keys, first_event, last_event, rows, parts, touched]
    -> [keys, window_start, window_end, last_event, rows, parts, touched].
    """
    start = F.min(FIRST).alias(START)
    last = F.max(LAST).alias("__last")
    touched = F.max(TOUCHED).alias(TOUCHED)
    chains = add_chains(fragments, keys, gap_us).groupBy(*keys, _CHAIN)
    merged = chains.agg(start, last, *merge_parts(kept), touched).drop(_CHAIN)
    ended = merged.withColumn(END, shift_moment(F.col("__last"), gap_us))
    return ended.withColumnRenamed("__last", LAST)


def add_chains(spans: DataFrame, keys: Names, gap_us: int) -> DataFrame:
    """Adds `__chain`: the same number for the spans of a key that belong to one chain.

    spans[keys, first_event, last_event, ...] -> spans + [__chain].
    """
    in_order = order_rows(keys, FIRST, LAST)
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    last_before = F.max(LAST).over(before)
    is_apart = F.col(FIRST) > shift_moment(last_before, gap_us)
    return number_chains(spans, in_order, is_apart)


def shift_moment(moment: Column, us: int) -> Column:
    """`moment` plus `us` microseconds."""
    moment_us = F.unix_micros(moment)
    return F.timestamp_micros(moment_us + us)
