"""Tumbling and sliding windows as numbers.

Window n covers the steps [n * slide, n * slide + size) of its grid.

panes[key, pane_start, parts, judged_by, touched]
    -> stretches of windows that contain the same panes[key, from, to, parts, touched]
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Part
from windowing.columns import FROM, HIGH, JUDGED, LOW, PANE, ROWS, TO, TOUCHED
from windowing.grid.frame import boundary, div, index
from windowing.panes.frame import Range
from windowing.panes.rule import Shape, grid_shape, longest_span, windows_of_pane
from windowing.spec.kinds import CHANGES, Sliding, Tumbling

_NEXT, _BLOCK, _CHANGE = "__next", "__in", "__change"
_SIDE, _OPENS, _ENDS, _ONLY = "__side", "o", "e", "w"
"""Whether a pane is in the windows from a number on, up to it, or only in that one."""
_MANY = 16
"""From so many windows for each pane on, blocks take less time than a merge for each window."""


def placed(
    panes: DataFrame, window: Tumbling | Sliding, lateness_us: int | None, within: Range
) -> DataFrame:
    """Adds the first and the last window number that each pane counts in, `__low` and `__high`.

    Panes that count in no window are left out.
    """
    form = grid_shape(window)
    step = index(form.grid, F.unix_micros(PANE), within.low_us, within.high_us)
    low = div(step + F.lit(form.slide - form.size), form.slide)
    high = div(step, form.slide)
    if lateness_us is not None:
        low = F.greatest(low, _first_open(form, lateness_us, within))
    numbered = panes.withColumn(LOW, low).withColumn(HIGH, high)
    return numbered.where(F.col(LOW) <= F.col(HIGH))


def stretches(
    placed_panes: DataFrame, window: Tumbling | Sliding, keys: Sequence[str], kept: Sequence[Part]
) -> DataFrame:
    """Stretches of windows `__from`..`__to`, both inside, that contain the same panes.

    Windows without a pane are in none.
    """
    form = grid_shape(window)
    overlapping = form.size > form.slide
    if overlapping and all(part.invertible for part in kept):
        return _merge_by_change(placed_panes, keys, kept)
    windows_per_pane = windows_of_pane(window)
    if windows_per_pane >= _MANY and all(part.join is not None for part in kept):
        return _merge_by_block(placed_panes, keys, kept, windows_per_pane)
    if window.shown.emit == CHANGES:
        return _merge_by_point(placed_panes, keys, kept, windows_per_pane)
    return _merge_by_window(placed_panes, keys, kept)


def bounds(window: Tumbling | Sliding, n: Column, within: Range) -> tuple[Column, Column]:
    """Start and end, in microseconds, of window `n`, which contains an instant of `within`."""
    form, beyond = grid_shape(window), longest_span(window)
    low, high = within.low_us - beyond, within.high_us + beyond
    first_step = n * form.slide
    start = boundary(form.grid, first_step, low, high)
    end = boundary(form.grid, first_step + form.size, low, high)
    return start, end


def repeats(window: Tumbling | Sliding, n: Column, within: Range) -> Column | None:
    """True for a window `n` whose bounds window `n` + 1 repeats; None where that can't be.

    Both bounds collapse where a zone's clock jumps over whole steps.
    """
    if window.grid.zone is None:
        return None
    start, end = bounds(window, n, within)
    next_start, next_end = bounds(window, n + 1, within)
    return (start == next_start) & (end == next_end)


def following(window: Tumbling | Sliding, t: Column, within: Range) -> Column:
    """The start, in microseconds, of the first window that begins after the instant `t`."""
    form, beyond = grid_shape(window), longest_span(window)
    low, high = within.low_us - beyond, within.high_us + beyond
    last_begun = div(index(form.grid, t, low, high), form.slide)
    return boundary(form.grid, (last_begun + 1) * form.slide, low, high)


def block(window: Tumbling | Sliding, t: Column, within: Range) -> Column:
    """The number of the block of `size` steps that contains an instant.

    Windows of one block reach no further than its two neighbours.
    """
    form = grid_shape(window)
    return div(index(form.grid, t, within.low_us, within.high_us), form.size)


def _first_open(form: Shape, lateness_us: int, within: Range) -> Column:
    """The first window that ends after judged_by - lateness; null where no window is closed.

    judged_by is null where no watermark judged the events: in a first run, or in a backfill.
    """
    low, high = F.lit(within.low_us), F.lit(within.high_us)
    closed = F.least(F.unix_micros(JUDGED) - F.lit(lateness_us), high)
    edge = index(form.grid, F.greatest(closed, low), within.low_us, within.high_us)
    passed = F.col(JUDGED).isNotNull() & (closed >= low)
    return F.when(passed, div(edge - F.lit(form.size), form.slide) + F.lit(1))


def _merge_by_window(panes: DataFrame, keys: Sequence[str], kept: Sequence[Part]) -> DataFrame:
    """One merge for each (pane, window).

    For windows of few panes, and for parts that can't be subtracted.
    """
    each = panes.withColumn(FROM, F.explode(F.sequence(LOW, HIGH)))
    merges = [part.merged() for part in kept]
    merged = each.groupBy(*keys, FROM).agg(*merges, F.max(TOUCHED).alias(TOUCHED))
    return merged.withColumn(TO, F.col(FROM))


def _merge_by_change(panes: DataFrame, keys: Sequence[str], kept: Sequence[Part]) -> DataFrame:
    """Running sums over the window numbers at which a pane enters or leaves.

    Two rows for each pane, however many windows contain it.
    """
    names = [*(part.name for part in kept), TOUCHED]
    values = {name: F.coalesce(F.col(name), F.lit(0)) for name in names}
    added = [value.alias(name) for name, value in values.items()]
    subtracted = [(-value).alias(name) for name, value in values.items()]
    enters = F.struct(F.col(LOW).alias(FROM), *added)
    leaves = F.struct((F.col(HIGH) + 1).alias(FROM), *subtracted)
    # In one pass; a union of both would read the panes twice.
    changes = panes.select(*keys, F.explode(F.array(enters, leaves)).alias(_CHANGE))
    changes = changes.select(*keys, f"{_CHANGE}.*")
    order = Window.partitionBy(*keys).orderBy(FROM)
    running = order.rowsBetween(Window.unboundedPreceding, 0)
    sums = [F.sum(name).over(running).alias(name) for name in names]
    following_change = F.lead(FROM).over(order).alias(_NEXT)
    summed = changes.select(*keys, FROM, *sums, following_change)
    # Several changes at one number give several rows; only the last of them has all the changes.
    lasting = summed.where((F.col(ROWS) > 0) & (F.col(_NEXT) > F.col(FROM)))
    return lasting.withColumn(TO, F.col(_NEXT) - 1).drop(_NEXT)


def _merge_by_point(
    panes: DataFrame, keys: Sequence[str], kept: Sequence[Part], wide: int
) -> DataFrame:
    """One merge for each pane and window number at which a pane enters or leaves.

    For parts that can't be subtracted, in windows that are emitted where they change. Windows and
    panes are joined by blocks of `wide` numbers, because a pane lies in two of those at most.
    """
    enters = panes.select(*keys, F.col(LOW).alias(FROM))
    leaves = panes.select(*keys, (F.col(HIGH) + 1).alias(FROM))
    edges = enters.unionByName(leaves).distinct()
    order = Window.partitionBy(*keys).orderBy(FROM)
    points = edges.withColumn(TO, F.lead(FROM).over(order) - 1)
    points = points.withColumn(_BLOCK, div(F.col(FROM), wide))
    low, high, number = F.col(LOW), F.col(HIGH), F.col(FROM)
    blocks = F.sequence(div(low, wide), div(high, wide))
    placed_panes = panes.withColumn(_BLOCK, F.explode(blocks))
    contained = (low <= number) & (number <= high)
    pairs = points.join(placed_panes, [*keys, _BLOCK]).where(contained)
    merges = [part.merged() for part in kept]
    return pairs.groupBy(*keys, FROM, TO).agg(*merges, F.max(TOUCHED).alias(TOUCHED))


def _merge_by_block(
    panes: DataFrame, keys: Sequence[str], kept: Sequence[Part], wide: int
) -> DataFrame:
    """Two running merges over blocks of `wide` window numbers, one in each direction.

    For parts that can't be subtracted. A pane is in at most `wide` windows, so it ends in the block
    in which it began or in the next one:

    - In the block of its first window it is in every later window of the block.
    - In the block of its last window it is in every earlier window of the block.
    - A pane that lies inside of one block, because it was late for some windows, is merged into
      each of its windows.

    So a window is one merge from the left, one from the right, and such panes. There are two rows
    for each pane, however many windows contain it.
    """
    parts = [*kept, Part(TOUCHED, F.lit(1), F.max, join=F.greatest)]
    points = panes.withColumn(_CHANGE, F.explode(_list_points(wide)))
    points = points.select(*keys, *(part.name for part in parts), f"{_CHANGE}.*")
    merged = []
    for part in parts:
        for side in (_OPENS, _ENDS, _ONLY):
            value = F.when(F.col(_SIDE) == side, F.col(part.name))
            merged.append(part.merge(value).alias(f"{part.name}__{side}"))
    # Grouping and both running merges then need no other shuffle.
    spread = points.repartition(*keys) if keys else points.coalesce(1)
    grouped = spread.groupBy(*keys, FROM).agg(*merged).withColumn(_BLOCK, div(F.col(FROM), wide))
    in_block = Window.partitionBy(*keys, _BLOCK)
    from_left = in_block.orderBy(FROM).rowsBetween(Window.unboundedPreceding, 0)
    from_right = in_block.orderBy(F.col(FROM).desc()).rowsBetween(Window.unboundedPreceding, -1)
    found = []
    for part in parts:
        opened = part.merge(F.col(f"{part.name}__{_OPENS}")).over(from_left)
        not_ended = part.merge(F.col(f"{part.name}__{_ENDS}")).over(from_right)
        only = F.col(f"{part.name}__{_ONLY}")
        found.append(part.join_values([opened, not_ended, only]).alias(part.name))
    following = F.lead(FROM).over(Window.partitionBy(*keys).orderBy(FROM)).alias(_NEXT)
    # At the last point of a key its last pane ends, so no row of it is left there.
    lasting = grouped.select(*keys, FROM, *found, following).where(F.col(ROWS) > 0)
    return lasting.withColumn(TO, F.col(_NEXT) - 1).drop(_NEXT)


def _list_points(wide: int) -> Column:
    """The window numbers at which a pane is merged or left out, and how: [number, side].

    `_ENDS` is at the first window that does not contain the pane. Where that begins a block, it
    changes nothing: the pane is in all later windows of the block before, so `_OPENS` has it.
    """
    low, high = F.col(LOW), F.col(HIGH)
    first_block, last_block = div(low, wide), div(high, wide)
    begins_block = low == first_block * wide
    ends_block = high == last_block * wide + (wide - 1)

    def point(number: Column, side: str | None) -> Column:
        return F.struct(number.alias(FROM), F.lit(side).cast("string").alias(_SIDE))

    ends = point(high + 1, _ENDS)
    each = F.transform(F.sequence(low, high), lambda number: point(number, _ONLY))
    return (
        F.when((first_block < last_block) | ends_block, F.array(point(low, _OPENS), ends))
        .when(begins_block, F.array(point(low, None), ends))
        .otherwise(F.concat(each, F.array(point(high + 1, None))))
    )
