"""Windows each of which begins where the one before it says, found by a fold over a key's events.

values              3    4    9   10   16     more than 5 above the first opens the next window
first of window     3    3    9    9   16
opens               1    1    2    2    3
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.columns import ORDER, Names
from windowing.windows.keyed_rows import order_rows, up_to_row

OPENS = "__opens"
"""How many windows of the key have begun, up to an event."""
BLOCK = 128
LARGE_BLOCK = BLOCK * BLOCK
"""So many events are folded apart; blocks much shorter or longer take more time."""
_FIRST, _MARK, _NTH, _STARTS = "__first", "__mark", "__nth", "__starts"

Opens = Callable[[Column, Column], Column]
Step = Callable[[Column, Column], Column]
"""The state after an item of an array, from the state before it."""


def number_openings(events: DataFrame, group: Names, value: Column, opens: Opens) -> DataFrame:
    """Adds `__opens`: the number of each event's window, from 1.

    An event opens the next window where `opens(its value, the open window's first value)` is true.
    The fold makes one pass over each group's sorted values and keeps only the positions at which
    windows begin. Its time grows with the events, however many windows they make.
    """
    position = F.row_number().over(order_rows(group, ORDER))
    numbered = events.withColumns({_FIRST: value, _NTH: position.cast("bigint")})
    positions_and_values = F.collect_list(F.struct(_NTH, _FIRST))
    values = F.sort_array(positions_and_values)
    first_value = F.min_by(_FIRST, _NTH)
    first_position = F.min(_NTH)
    begun = _make_state(first_value, F.array(first_position))
    starts = _find_starts(values, begun, opens).alias(_STARTS)
    start = F.explode(_STARTS).alias(_NTH)
    mark = F.lit(1).alias(_MARK)
    starts_of_groups = numbered.groupBy(*group).agg(starts)
    marks = starts_of_groups.select(*group, start, mark)
    marked = numbered.join(marks, [*group, _NTH], "left")
    opened = F.count(_MARK).over(up_to_row(group, _NTH))
    return marked.withColumn(OPENS, opened).drop(_MARK, _NTH, _FIRST)


def _make_state(first: Column, starts: Column) -> Column:
    """The first value of the open window, and the positions at which windows began."""
    return F.struct(first.alias(_FIRST), starts.alias(_STARTS))


def _find_starts(values: Column, begun: Column, opens: Opens) -> Column:
    """The positions at which windows begin, from (position, value) of events in event order.

    Spark copies the state of a fold at every step. So events are folded in blocks, and the state
    within a block has the positions of that block alone. Blocks are folded in large blocks alike.
    """

    def fold_event(state: Column, event: Column) -> Column:
        value = event[_FIRST]
        with_event = F.concat(state[_STARTS], F.array(event[_NTH]))
        opened = _make_state(value, with_event)
        return F.when(opens(value, state[_FIRST]), opened).otherwise(state)

    def fold_block(state: Column, events: Column) -> Column:
        return _fold_apart(events, state, fold_event)

    def fold_large_block(state: Column, events: Column) -> Column:
        return _fold_apart(_cut_array(events, BLOCK), state, fold_block)

    def fold_all(state: Column, events: Column) -> Column:
        return _fold_apart(_cut_array(events, LARGE_BLOCK), state, fold_large_block)

    # As an element `values` is computed once, not once for each block.
    return F.aggregate(F.array(values), begun, fold_all)[_STARTS]


def _fold_apart(items: Column, state: Column, fold_item: Step) -> Column:
    """The state after `items`, folded from a state without the positions of earlier ones."""
    no_starts = F.array().cast("array<bigint>")

    def add_earlier(found: Column) -> Column:
        starts = F.concat(state[_STARTS], found[_STARTS])
        return _make_state(found[_FIRST], starts)

    begun = _make_state(state[_FIRST], no_starts)
    return F.aggregate(items, begun, fold_item, add_earlier)


def _cut_array(items: Column, length: int) -> Column:
    """`items` as an array of arrays of at most `length` of them."""
    step = F.lit(length)
    firsts = F.sequence(F.lit(1), F.size(items), step)
    return F.transform(firsts, lambda first: F.slice(items, first, step))
