"""Session windows: their bounds come from the data, and they are made from fragments.

    fragments[key, first, last, rows, parts] -> chains whose neighbours are <= gap apart
        -> sessions[key, start, end, last, rows, parts]

Stored sessions are maximal, so a fragment reaches exactly the stored sessions it touches: one join
is a closure.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Part
from windowing.columns import END, FIRST, LAST, START, TOUCHED


def sessions_touched(
    stored: DataFrame, fragments: DataFrame, keys: Sequence[str], gap_us: int
) -> DataFrame:
    """The stored sessions that a fragment extends, joins or lies in.

    Touching (distance == gap) counts.

    stored[keys, window_start, window_end, ...] x fragments[keys, first_event, last_event]
    -> rows of `stored`, each once.
    """
    spans = fragments.select(*keys, F.col(FIRST).alias("__first"), F.col(LAST).alias("__last"))
    ends_after = F.col(END) >= F.col("__first")
    begins_before = F.col(START) <= shift_moment(F.col("__last"), gap_us)
    same_key = [F.col(f"s.`{k}`") == F.col(f"f.`{k}`") for k in keys]
    near = ends_after & begins_before
    return stored.alias("s").join(spans.alias("f"), [*same_key, near], "left_semi")


def fragments_of_sessions(
    fragments: DataFrame, sessions: DataFrame, keys: Sequence[str]
) -> DataFrame:
    """The stored fragments that lie inside one of `sessions`.

    fragments[...] x sessions[keys, window_start, last_event] -> fragments[...].
    """
    spans = sessions.select(*keys, F.col(START).alias("__start"), F.col(LAST).alias("__end"))
    inside = (F.col(FIRST) >= F.col("__start")) & (F.col(LAST) <= F.col("__end"))
    same_key = [F.col(f"f.`{k}`") == F.col(f"s.`{k}`") for k in keys]
    return fragments.alias("f").join(spans.alias("s"), [*same_key, inside], "left_semi")


def windows(
    fragments: DataFrame, keys: Sequence[str], gap_us: int, kept: Sequence[Part]
) -> DataFrame:
    """The maximal chains of `fragments`, whose order and overlaps don't matter.

    fragments[keys, first_event, last_event, rows, parts, touched]
    -> [keys, window_start, window_end, last_event, rows, parts, touched].
    """
    chains = add_chains(fragments, keys, gap_us)
    bounds = [F.min(FIRST).alias(START), F.max(LAST).alias("__last")]
    merges = [part.merged() for part in kept]
    merged = chains.groupBy(*keys, "__chain").agg(*bounds, *merges, F.max(TOUCHED).alias(TOUCHED))
    ended = merged.withColumn(END, shift_moment(F.col("__last"), gap_us))
    return ended.withColumnRenamed("__last", LAST).drop("__chain")


def add_chains(spans: DataFrame, keys: Sequence[str], gap_us: int) -> DataFrame:
    """Adds `__chain`: the same number for the spans of a key that belong to one chain.

    spans[keys, first_event, last_event, ...] -> spans + [__chain].
    """
    ordered = Window.partitionBy(*keys).orderBy(FIRST, LAST)
    before = ordered.rowsBetween(Window.unboundedPreceding, -1)
    up_to_here = ordered.rowsBetween(Window.unboundedPreceding, 0)
    reach = shift_moment(F.max(LAST).over(before), gap_us)
    begins = F.coalesce(F.col(FIRST) > reach, F.lit(True)).cast("int")
    marked = spans.withColumn("__begins", begins)
    numbered = marked.withColumn("__chain", F.sum("__begins").over(up_to_here))
    return numbered.drop("__begins")


def shift_moment(moment: Column, us: int) -> Column:
    """`moment` plus `us` microseconds."""
    return F.timestamp_micros(F.unix_micros(moment) + F.lit(us))
