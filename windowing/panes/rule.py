"""Which panes a pipeline keeps. No Spark.

The cuts of its grid windows are gathered into as few families as stay cheap. A pane is the range
from one cut to the next. The cuts of a family are every boundary at which one of its windows begins
or ends. So a pane lies wholly inside or outside each window, and an event touches exactly one pane.
Source of the idea: stream slicing (Cutty, Scotty).
"""

from dataclasses import dataclass
from math import gcd

from windowing.grid.rule import Grid, boundary, index
from windowing.spec.duration import DAY, HOUR, MINUTE, SECOND
from windowing.spec.kinds import Aggregate, Aligned, Global, Session, Sliding, Tumbling, Window
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
    groups: list[list[Aligned]] = []
    for window in sorted(pipeline.aligned, key=lambda w: (_finest(w), w.name)):
        home = next(
            (
                g
                for g in groups
                if _finest(window) == _finest(g[0]) or _span(window) <= CHEAP * _finest(g[0])
            ),
            None,
        )
        if home is None:
            groups.append([window])
        else:
            home.append(window)
    found = [
        Family(
            f"_panes_{_label(_finest(g[0]))}",
            _needed([c for w in g for c in pane_grids(w)]),
            tuple(g),
        )
        for g in groups
    ]
    endless = tuple(w for w in pipeline.windows if isinstance(w, Global))
    return (*found, *([Family("_panes_global", (Grid(0, 1),), endless)] if endless else []))


def pane_grids(window: Aligned) -> tuple[Grid, ...]:
    """The grids at whose boundaries `window` begins or ends."""
    if not isinstance(window, Sliding):
        return (window.grid.plain,)
    end = window.size_us % window.grid.step_us
    begins = window.grid
    return (
        (begins,)
        if not end
        else (begins, Grid(begins.step_us, 0, begins.origin_us + end, begins.zone))
    )


def pane_start(family: Family, t_us: int) -> int:
    """The last cut at or before the instant `t_us`."""
    return max(boundary(g, index(g, t_us)) for g in family.cuts)


def pane_end(family: Family, t_us: int) -> int:
    """The first cut after the instant `t_us`."""
    return min(boundary(g, index(g, t_us) + 1) for g in family.cuts)


@dataclass(frozen=True)
class Shape:
    """A window in steps of one grid: window j covers steps [j * slide, j * slide + size)."""

    grid: Grid
    size: int
    slide: int


def grid_shape(window: Tumbling | Sliding) -> Shape:
    """`window` on the coarsest grid that has all its boundaries."""
    if isinstance(window, Tumbling):
        return Shape(window.grid, 1, 1)
    step = gcd(window.size_us, window.grid.step_us)
    return Shape(
        Grid(step, 0, window.grid.origin_us, window.grid.zone),
        window.size_us // step,
        window.grid.step_us // step,
    )


def longest_span(window: Aligned) -> int:
    """An upper bound of the window's length in microseconds, clock jumps included."""
    return _span(window) + 2 * DAY if window.grid.zone or window.grid.months else _span(window)


def _span(window: Aligned) -> int:
    if isinstance(window, Sliding):
        return window.size_us
    return window.grid.step_us or window.grid.months * 31 * DAY


def _finest(window: Aligned) -> int:
    grid = window.grid.plain
    return grid.inner_us or grid.inner_months * _MONTH_US or grid.step_us or grid.months * _MONTH_US


def _needed(grids: list[Grid]) -> tuple[Grid, ...]:
    """`grids` without those whose every boundary another one has too."""
    once = list(dict.fromkeys(grids))
    return tuple(g for g in once if not any(other != g and _refines(other, g) for other in once))


def _refines(fine: Grid, coarse: Grid) -> bool:
    if fine.per > 1 or coarse.per > 1:
        return fine.periods == coarse
    if (
        fine.zone != coarse.zone
        or not fine.step_us
        or not coarse.step_us
        or coarse.step_us % fine.step_us
    ):
        return False
    same = coarse.step_us == fine.step_us
    return (coarse.origin_us - fine.origin_us) % fine.step_us == 0 and (
        not same or fine.origin_us < coarse.origin_us
    )


def _label(us: int) -> str:
    if us % _MONTH_US == 0 and us >= _MONTH_US:
        return f"{us // _MONTH_US}mo"
    for unit, letter in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (1_000, "ms")):
        if us % unit == 0:
            return f"{us // unit}{letter}"
    return f"{us}us"


def state_names(pipeline: Pipeline) -> dict[str, tuple[str, ...]]:
    """The name of every state table, and the windows that are computed from it."""
    panes = {f.table: tuple(w.name for w in f.windows) for f in pane_families(pipeline)}
    fragments = {fragments_table(s): (s.name,) for s in pipeline.sessions}
    events = {EVENTS: tuple(w.name for w in pipeline.ordered)} if pipeline.ordered else {}
    seen = {SEEN: tuple(w.name for w in pipeline.windows)} if pipeline.source.event_id else {}
    return panes | fragments | events | seen


def state_of(pipeline: Pipeline, window: Window) -> str:
    """The name of the state table that `window` is computed from."""
    return next(table for table, windows in state_names(pipeline).items() if window.name in windows)


def fragments_table(session: Session) -> str:
    """The name of the state table of a session window."""
    return f"_fragments_{session.name}"
