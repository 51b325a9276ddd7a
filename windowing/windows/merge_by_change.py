"""Merges panes by running sums over the window numbers at which a pane enters or leaves.

    window numbers              0    1    2    3    4
    pane A counts in 0..2      +A             -A
    pane B counts in 2..3                +B        -B
    running sum                 A    A   A+B   B    none
    stretches                  0..1: A   2: A+B   3: B

There are two rows for each pane, however many windows contain it.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Parts, name_parts
from windowing.columns import FROM, HIGH, LOW, ROWS, TO, TOUCHED, Names
from windowing.windows.keyed_rows import find_next_number, up_to_row

_CHANGE, _NEXT = "__change", "__next"


def merge_by_change(panes: DataFrame, keys: Names, kept: Parts) -> DataFrame:
    """For parts that can be subtracted.

    panes[keys, __low, __high, parts, touched] -> [keys, from, to, parts, touched].
    """
    names = [*name_parts(kept), TOUCHED]
    added, subtracted = [], []
    for name in names:
        value = F.coalesce(name, F.lit(0))
        added.append(value.alias(name))
        subtracted.append((-value).alias(name))
    first_inside = F.col(LOW)
    first_outside = F.col(HIGH) + 1
    enters = F.struct(first_inside.alias(FROM), *added)
    leaves = F.struct(first_outside.alias(FROM), *subtracted)
    # In one pass; a union of both would read the panes twice.
    change = F.explode(F.array(enters, leaves)).alias(_CHANGE)
    exploded = panes.select(*keys, change)
    changes = exploded.select(*keys, f"{_CHANGE}.*")
    up_to_here = up_to_row(keys, FROM)
    sums = []
    for name in names:
        sum_up_to_here = F.sum(name).over(up_to_here)
        sums.append(sum_up_to_here.alias(name))
    next_change = find_next_number(keys).alias(_NEXT)
    summed = changes.select(*keys, FROM, *sums, next_change)
    # Several changes at one number give several rows; only the last of them has all the changes.
    has_all_changes = F.col(_NEXT) > F.col(FROM)
    has_panes = F.col(ROWS) > 0
    lasting = summed.where(has_panes & has_all_changes)
    return lasting.withColumn(TO, F.col(_NEXT) - 1).drop(_NEXT)
