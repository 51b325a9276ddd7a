"""Merges the panes of the windows at whose numbers a pane enters or leaves.

window numbers              0    1    2    3    4    5
pane A counts in 0..3       A    A    A    A
pane B counts in 2..4                 B    B    B
points                      *         *         *    *
stretches                  0..1: A   2..3: AB   4: B
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Part
from windowing.columns import FROM, HIGH, LOW, TO
from windowing.grid.frame import div
from windowing.windows.keyed_rows import order_rows
from windowing.windows.merging import merge_groups

_BLOCK = "__in"


def merge_by_point(
    panes: DataFrame, keys: Sequence[str], kept: Sequence[Part], wide: int
) -> DataFrame:
    """For parts that can't be subtracted, in windows that are emitted where they change.

    Points and panes are joined by blocks of `wide` numbers, because a pane lies in two of those at
    most. panes[keys, __low, __high, parts, touched] -> [keys, from, to, parts, touched].
    """
    enters = panes.select(*keys, F.col(LOW).alias(FROM))
    leaves = panes.select(*keys, (F.col(HIGH) + 1).alias(FROM))
    points = enters.unionByName(leaves).distinct()
    next_point = F.lead(FROM).over(order_rows(keys, FROM))
    stretches = points.withColumn(TO, next_point - 1)
    placed_stretches = stretches.withColumn(_BLOCK, div(F.col(FROM), wide))
    blocks = F.sequence(div(F.col(LOW), wide), div(F.col(HIGH), wide))
    placed_panes = panes.withColumn(_BLOCK, F.explode(blocks))
    pairs = placed_stretches.join(placed_panes, [*keys, _BLOCK])
    contained = pairs.where(F.col(FROM).between(F.col(LOW), F.col(HIGH)))
    return merge_groups(contained, [*keys, FROM, TO], kept)
