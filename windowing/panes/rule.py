"""Which panes a pipeline keeps. No Spark.

The cuts of its grid windows are gathered into as few families as stay cheap. A pane is the range
from one cut to the next. The cuts of a family are every boundary at which one of its windows begins
or ends. So a pane lies wholly inside or outside each window, and an event touches exactly one pane.
Source of the idea: stream slicing (Cutty, Scotty).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windowing.grid.placing import OnSteps, Shape
from windowing.grid.rule import Grid, boundary, index
from windowing.grid.zone import BEGIN_US, END_US
from windowing.spec.description import describe_window, place_on_grid
from windowing.spec.duration import DAY, HOUR, MINUTE, SECOND
from windowing.spec.kinds import (
    Aggregate,
    Aligned,
    Global,
    Session,
    Window,
)
from windowing.spec.pipeline import Pipeline

CHEAP = 1_000
"""A window joins a family of finer panes if it then spans at most this many of them."""
_MONTH_US = 30 * DAY
SEEN, EVENTS = "_seen", "_events"
BACKFILLED = -1
"""The batch number of state that a backfill wrote."""
COMPACTED = -3
"""The batch number of state that maintenance merged from several rows."""
NO_BATCH = -2
"""The batch number of what reads state between batches."""


@dataclass(frozen=True)
class Family:
    """Windows that share one pane table.

    `table` is its name, and `cuts` are the grids whose boundaries cut the panes.
    """

    table: str
    cuts: tuple[Grid, ...]
    windows: tuple[Aligned | Global, ...]

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Every aggregate that some window of the family shows, each once."""
        return tuple(dict.fromkeys(a for w in self.windows for a in w.aggregates))


def pane_families(pipeline: Pipeline) -> tuple[Family, ...]:
    """The pane tables of `pipeline`, finest first.

    Global windows have a table of their own, with panes of calendar months.
    """
    families = [_family_of(group) for group in _group_by_step(pipeline.aligned)]
    endless = tuple(w for w in pipeline.windows if isinstance(w, Global))
    if endless:
        months = Grid(0, 1)
        families.append(Family("_panes_global", (months,), endless))
    return tuple(families)


def _group_by_step(windows: Sequence[Aligned]) -> list[list[Aligned]]:
    """Windows that share a pane table, finest first; the first of a group decides its panes."""
    groups: list[list[Aligned]] = []
    for window in sorted(windows, key=lambda w: (_finest_step_us(w), w.name)):
        fitting = [group for group in groups if _fits_panes_of(group[0], window)]
        if fitting:
            fitting[0].append(window)
        else:
            groups.append([window])
    return groups


def _fits_panes_of(finest: Aligned, window: Aligned) -> bool:
    """Whether `window` stays cheap when it is made of the panes of `finest`."""
    step_us = _finest_step_us(finest)
    return _finest_step_us(window) == step_us or place_on_grid(window).longest_us <= CHEAP * step_us


def _family_of(group: Sequence[Aligned]) -> Family:
    table = f"_panes_{_label(_finest_step_us(group[0]))}"
    grids = [grid for window in group for grid in pane_grids(window)]
    return Family(table, _drop_contained_grids(grids), tuple(group))


def pane_grids(window: Aligned) -> tuple[Grid, ...]:
    """The grids at whose boundaries `window` begins or ends."""
    return place_on_grid(window).cuts


def pane_start(family: Family, t_us: int) -> int:
    """The last cut at or before the instant `t_us`, or the calendar's beginning without one."""
    return max(_cut(grid, t_us, 0, BEGIN_US) for grid in family.cuts)


def pane_end(family: Family, t_us: int) -> int:
    """The first cut after the instant `t_us`, or the calendar's end without one."""
    return min(_cut(grid, t_us, 1, END_US) for grid in family.cuts)


def _cut(grid: Grid, t_us: int, after: int, beyond_us: int) -> int:
    """The boundary that lies `after` boundaries after the last one at or before `t_us`.

    It is `beyond_us` where that lies beyond the calendar.
    """
    try:
        return boundary(grid, index(grid, t_us) + after)
    except (OverflowError, IndexError):
        return beyond_us


