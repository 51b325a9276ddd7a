"""What every row of an output has to meet, as values: column names and arithmetic for each kind.

window, key -> Law -> breaches(frame, law) (breaches.py): rule name -> rows that break it
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, assert_never

from windowing.columns import END, INDEX, LAST, REVISION, RUN, START
from windowing.grid.placing import InChains, InOrder, OnPeriods, OnSteps, OnTicks
from windowing.grid.rule import Grid
from windowing.spec.aggregate_description import describe_aggregate
from windowing.spec.description import describe_window
from windowing.spec.kinds import Aggregate, Window

_LISTS = ("key", "aggregates", "counts", "totals")


@dataclass(frozen=True)
class Law:
    """The names and the arithmetic of one output.

    `counts` are the columns that are never below zero, `totals` those that sum to the accepted
    events. The other fields say how windows are placed:

    - Grid windows have a `grid`, and `size_us` if they don't last from one boundary to the next.
    - Sessions have a `gap_us`, and `longest_us` if they are cut.
    - Order-dependent windows are `indexed`, and `apart` if no two of them contain the same event.
    - A global window has none of these.
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
        if self.gap_us is not None:
            return START, END, LAST
        return START, END

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
        if self.bounded:
            return (*self.key, START, END)
        return self.key

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column the output has to have."""
        return (*self.key, *self.bounds, *self.aggregates, REVISION, RUN)

    def as_mapping(self) -> dict[str, Any]:
        """The law as plain values that JSON can represent."""
        return asdict(self)


def law_of(window: Window, key: tuple[str, ...]) -> Law:
    """The law of the outputs of `window`."""
    aggregates = tuple(aggregate.name for aggregate in window.aggregates)
    law = Law(key, aggregates, _count_columns(window), _total_columns(window))
    match describe_window(window).placing:
        case OnSteps() | OnPeriods() | OnTicks() as placing:
            return replace(law, grid=placing.begins, size_us=placing.length_us)
        case InChains() as placing:
            return replace(law, gap_us=placing.gap_us, longest_us=placing.longest_us)
        case InOrder() as placing:
            return replace(law, indexed=True, apart=placing.apart)
        case None:
            return law
        case other:
            assert_never(other)


def law_from(mapping: Mapping[str, Any]) -> Law:
    """The law that `as_mapping` wrote."""
    fields = dict(mapping)
    for name in _LISTS:
        # JSON turns tuples into lists.
        fields[name] = tuple(mapping[name])
    if mapping["grid"]:
        fields["grid"] = Grid(**mapping["grid"])
    return Law(**fields)


def missing_columns(law: Law, names: list[str]) -> list[str]:
    """The columns that the law requires and that are not among `names`."""
    return [column for column in law.columns if column not in names]


def _count_columns(window: Window) -> tuple[str, ...]:
    return tuple(
        aggregate.name
        for aggregate in window.aggregates
        if describe_aggregate(aggregate.function).counts_events
    )


def _total_columns(window: Window) -> tuple[str, ...]:
    """The counts of all events, where each event is in exactly one window and all are shown."""
    if not describe_window(window).divides_time or not window.shown.whole:
        return ()
    return tuple(a.name for a in window.aggregates if _counts_every_event(a))


def _counts_every_event(aggregate: Aggregate) -> bool:
    return aggregate.function == "count" and aggregate.column is None and aggregate.where is None
