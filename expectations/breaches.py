"""How many rows of an output break each rule of its law, as Spark columns.

law -> rules(law): name -> what must be true of a row -> breaches(frame, law): name -> rows that break it
"""

from collections.abc import Iterable
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window as Over

from expectations.boundaries import is_plain, off_grid, on_grid
from expectations.law import Law
from windowing.columns import END, INDEX, LAST, START
from windowing.grid.frame import index as frame_index

Breaches = dict[str, int]
_MARK, _PREVIOUS = "mark.", "previous."


def breaches(frame: DataFrame, law: Law) -> Breaches:
    """How many rows of the output `frame` break each rule; `rows`, and `total.{name}` for each of `law.totals`, come with it.

    `frame` has all of `law.columns`. One pass over it; a second one if the grid is no plain arithmetic.
    """
    marks = {name: F.when(good, F.lit(0)).otherwise(F.lit(1)) for name, good in rules(law).items()}
    marks |= {f"total.{name}": F.col(_quoted(name)) for name in law.totals}
    before = _with_previous(frame, law) if law.sequential else frame
    marked = before.select(
        *map(_quoted, law.identity), *(mark.alias(_MARK + name) for name, mark in marks.items())
    )
    sums = [F.sum(_quoted(_MARK + name)).alias(_MARK + name) for name in marks]
    row = (
        marked.agg(_rows(), *sums) if law.sequential else _by_identity(marked, law, sums)
    ).collect()[0]
    found = {name.removeprefix(_MARK): int(value or 0) for name, value in row.asDict().items()}
    return (
        found
        if law.grid is None or "grid" in found
        else found | {"grid": off_grid(frame, law.grid, law.size_us)}
    )


def rules(law: Law) -> dict[str, Column]:
    """Name -> what must be true of a row; NULL is not true. `grid` is among them if the grid is plain arithmetic.

    Sequential windows are judged beside the row before (`_with_previous`). What is said of two neighbours holds as well where rows
    between them are not shown.
    """
    start, end = F.unix_micros(START), F.unix_micros(END)
    found = {"null": _all(F.col(_quoted(c)).isNotNull() for c in law.filled)}
    found |= {"negative": _all(F.col(_quoted(c)) >= 0 for c in law.counts)} if law.counts else {}
    if not law.bounded:
        return found | {"endless": F.col(START).isNull() & F.col(END).isNull()}
    found["order"] = start < end
    if law.grid is not None and is_plain(law.grid):
        found["grid"] = on_grid(
            start, end, lambda grid, t: frame_index(grid, t, 0, 0), law.grid, law.size_us
        )
    if law.indexed:
        return found | _in_turn(law, start, end)
    return found if law.gap_us is None else found | _chain(law.gap_us, law.longest_us, start, end)


def _chain(gap_us: int, longest_us: int | None, start: Column, end: Column) -> dict[str, Column]:
    """Sessions: a new one begins beyond the gap, or where the one before was cut."""
    last, first = F.unix_micros(LAST), _previous(START).isNull()
    begins, reach = start > F.unix_micros(_previous(LAST)) + gap_us, last + gap_us
    inside = last >= start
    if longest_us is not None:
        begins = begins | (start >= F.unix_micros(_previous(START)) + longest_us)
        reach = F.least(reach, start + longest_us)
        inside = inside & (last < start + longest_us)
    return {
        "end": (end == reach) & inside,
        "overlap": first | begins,
        "twice": first | (_previous(START) != F.col(START)),
    }


def _in_turn(law: Law, start: Column, end: Column) -> dict[str, Column]:
    """Windows in event order: the last event of one and the first of the next may share an instant, the end being 1 microsecond later."""
    before_start, before_end, first = (
        F.unix_micros(_previous(START)),
        F.unix_micros(_previous(END)),
        _previous(INDEX).isNull(),
    )
    follows = (
        start >= before_end - 1 if law.apart else (start >= before_start) & (end >= before_end)
    )
    return {
        "index": F.col(INDEX) >= 0,
        "sequence": first | follows,
        "twice": first | (_previous(INDEX) != F.col(INDEX)),
    }


def _with_previous(frame: DataFrame, law: Law) -> DataFrame:
    """Adds the bounds of the key's row before."""
    order = (INDEX, START, END) if law.indexed else (START, LAST)
    over = Over.partitionBy(*map(_quoted, law.key)).orderBy(*order)
    return frame.withColumns({_PREVIOUS + bound: F.lag(bound).over(over) for bound in law.bounds})


def _previous(bound: str) -> Column:
    return F.col(_quoted(_PREVIOUS + bound))


def _by_identity(marked: DataFrame, law: Law, sums: list[Column]) -> DataFrame:
    """One row, by way of one row per identity, so that identities that occur twice show without sorting."""
    groups = marked.groupBy(*map(_quoted, law.identity)).agg(_rows(), *sums)
    twice = F.sum(F.col(_quoted(_MARK + "rows")) - 1).alias(_MARK + "twice")
    return groups.agg(F.sum(_quoted(_MARK + "rows")).alias(_MARK + "rows"), twice, *sums)


def _rows() -> Column:
    return F.count(F.lit(1)).alias(_MARK + "rows")


def _all(conditions: Iterable[Column]) -> Column:
    return reduce(and_, conditions)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
