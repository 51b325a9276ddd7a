"""How many rows of an output break each rule of its law, as Spark columns.

law -> rules(law): rule name -> condition that every row has to meet
    -> breaches(frame, law): rule name -> number of rows that break it
"""

from collections.abc import Iterable
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window as Over

from expectations.boundaries import count_off_grid, is_plain, on_grid, select_off_grid
from expectations.law import Law
from windowing.columns import END, INDEX, LAST, START, quoted
from windowing.grid.frame import index as frame_index
from windowing.grid.range import Range
from windowing.grid.rule import Grid
from windowing.rows import column_named, is_true

Breaches = dict[str, int]
"""Rule name -> rows that break it, with `rows` and the totals of the law."""

# Helper columns have a dot in their names, which a spec refuses in names of columns, so they can't
# collide with the columns of an output.
_MARK, _PREVIOUS = "mark.", "previous."


def count_breaches(frame: DataFrame, law: Law) -> Breaches:
    """How many rows of the output `frame` break each rule of `law`.

    The result also has `rows`, the number of rows, and `total.{name}` for each of `law.totals`.
    `frame` has all of `law.columns`. It is read once, and a second time if the grid is not plain
    arithmetic (a zone or calendar months).
    """
    marks = _make_marks(law)
    judged = _with_previous(frame, law) if law.sequential else frame
    identity = [quoted(name) for name in law.identity]
    mark_columns = [mark.alias(_MARK + name) for name, mark in marks.items()]
    marked = judged.select(*identity, *mark_columns)
    sums = [F.sum(quoted(_MARK + name)).alias(_MARK + name) for name in marks]
    if law.sequential:
        # The rules of sequential windows find duplicates themselves, by comparing neighbours.
        summed = marked.agg(_row_count(), *sums)
    else:
        summed = _sum_by_identity(marked, law, sums)
    found = {}
    for name, value in summed.collect()[0].asDict().items():
        # A sum over no rows is NULL.
        found[name.removeprefix(_MARK)] = int(value or 0)
    if law.grid is not None and "grid" not in found:
        found["grid"] = count_off_grid(frame, law.grid, law.size_us)
    return found


def select_breaching(frame: DataFrame, law: Law, rule: str) -> DataFrame:
    """The rows of the output `frame` that break a rule of `law` which `count_breaches` counts.

    Of rows with the same identity all break `twice`, but for the first where windows follow each
    other. KeyError for what no single row breaks.
    """
    condition = rules_of_law(law).get(rule)
    if condition is not None:
        judged = _with_previous(frame, law) if law.sequential else frame
        breaks = ~is_true(condition)
        return judged.where(breaks).select(*map(quoted, frame.columns))
    if rule == "twice":
        same = Over.partitionBy(*map(quoted, law.identity))
        counted = frame.withColumn(_MARK, F.count(F.lit(1)).over(same))
        return counted.where(column_named(_MARK) > 1).drop(_MARK)
    if rule == "grid" and law.grid is not None:
        return select_off_grid(frame, law.grid, law.size_us)
    raise KeyError(rule)


def _make_marks(law: Law) -> dict[str, Column]:
    """What is summed over all rows: 1 for each rule that a row breaks, and the totals of `law`."""
    marks: dict[str, Column] = {}
    for name, condition in rules_of_law(law).items():
        # NULL is not true, so it counts as a breach.
        marks[name] = F.when(condition, F.lit(0)).otherwise(F.lit(1))
    for name in law.totals:
        marks[f"total.{name}"] = column_named(name)
    return marks


