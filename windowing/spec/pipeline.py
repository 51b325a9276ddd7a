"""A pipeline as frozen values that have been checked. `_us` is whole microseconds."""

from collections.abc import Mapping
from dataclasses import dataclass

from windowing.location import Location
from windowing.spec.kinds import (
    Aggregate,
    Aligned,
    AnySession,
    Expression,
    OrderDependent,
    Session,
    Window,
)

FOREVER = None
"""A duration that never ends: allowed lateness, retention."""


@dataclass(frozen=True)
class EventTime:
    """The column of event times, with a `unit` (s, ms, us) if it contains numbers since 1970.

    Without a column the time is that of the run in which the event arrived.
    """

    column: str | None
    unit: str | None = None


@dataclass(frozen=True)
class CsvForm:
    """How values stand in a CSV file.

    Without an `escape` a quote inside quotes is doubled.
    """

    header: bool = True
    delimiter: str = ","
    quote: str = '"'
    escape: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    nulls: tuple[str, ...] = ()


@dataclass(frozen=True)
class Files:
    """The files in `folder` that are appended to the source table.

    `columns` is the file that pins names and types. `multiline`: whether records span lines.
    `records` is where an object of JSON has the list of its records; empty where it is one itself.
    """

    folder: Location
    columns: Location
    format: str = "csv"
    on_new_column: str = "rescue"
    on_unfit_value: str = "quarantine"
    multiline: bool = False
    records: tuple[str, ...] = ()
    csv: CsvForm = CsvForm()


@dataclass(frozen=True)
class BatchBound:
    """How much one batch of a run reads: so many rows, and so many bytes of files.

    A batch ends with the file that reaches a bound. None is no bound.
    """

    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Source:
    """The Delta table events are read from; event order is (event time, `event_id`, `order_by`).

    `changes`: what happens when rows are updated or deleted there, refuse or feed. `columns` are
    computed, those among them that key, event time, id and order need. `parts` are computed, too:
    what only aggregates and windows read of structs, arrays and maps. They come and go with these.
    `needed_by` is the field of the spec that needs a column which the spec names by its path.
    `batch` is None where the spec names no bound.
    """

    table: Location
    event_time: EventTime
    key: tuple[str, ...]
    zone: str | None = None
    event_id: str | None = None
    order_by: tuple[str, ...] = ()
    on_bad_value: str = "quarantine"
    columns: tuple[tuple[str, Expression], ...] = ()
    where: Expression | None = None
    changes: str = "refuse"
    files: Files | None = None
    parts: tuple[tuple[str, Expression], ...] = ()
    needed_by: tuple[tuple[str, str], ...] = ()
    batch: BatchBound | None = None

    @property
    def computed(self) -> Mapping[str, Expression]:
        """Every computed column, by name."""
        return dict(self.columns + self.parts)

    @property
    def part_names(self) -> frozenset[str]:
        """The names of `parts`."""
        return frozenset(name for name, _ in self.parts)

    def field_of(self, column: str) -> str:
        """The field of the spec that a computed column comes from."""
        return dict(self.needed_by).get(column, f"source.columns.{column}")


@dataclass(frozen=True)
class Watermark:
    """How far event time is trusted: W = highest accepted event time - `delay_us`.

    `allowed_lateness_us` is None for forever.
    """

    delay_us: int
    allowed_lateness_us: int | None
    max_future_us: int
    dedupe_horizon_us: int | None = FOREVER
    idle_after_us: int | None = None


@dataclass(frozen=True)
class Retention:
    """How long rows are kept, in microseconds; None = forever.

    Those of `revisions_us` are earlier values of windows.
    """

    state_us: int | None = FOREVER
    refused_us: int | None = FOREVER
    output_us: int | None = FOREVER
    revisions_us: int | None = FOREVER


@dataclass(frozen=True)
class Alarms:
    """Beyond which figures of a run its outputs are not published; None never holds them.

    `quarantined` and `lost_values` are shares of the rows read. `rows_factor` is how many times
    more or fewer rows than usual, and `max_age_us` how long before its arrival an event happened.
    """

    quarantined: float | None = None
    lost_values: float | None = None
    max_age_us: int | None = None
    rows_factor: float | None = None


@dataclass(frozen=True)
class PlacedBy:
    """Whose places a pipeline has: the file of a project, and the name of a target in it.

    `options` are the words by which a command line chooses it; none for the project's own target.
    """

    project: str
    target: str
    options: tuple[str, ...] = ()


TOGETHER, EACH = "together", "each"
"""Whether all outputs of a run are published or none, or each one that meets its expectations."""


@dataclass(frozen=True)
class Pipeline:
    """Everything one spec says. `lake` is where its tables lie: `{lake}/{name}/{table}`.

    `freshness_us` is how far what readers see may lie behind the clock; None where nothing is said.
    `placed_by` says which target gave it a place that the spec does not say; None where none did.
    """

    name: str
    lake: Location
    source: Source
    watermark: Watermark
    windows: tuple[Window, ...]
    schedule: str | None = None
    suite: str | None = None
    publish: str = TOGETHER
    retention: Retention = Retention()
    file: str | None = None
    freshness_us: int | None = None
    alarms: Alarms = Alarms()
    placed_by: PlacedBy | None = None

    @property
    def root(self) -> Location:
        """The directory that holds every table of this pipeline."""
        return self.lake / self.name

    def table(self, name: str) -> Location:
        """Where the table `name` lies (an output window, or `_ledger`, `_late`, ...)."""
        return self.root / name

    def window(self, name: str) -> Window:
        """The window called `name`; KeyError with the names there are."""
        found = [w for w in self.windows if w.name == name]
        if not found:
            raise KeyError(
                f"{name!r} is not a window of {self.name}; "
                f"it has {', '.join(w.name for w in self.windows)}"
            )
        return found[0]

    @property
    def aligned(self) -> tuple[Aligned, ...]:
        """The windows whose bounds are the same for every key."""
        return tuple(w for w in self.windows if isinstance(w, Aligned))

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The sessions without a longest duration."""
        return tuple(w for w in self.windows if isinstance(w, Session))

    @property
    def chained(self) -> tuple[AnySession, ...]:
        """Sessions of both kinds."""
        return tuple(w for w in self.windows if isinstance(w, AnySession))

    @property
    def ordered(self) -> tuple[OrderDependent, ...]:
        """The windows that are made from events, not from partial aggregates."""
        return tuple(w for w in self.windows if isinstance(w, OrderDependent))

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Every aggregate that some window shows, each once."""
        return tuple(dict.fromkeys(a for w in self.windows for a in w.aggregates))
