"""A pipeline as values: what the user asked for, frozen and already lawful. `_us` is whole microseconds."""

from dataclasses import dataclass

from windowing.grid.rule import Grid

FOREVER = None
"""A duration that never ends: allowed lateness, retention."""


@dataclass(frozen=True)
class EventTime:
    """The column that says when an event happened; `unit` (s, ms, us) if it holds numbers since 1970, else None."""

    column: str
    unit: str | None = None


@dataclass(frozen=True)
class Source:
    """The Delta table events are read from; event order is (event time, `event_id`, `order_by`)."""

    table: str
    event_time: EventTime
    key: tuple[str, ...]
    zone: str | None = None
    event_id: str | None = None
    order_by: tuple[str, ...] = ()
    on_bad_value: str = "quarantine"


@dataclass(frozen=True)
class Watermark:
    """How far event time is trusted. W = highest accepted event time - `delay_us`; `allowed_lateness_us` None = forever."""

    delay_us: int
    allowed_lateness_us: int | None
    max_future_us: int
    dedupe_horizon_us: int | None = FOREVER


@dataclass(frozen=True)
class Aggregate:
    """One output column: `function(column, argument)`, e.g. quantile(delay, 0.95)."""

    name: str
    function: str
    column: str | None = None
    argument: float | None = None

    def __str__(self) -> str:
        parts = [self.column, None if self.argument is None else f"{self.argument:g}"]
        return f"{self.function}({', '.join(p for p in parts if p)})"


@dataclass(frozen=True)
class Tumbling:
    """Windows [boundary k, boundary k+1) of `grid`."""

    name: str
    grid: Grid
    aggregates: tuple[Aggregate, ...]
    change_feed: bool = True


@dataclass(frozen=True)
class Sliding:
    """Windows that begin at every boundary of `grid` (its step is the slide) and last `size_us` on the same clock."""

    name: str
    grid: Grid
    size_us: int
    aggregates: tuple[Aggregate, ...]
    change_feed: bool = True


@dataclass(frozen=True)
class Session:
    """Maximal chains of one key's events whose neighbours are at most `gap_us` apart: [first, last + gap)."""

    name: str
    gap_us: int
    aggregates: tuple[Aggregate, ...]
    change_feed: bool = True


Window = Tumbling | Sliding | Session


@dataclass(frozen=True)
class Retention:
    """How long state, refused rows and outputs are kept, in microseconds; None = forever."""

    state_us: int | None = FOREVER
    refused_us: int | None = FOREVER
    output_us: int | None = FOREVER


@dataclass(frozen=True)
class Pipeline:
    """Everything one spec says. `lake` is where its tables lie: `{lake}/{name}/{table}`."""

    name: str
    lake: str
    source: Source
    watermark: Watermark
    windows: tuple[Window, ...]
    schedule: str | None = None
    suite: str | None = None
    retention: Retention = Retention()
    file: str | None = None

    @property
    def root(self) -> str:
        """The directory or URI that holds every table of this pipeline."""
        return f"{self.lake.rstrip('/')}/{self.name}"

    def table(self, name: str) -> str:
        """Where the table `name` lies (an output window, or `_ledger`, `_late`, ...)."""
        return f"{self.root}/{name}"

    def window(self, name: str) -> Window:
        """The window called `name`; KeyError with the names there are."""
        found = [w for w in self.windows if w.name == name]
        if not found:
            raise KeyError(f"{name!r} is not a window of {self.name}; it has {', '.join(w.name for w in self.windows)}")
        return found[0]

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The windows whose bounds come from the data."""
        return tuple(w for w in self.windows if isinstance(w, Session))

    @property
    def aligned(self) -> tuple[Tumbling | Sliding, ...]:
        """The windows whose bounds are the same for every key."""
        return tuple(w for w in self.windows if not isinstance(w, Session))


