"""Windows and aggregates as frozen values, one class for each kind.

`_us` is whole microseconds. Every window is half-open, [start, end).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from windowing.grid.rule import Grid


@dataclass(frozen=True)
class Expression:
    """A checked expression.

    `sql` is its canonical text, `columns` are the columns it names, in order of appearance.
    """

    sql: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Aggregate:
    """One output column: `function(column, by, argument)` of the events with `where`.

    Examples are quantile(delay, 0.95) and max_by(gate, delay).
    """

    name: str
    function: str
    column: str | None = None
    argument: float | None = None
    by: str | None = None
    where: Expression | None = None

    def __str__(self) -> str:
        parts = [self.column, self.by, None if self.argument is None else f"{self.argument:g}"]
        call = f"{self.function}({', '.join(p for p in parts if p)})"
        return f"{call} where {self.where.sql}" if self.where else call


@dataclass(frozen=True)
class Having:
    """Shows only windows whose `aggregate` compares so with `number`, as in flights >= 3.

    `number` is a decimal as text.
    """

    aggregate: str
    operator: str
    number: str


ON_CHANGE, ON_CLOSE, CHANGES = "on_change", "on_close", "changes"


@dataclass(frozen=True)
class OutputPolicy:
    """Which windows are rows of the output; empty ones are not if `empty_limit` is None."""

    emit: str = ON_CHANGE
    having: Having | None = None
    empty_limit: int | None = None
    change_feed: bool = True

    @property
    def whole(self) -> bool:
        """Whether the output holds every window that has an event."""
        return self.emit == ON_CHANGE and self.having is None


@dataclass(frozen=True)
class Tumbling:
    """Windows [boundary k, boundary k+1) of `grid`."""

    name: str
    grid: Grid
    aggregates: tuple[Aggregate, ...]
    shown: OutputPolicy = OutputPolicy()


@dataclass(frozen=True)
class Sliding:
    """Windows that begin at every boundary of `grid` and last `size_us` on the same clock.

    The grid's step is the slide.
    """

    name: str
    grid: Grid
    size_us: int
    aggregates: tuple[Aggregate, ...]
    shown: OutputPolicy = OutputPolicy()


@dataclass(frozen=True)
class Cumulate:
    """Windows from the beginning of each period of `grid` to each of its inner boundaries.

    The last window of a period ends with it.
    """

    name: str
    grid: Grid
    aggregates: tuple[Aggregate, ...]
    shown: OutputPolicy = OutputPolicy()


@dataclass(frozen=True)
class Global:
    """One window for each key, for all time."""

    name: str
    aggregates: tuple[Aggregate, ...]
    shown: OutputPolicy = OutputPolicy()


@dataclass(frozen=True)
class Session:
    """Maximal chains of a key's events with neighbours at most `gap_us` apart.

    The window is [first, last + gap).
    """

    name: str
    gap_us: int
    aggregates: tuple[Aggregate, ...]
    shown: OutputPolicy = OutputPolicy()


@dataclass(frozen=True)
class CappedSession:
    """Sessions cut from their first event on.

    An event at or after start + `longest_us` begins the next one.
    """

    name: str
    gap_us: int
    longest_us: int
    aggregates: tuple[Aggregate, ...]
    shown: OutputPolicy = OutputPolicy()


@dataclass(frozen=True)
class RecordSliding:
    """The windows [t - difference, t] and [t + tick, t + tick + difference], both ends included.

    There are two for every distinct t, which is an event time floored to the tick.
    """

    name: str
    difference_us: int
    tick_us: int
    aggregates: tuple[Aggregate, ...]
    shown: OutputPolicy = OutputPolicy()


@dataclass(frozen=True)
class Count:
    """In event order, the i-th window holds events [i * every, i * every + count) of a key."""

    name: str
    count: int
    every: int
    aggregates: tuple[Aggregate, ...]
    shown: OutputPolicy = OutputPolicy()


@dataclass(frozen=True)
class Delta:
    """In event order, an event whose attribute has grown by more than `delta` opens a window.

    Growth is measured from the first event of the window that is open.

    `delta` is a decimal as text for numbers, or `delta_us` a duration for timestamps.
    """

    name: str
    attribute: str
    delta: str | None
    delta_us: int | None
    aggregates: tuple[Aggregate, ...]
    shown: OutputPolicy = OutputPolicy()


@dataclass(frozen=True)
class Punctuation:
    """In event order, a row whose `marker` is true closes the open window and is in none."""

    name: str
    marker: str
    aggregates: tuple[Aggregate, ...]
    shown: OutputPolicy = OutputPolicy()


OnSteps = Tumbling | Sliding
"""Windows of some steps of a grid each; they can show empty windows."""
Aligned = OnSteps | Cumulate
"""Windows whose bounds are the same for every key."""
AlignedWindows = Sequence[Aligned]
"""Some of them, which are made in one pass."""
AnySession = Session | CappedSession
EventDriven = Count | Delta | Punctuation
"""Windows of events in order, which run from their first to their last event."""
OrderDependent = CappedSession | RecordSliding | EventDriven
"""Windows that are made from events, not from partial aggregates of them."""
Window = Aligned | Global | Session | OrderDependent


def zone_of(window: Window) -> str | None:
    """The zone by whose clock the days of an output are told; None is UTC.

    It is that of the grid, and other windows have none. Bounds of its rows are told by it as well.
    """
    return window.grid.zone if isinstance(window, Aligned) else None
