"""Merges the panes of the windows at whose numbers a pane enters or leaves.

window numbers              0    1    2    3    4    5
pane A counts in 0..3       A    A    A    A
pane B counts in 2..4                 B    B    B
points                      *         *         *    *
stretches                  0..1: A   2..3: AB   4: B
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Parts
from windowing.columns import FROM, HIGH, LOW, TO, Names
from windowing.grid.frame import div
from windowing.windows.keyed_rows import find_next_number
from windowing.windows.merging import merge_groups

_BLOCK = "__in"


def merge_by_point(panes: DataFrame, keys: Names, kept: Parts, wide: int) -> DataFrame:
    """For parts that can't be subtracted, in windows that are emitted where they change.

    Points and panes are joined by blocks of `wide` numbers, because a pane lies in two of those at
    most. panes[keys, __low, __high, parts, touched] -> [keys, from, to, parts, touched].
    """
    first_inside = F.col(LOW)
    first_outside = F.col(HIGH) + 1
    enters = panes.select(*keys, first_inside.alias(FROM))
    leaves = panes.select(*keys, first_outside.alias(FROM))
    points = enters.unionByName(leaves).distinct()
    stretches = points.withColumn(TO, find_next_number(keys) - 1)
    placed_stretches = stretches.withColumn(_BLOCK, div(F.col(FROM), wide))
    first_block = div(F.col(LOW), wide)
    last_block = div(F.col(HIGH), wide)
    blocks = F.sequence(first_block, last_block)
    placed_panes = panes.withColumn(_BLOCK, F.explode(blocks))
    pairs = placed_stretches.join(placed_panes, [*keys, _BLOCK])
    is_inside = F.col(FROM).between(F.col(LOW), F.col(HIGH))
    contained = pairs.where(is_inside)
    return merge_groups(contained, [*keys, FROM, TO], kept)
