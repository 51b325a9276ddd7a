"""What an output has to be, as values: the names of its columns and the arithmetic its rows follow, for every kind of window.

window, key -> Law -> breaches(frame, law) (breaches.py): name of a rule -> rows that break it
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from windowing.columns import END, INDEX, LAST, REVISION, RUN, START
from windowing.grid.rule import Grid
from windowing.spec.kinds import (
    Aggregate,
    CappedSession,
    Count,
    Cumulate,
    Delta,
    Global,
    Punctuation,
    RecordSliding,
    Session,
    Sliding,
    Tumbling,
    Window,
)

_LISTS = ("key", "aggregates", "counts", "totals")


@dataclass(frozen=True)
class Law:
    """The names and the arithmetic of one output.

    `counts` are never below zero, `totals` add up to the accepted events. Windows on a grid have a `grid` (`size_us` if they last longer
    or shorter than its steps), sessions a `gap_us` (`longest_us` if they are cut), windows in event order are `indexed` (`apart` if no
    two hold the same event); a global window has none of these.
    """

    key: tuple[str, ...]
    aggregates: tuple[str, ...]
    counts: tuple[str, ...] = ()
    totals: tuple[str, ...] = ()
    grid: Grid | None = None
    size_us: int | None = None
    gap_us: int | None = None
    longest_us: int | None = None
    indexed: bool = False
    apart: bool = False

    @property
    def bounded(self) -> bool:
        """Whether windows begin and end; global ones don't."""
        return self.grid is not None or self.sequential

    @property
    def sequential(self) -> bool:
        """Whether a window's place depends on the one before it."""
        return self.indexed or self.gap_us is not None

    @property
    def bounds(self) -> tuple[str, ...]:
        """The columns that say which window a row is."""
        if self.indexed:
            return START, END, INDEX
        return (START, END) if self.gap_us is None else (START, END, LAST)

    @property
    def filled(self) -> tuple[str, ...]:
        """The columns that are never NULL."""
        return (*self.key, *self.bounds) if self.bounded else self.key

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns no two rows share."""
        if self.indexed:
            return (*self.key, INDEX)
        if self.gap_us is not None:
            return (*self.key, START)
        return (*self.key, START, END) if self.bounded else self.key

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column the output has to have."""
        return (*self.key, *self.bounds, *self.aggregates, REVISION, RUN)

    def as_mapping(self) -> dict[str, Any]:
        """The law as JSON can hold it."""
        return asdict(self)


def law_of(window: Window, key: tuple[str, ...]) -> Law:
    """The law of the outputs of `window`."""
    law = Law(key, tuple(a.name for a in window.aggregates), _counts(window), _totals(window))
    match window:
        case Tumbling() | Cumulate():
            return replace(law, grid=window.grid)
        case Sliding():
            return replace(law, grid=window.grid, size_us=window.size_us)
        case RecordSliding():
            return replace(
                law, grid=Grid(window.tick_us), size_us=window.difference_us + window.tick_us
            )
        case Session():
            return replace(law, gap_us=window.gap_us)
        case CappedSession():
            return replace(law, gap_us=window.gap_us, longest_us=window.longest_us)
        case Count():
            return replace(law, indexed=True, apart=window.every >= window.count)
        case Delta() | Punctuation():
            return replace(law, indexed=True, apart=True)
        case Global():
            return law


def law_from(mapping: Mapping[str, Any]) -> Law:
    """The law that `as_mapping` wrote."""
    lists = {name: tuple(mapping[name]) for name in _LISTS}
    return Law(**{**mapping, **lists, "grid": mapping["grid"] and Grid(**mapping["grid"])})


def missing(law: Law, names: list[str]) -> list[str]:
    """The columns the law asks for that aren't among `names`."""
    return [column for column in law.columns if column not in names]


def _counts(window: Window) -> tuple[str, ...]:
    return tuple(a.name for a in window.aggregates if a.function in ("count", "count_if"))


def _totals(window: Window) -> tuple[str, ...]:
    """Only where every event is in exactly one window and every window that has an event is shown."""
    whole = isinstance(window, Tumbling) and window.shown.whole
    return tuple(a.name for a in window.aggregates if _counts_all(a)) if whole else ()


def _counts_all(aggregate: Aggregate) -> bool:
    return aggregate.function == "count" and aggregate.column is None and aggregate.where is None