def rules_of_law(law: Law) -> dict[str, Column]:
    """Rule name -> the condition that every row of the output has to meet; NULL is not true.

    `grid` is one of the rules if the grid is plain arithmetic. Rows of sequential windows are
    compared with the row before, whose bounds `_with_previous` adds. Those rules also hold for two
    neighbouring rows if the output doesn't show the windows between them.
    """
    start, end = F.unix_micros(START), F.unix_micros(END)
    found = {"null": _combine_all(column_named(name).isNotNull() for name in law.filled)}
    if law.counts:
        found["negative"] = _combine_all(column_named(name) >= 0 for name in law.counts)
    if not law.bounded:
        found["endless"] = F.col(START).isNull() & F.col(END).isNull()
        return found
    found["order"] = start < end
    if law.grid is not None and is_plain(law.grid):
        found["grid"] = on_grid(start, end, _plain_index, law.grid, law.size_us)
    if law.indexed:
        found |= _ordered_rules(law, start, end)
    elif law.gap_us is not None:
        found |= _session_rules(law.gap_us, law.longest_us, start, end)
    return found


def _plain_index(grid: Grid, instant_us: Column) -> Column:
    """The number of the last boundary of a plain grid at or before an instant."""
    # A plain grid is one run of equal steps for all time, so the range (0, 0) is as good as any.
    return frame_index(grid, instant_us, Range(0, 0))


def _session_rules(
    gap_us: int, longest_us: int | None, start: Column, end: Column
) -> dict[str, Column]:
    """Sessions: a new one begins beyond the gap, or where the session before was cut."""
    last = F.unix_micros(LAST)
    is_first = _previous_value(START).isNull()
    begins = start > F.unix_micros(_previous_value(LAST)) + gap_us
    expected_end = last + gap_us
    is_inside = last >= start
    if longest_us is not None:
        begins = begins | (start >= F.unix_micros(_previous_value(START)) + longest_us)
        expected_end = F.least(expected_end, start + longest_us)
        is_inside = is_inside & (last < start + longest_us)
    return {
        "end": (end == expected_end) & is_inside,
        "overlap": is_first | begins,
        "twice": is_first | (_previous_value(START) != F.col(START)),
    }


def _ordered_rules(law: Law, start: Column, end: Column) -> dict[str, Column]:
    """Windows in event order: their index counts up and their bounds don't go back.

    The end of such a window is 1 microsecond after its last event. The last event of one window
    and the first of the next may share an instant, so the next may begin 1 microsecond before
    that end.
    """
    before_start = F.unix_micros(_previous_value(START))
    before_end = F.unix_micros(_previous_value(END))
    is_first = _previous_value(INDEX).isNull()
    if law.apart:
        follows = start >= before_end - 1
    else:
        follows = (start >= before_start) & (end >= before_end)
    return {
        "index": F.col(INDEX) >= 0,
        "sequence": is_first | follows,
        "twice": is_first | (_previous_value(INDEX) != F.col(INDEX)),
    }


def _with_previous(frame: DataFrame, law: Law) -> DataFrame:
    """`frame` with the bounds of the row before, which is NULL for the first row of a key."""
    order = (INDEX, START, END) if law.indexed else (START, LAST)
    over = Over.partitionBy(*map(quoted, law.key)).orderBy(*order)
    return frame.withColumns({_PREVIOUS + bound: F.lag(bound).over(over) for bound in law.bounds})


def _previous_value(bound: str) -> Column:
    return column_named(_PREVIOUS + bound)


def _sum_by_identity(marked: DataFrame, law: Law, sums: list[Column]) -> DataFrame:
    """One row with all sums and the number of rows whose identity occurred before.

    It groups by identity first, because grouping shows duplicates without sorting.
    """
    groups = marked.groupBy(*map(quoted, law.identity)).agg(_row_count(), *sums)
    rows = quoted(_MARK + "rows")
    duplicates = F.sum(F.col(rows) - 1).alias(_MARK + "twice")
    return groups.agg(F.sum(rows).alias(_MARK + "rows"), duplicates, *sums)


def _row_count() -> Column:
    return F.count(F.lit(1)).alias(_MARK + "rows")


def _combine_all(conditions: Iterable[Column]) -> Column:
    return reduce(and_, conditions)
