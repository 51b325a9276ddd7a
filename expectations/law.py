"""What must hold of every output of a kind, as Spark columns.

window, key -> Law -> rules(law): name -> what must be true of a row -> breaches(frame, law): name -> rows that break it
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window as Over

from expectations.boundaries import is_plain, off_grid, on_grid
from windowing.grid.frame import index as frame_index
from windowing.grid.rule import Grid
from windowing.spec.pipeline import Session, Sliding, Window

Breaches = dict[str, int]
_MARK, _PREVIOUS_START, _PREVIOUS_LAST = "mark.", "previous.start", "previous.last"


@dataclass(frozen=True)
class Law:
    """The names and the arithmetic of one output; `grid` for windows on a grid, `size_us` if they slide, `gap_us` for sessions."""

    key: tuple[str, ...]
    aggregates: tuple[str, ...]
    counts: tuple[str, ...]
    grid: Grid | None = None
    size_us: int | None = None
    gap_us: int | None = None

    @property
    def bounds(self) -> tuple[str, ...]:
        """The columns that say where a window lies."""
        return ("window_start", "window_end") if self.gap_us is None else ("window_start", "window_end", "last_event")

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns no two rows share."""
        return (*self.key, "window_start") if self.gap_us is not None else (*self.key, "window_start", "window_end")

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column the output has to have."""
        return (*self.key, *self.bounds, *self.aggregates, "revision", "run")

    def as_mapping(self) -> dict[str, Any]:
        """The law as JSON can hold it."""
        return asdict(self)


def law_of(window: Window, key: tuple[str, ...]) -> Law:
    """The law of the outputs of `window`."""
    names = tuple(a.name for a in window.aggregates)
    counts = tuple(a.name for a in window.aggregates if a.function == "count")
    if isinstance(window, Session):
        return Law(key, names, counts, gap_us=window.gap_us)
    return Law(key, names, counts, window.grid, window.size_us if isinstance(window, Sliding) else None)


def law_from(mapping: Mapping[str, Any]) -> Law:
    """The law that `as_mapping` wrote."""
    grid = mapping["grid"] and Grid(**mapping["grid"])
    lists = {name: tuple(mapping[name]) for name in ("key", "aggregates", "counts")}
    return Law(**lists, grid=grid, size_us=mapping["size_us"], gap_us=mapping["gap_us"])


def missing(law: Law, names: list[str]) -> list[str]:
    """The columns the law asks for that aren't among `names`."""
    return [column for column in law.columns if column not in names]


def breaches(frame: DataFrame, law: Law) -> Breaches:
    """How many rows of the output `frame` break each rule; `rows`, and `total.{count}` for each count, come with it.

    `frame` has all of `law.columns`. One pass over it; a second one if the grid is no plain arithmetic.
    """
    marks = {name: F.when(good, F.lit(0)).otherwise(F.lit(1)) for name, good in rules(law).items()}
    marks |= {f"total.{name}": F.col(_quoted(name)) for name in law.counts}
    before = frame if law.gap_us is None else _with_previous(frame, law)
    marked = before.select(*map(_quoted, law.identity), *(mark.alias(_MARK + name) for name, mark in marks.items()))
    sums = [F.sum(_quoted(_MARK + name)).alias(_MARK + name) for name in marks]
    row = (_by_identity(marked, law, sums) if law.gap_us is None else marked.agg(_rows(), *sums)).collect()[0]
    found = {name.removeprefix(_MARK): int(value or 0) for name, value in row.asDict().items()}
    return found if law.grid is None or "grid" in found else found | {"grid": off_grid(frame, law.grid, law.size_us)}


def rules(law: Law) -> dict[str, Column]:
    """Name -> what must be true of a row; NULL is not true. `grid` is among them if the grid is plain arithmetic."""
    start, end = F.unix_micros("window_start"), F.unix_micros("window_end")
    found = {"null": _all(F.col(_quoted(c)).isNotNull() for c in (*law.key, *law.bounds)), "order": start < end}
    if law.counts:
        found["negative"] = _all(F.col(_quoted(c)) >= 0 for c in law.counts)
    if law.grid is not None and is_plain(law.grid):
        found["grid"] = on_grid(start, end, lambda grid, t: frame_index(grid, t, 0, 0), law.grid, law.size_us)
    return found if law.gap_us is None else found | _chain(law.gap_us, start, end)


def _chain(gap_us: int, start: Column, end: Column) -> dict[str, Column]:
    last, first = F.unix_micros("last_event"), F.col(_quoted(_PREVIOUS_START)).isNull()
    return {
        "end": (end == last + gap_us) & (last >= start),
        "overlap": first | (start > F.unix_micros(F.col(_quoted(_PREVIOUS_LAST))) + gap_us),
        "twice": first | (F.col(_quoted(_PREVIOUS_START)) != F.col("window_start")),
    }


def _with_previous(frame: DataFrame, law: Law) -> DataFrame:
    over = Over.partitionBy(*map(_quoted, law.key)).orderBy("window_start", "last_event")
    return frame.withColumns({_PREVIOUS_START: F.lag("window_start").over(over), _PREVIOUS_LAST: F.lag("last_event").over(over)})


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
