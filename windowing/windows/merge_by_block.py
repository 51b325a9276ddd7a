"""Merges panes by two running merges over blocks of window numbers, one in each direction.

A block is as long as the most windows that contain a pane. So a pane ends in the block in which it
began or in the next one:

- In the block of its first window it is in every later window of the block.
- In the block of its last window it is in every earlier window of the block.
- A pane that lies inside of one block, because it was late for some windows, is merged into each of
  its windows.

In blocks of 4:

    window numbers              | 0    1    2    3  | 4    5    6    7  |
    pane A counts in 2..5                   A    A    A    A
    pane B counts in 3..6                        B    B    B    B
    from the left               |           A    AB |                   |
    from the right              |                   | AB   AB   B       |
    stretches                     2: A   3..5: AB   6: B

So a window is one merge from the left, one from the right, and the panes inside of its block. There
are two rows for each pane, however many windows contain it.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Part, Parts, name_parts
from windowing.columns import FROM, HIGH, LOW, ROWS, TO, TOUCHED, Names
from windowing.grid.frame import div
from windowing.windows.keyed_rows import find_next_number, up_to_row

_BLOCK, _CHANGE, _NEXT, _SIDE = "__in", "__change", "__next", "__side"
_OPENS, _ENDS, _ONLY = "o", "e", "w"
"""Whether a pane is in the windows from a number on, up to it, or only in that one."""
_SIDES = (_OPENS, _ENDS, _ONLY)


def merge_by_block(panes: DataFrame, keys: Names, kept: Parts, wide: int) -> DataFrame:
    """For parts that can't be subtracted, where a pane is in many windows, at most `wide`.

    panes[keys, __low, __high, parts, touched] -> [keys, from, to, parts, touched].
    """
    touched = Part(TOUCHED, F.lit(1), F.max, join=F.greatest)
    parts = [*kept, touched]
    exploded = panes.withColumn(_CHANGE, F.explode(_list_points(wide)))
    points = exploded.select(*keys, *name_parts(parts), f"{_CHANGE}.*")
    # Grouping and both running merges then need no other shuffle.
    spread = points.repartition(*keys) if keys else points.coalesce(1)
    sides = [_merge_side(part, side) for part in parts for side in _SIDES]
    grouped = spread.groupBy(*keys, FROM).agg(*sides)
    in_blocks = grouped.withColumn(_BLOCK, div(F.col(FROM), wide))
    found = [_join_sides(part, keys) for part in parts]
    next_point = find_next_number(keys).alias(_NEXT)
    joined = in_blocks.select(*keys, FROM, *found, next_point)
    # At the last point of a key its last pane ends, so no row of it is left there.
    lasting = joined.where(F.col(ROWS) > 0)
    return lasting.withColumn(TO, F.col(_NEXT) - 1).drop(_NEXT)


def _list_points(wide: int) -> Column:
    """The window numbers at which a pane is merged or left out, and how: [number, side].

    `_ENDS` is at the first window that does not contain the pane. Where that begins a block, it
    changes nothing: the pane is in all later windows of the block before, so `_OPENS` has it.
    Points without a side only begin a stretch.
    """
    low, high = F.col(LOW), F.col(HIGH)
    first_block, last_block = div(low, wide), div(high, wide)
    start_of_block = first_block * wide
    end_of_block = last_block * wide + (wide - 1)
    begins_block = low == start_of_block
    ends_block = high == end_of_block
    reaches_end = ends_block | (first_block < last_block)
    after = high + 1
    ends = _make_point(after, _ENDS)
    opened_and_ended = F.array(_make_point(low, _OPENS), ends)
    only_ended = F.array(_make_point(low, None), ends)
    numbers = F.sequence(low, high)
    inside = F.transform(numbers, lambda number: _make_point(number, _ONLY))
    after_all = F.array(_make_point(after, None))
    in_each = F.concat(inside, after_all)
    by_block = F.when(reaches_end, opened_and_ended).when(begins_block, only_ended)
    return by_block.otherwise(in_each)


def _make_point(number: Column, side: str | None) -> Column:
    typed_side = F.lit(side).cast("string")
    return F.struct(number.alias(FROM), typed_side.alias(_SIDE))


def _merge_side(part: Part, side: str) -> Column:
    """The part of the panes that a point is about in this way, for `agg`."""
    is_on_side = F.col(_SIDE) == side
    value = F.when(is_on_side, F.col(part.name))
    return part.merge(value).alias(_name_side(part, side))


def _join_sides(part: Part, keys: Names) -> Column:
    """The part of the windows that begin at a point."""
    block = [*keys, _BLOCK]
    up_to_here = up_to_row(block, FROM)
    last_first = Window.partitionBy(*block).orderBy(F.desc(FROM))
    after_here = last_first.rowsBetween(Window.unboundedPreceding, -1)
    opens, ends, only = (F.col(_name_side(part, side)) for side in _SIDES)
    opened = part.merge(opens).over(up_to_here)
    not_ended = part.merge(ends).over(after_here)
    return part.join_values([opened, not_ended, only]).alias(part.name)


def _name_side(part: Part, side: str) -> str:
    return f"{part.name}__{side}"
