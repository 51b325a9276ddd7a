"""The windows at which the value of a key may change, for `emit: changes`.

    stretches[key, from, to, parts] -> points[key, group, start, end, parts, before]

Of windows 2..4 that contain the same panes, and 8..9 that contain others:

    window numbers    1    2    3    4    5    6    7    8    9    10
    points            b    *              -              *         -

A `*` begins a stretch, `-` is the window without parts after it, and `b` stands for what was before
the first window.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Parts, name_parts
from windowing.columns import FROM, TO, Names
from windowing.grid.frame import div
from windowing.grid.range import Range
from windowing.grid.zone import longest_jump_us
from windowing.spec.kinds import Aligned, Cumulate
from windowing.windows.aligned import bound_lasting_windows, bound_windows
from windowing.windows.keyed_rows import find_next_number, list_numbers

BEFORE, GROUP = "__before", "__group"
"""True for points that stand for what was before a key's first window; the group to compare in."""
_FOLLOWS = "__follows"


def list_points(
    stretches: DataFrame,
    window: Aligned,
    keys: Names,
    kept: Parts,
    within: Range,
) -> DataFrame:
    """Every window at which the value may differ from the one before.

    [keys, from, to, parts] -> [keys, group, bounds, parts, __before].

    - The first window of each stretch.
    - Where no stretch follows directly, the window after it, without parts. Not for cumulate, which
      begins with nothing in each period.
    - Marked `__before`: a window without parts, for what was before the first window of a group.
    """
    grouped = stretches.withColumn(GROUP, _find_group(window).cast("bigint"))
    number = [*keys, GROUP, FROM]
    begins = grouped.select(*number, *name_parts(kept))
    nothing = []
    for part in kept:
        no_value = F.lit(None).cast(begins.schema[part.name].dataType)
        nothing.append(no_value.alias(part.name))
    before_first = (F.min(FROM) - 1).alias(FROM)
    groups = grouped.groupBy(*keys, GROUP)
    before = groups.agg(before_first).select(*number, *nothing)
    if not isinstance(window, Cumulate):
        after = _list_windows_after(grouped, window, keys, within)
        begins = begins.unionByName(after.select(*number, *nothing))
    bounded = bound_lasting_windows(begins, [window], within)
    bounded_before = bound_windows(before, [window], within)
    found = bounded.withColumn(BEFORE, F.lit(False))
    marked = bounded_before.withColumn(BEFORE, F.lit(True))
    return found.unionByName(marked)


def _find_group(window: Aligned) -> Column:
    """What windows are compared within: all of a key, or for cumulate those of one period."""
    if isinstance(window, Cumulate):
        return div(F.col(FROM) - 1, window.grid.per)
    return F.lit(0)


def _list_windows_after(
    grouped: DataFrame, window: Aligned, keys: Names, within: Range
) -> DataFrame:
    """The window right after each stretch that no other follows directly: [keys, group, from].

    It is more than one where a zone's clock may have jumped over it: those of no length are left
    out later.
    """
    next_stretch = find_next_number([*keys, GROUP])
    longest_jump = longest_jump_us(window.grid.zone, within.low_us, within.high_us)
    skipped = longest_jump // window.grid.step_us
    follows = F.col(_FOLLOWS)
    first = F.col(TO) + 1
    last_skipped = first + skipped
    last = F.least(last_skipped, follows - 1)
    is_last_of_key = follows.isNull()
    has_gap_after = follows > first
    with_next = grouped.withColumn(_FOLLOWS, next_stretch)
    alone = with_next.where(is_last_of_key | has_gap_after)
    numbers = list_numbers(first, last).alias(FROM)
    return alone.select(*keys, GROUP, numbers)