def grid_shape(window: Aligned) -> Shape:
    """`window` on the coarsest grid that has all its boundaries; TypeError where none has a number.

    That is where windows end at boundaries of periods.
    """
    placing = place_on_grid(window)
    if isinstance(placing, OnSteps):
        return placing.shape
    raise TypeError(f"{window.name} does not lie on equal steps")


def windows_of_pane(window: Aligned) -> int:
    """In how many windows a pane is at most."""
    return place_on_grid(window).most_windows


def longest_span(window: Aligned) -> int:
    """An upper bound of the window's length in microseconds, clock jumps included."""
    follows_a_clock = window.grid.zone is not None or window.grid.months > 0
    span_us = place_on_grid(window).longest_us
    return span_us + 2 * DAY if follows_a_clock else span_us


def _finest_step_us(window: Aligned) -> int:
    """The finest step of the window's own grid; a month counts as 30 days."""
    grid = window.grid.plain
    if grid.inner_us or grid.inner_months:
        return grid.inner_us or grid.inner_months * _MONTH_US
    return grid.step_us or grid.months * _MONTH_US


def _drop_contained_grids(grids: Sequence[Grid]) -> tuple[Grid, ...]:
    """`grids` without those whose every boundary another one has too."""
    once = list(dict.fromkeys(grids))
    return tuple(grid for grid in once if not _is_contained(grid, once))


def _is_contained(grid: Grid, grids: Sequence[Grid]) -> bool:
    return any(other != grid and _has_boundaries_of(other, grid) for other in grids)


def _has_boundaries_of(fine: Grid, coarse: Grid) -> bool:
    """Whether every boundary of `coarse` is one of `fine`."""
    if fine.per > 1 or coarse.per > 1:
        return fine.periods == coarse
    if fine.zone != coarse.zone:
        return False
    # Months have no fixed length, so nothing follows from their steps.
    if not fine.step_us or not coarse.step_us or coarse.step_us % fine.step_us:
        return False
    if (coarse.origin_us - fine.origin_us) % fine.step_us:
        return False
    # Of two grids with the same boundaries the one with the earlier origin stays.
    return coarse.step_us != fine.step_us or fine.origin_us < coarse.origin_us


def _label(us: int) -> str:
    if us % _MONTH_US == 0 and us >= _MONTH_US:
        return f"{us // _MONTH_US}mo"
    for unit, letter in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (1_000, "ms")):
        if us % unit == 0:
            return f"{us // unit}{letter}"
    return f"{us}us"


def state_names(pipeline: Pipeline) -> dict[str, tuple[str, ...]]:
    """The name of every state table, and the windows that are computed from it."""
    found: dict[str, tuple[str, ...]] = {}
    for family in pane_families(pipeline):
        found[family.table] = _names_of(family.windows)
    for session in pipeline.sessions:
        found[fragments_table(session)] = (session.name,)
    if pipeline.ordered:
        found[EVENTS] = _names_of(pipeline.ordered)
    if pipeline.source.event_id:
        found[SEEN] = _names_of(pipeline.windows)
    return found


def _names_of(windows: Iterable[Window]) -> tuple[str, ...]:
    return tuple(window.name for window in windows)


def buffered_columns(pipeline: Pipeline) -> tuple[str, ...]:
    """The source columns that order-dependent windows need besides key and event time."""
    source = pipeline.source
    found: list[str | None] = []
    for window in pipeline.ordered:
        for aggregate in window.aggregates:
            found += [aggregate.column, aggregate.by]
            if aggregate.where is not None:
                found += aggregate.where.columns
        found += [column.name for column in describe_window(window).read_columns]
    found += [source.event_id, *source.order_by]
    once = dict.fromkeys(name for name in found if name is not None)
    return tuple(name for name in once if name not in source.key)


def state_of(pipeline: Pipeline, window: Window) -> str:
    """The name of the state table that `window` is computed from."""
    return next(table for table, windows in state_names(pipeline).items() if window.name in windows)


def fragments_table(session: Session) -> str:
    """The name of the state table of a session window."""
    return f"_fragments_{session.name}"
