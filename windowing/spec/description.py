"""Everything that follows from the kind of a window, in one place.

    window -> Description

Each kind has one function here, which states all its properties: its name, bounds, state, lateness,
finality and reach. Other code asks for the property it needs and knows no list of kinds. Only what
computes windows, or places them on a grid, differs by kind elsewhere.
"""

from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import assert_never

from windowing.columns import CLOSED_BY, END, INDEX, LAST, START
from windowing.grid import placing as grids
from windowing.grid.placing import InChains, InOrder, OnPeriods, OnSteps, OnTicks, Placing
from windowing.grid.rule import Grid
from windowing.grid.zone import farthest_jump_us
from windowing.spec.duration import DAY, Duration
from windowing.spec.kinds import (
    CHANGES,
    Aligned,
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
from windowing.spec.times import longest_us

_AHEAD_US = 69 * 365 * DAY
"""Until when a zone's clock is looked at, microseconds since 1970.

From 2038 on its rules are the same each year, as far as the tz database knows.
"""


class State(Enum):
    """What windows are computed from."""

    PANES = "partial aggregates of the time between two cuts"
    FRAGMENTS = "partial aggregates of chains of events"
    EVENTS = "the events themselves"


class Lateness(Enum):
    """What decides whether an event is late."""

    WINDOW_END = "each window by itself, because its end follows from its bounds"
    CHAIN = "the chain of events that the event belongs to"
    EVENT = "the time of the event alone"
    NEVER = "nothing, because the window never ends"


@dataclass(frozen=True)
class Finality:
    """A window is final once W - allowed lateness reaches the time in `column` + `after_us`.

    No event changes it then. A window without a time in `column` is not final.
    """

    column: str
    after_us: int = 0


@dataclass(frozen=True)
class OnGrid:
    """An event changes the windows of `window` that contain its time."""

    window: Aligned


@dataclass(frozen=True)
class Nearby:
    """An event changes windows that overlap the time around it.

    That begins `before_us` before the event and ends `after_us` after it. The event's own time is
    rounded down to a multiple of `tick_us`.
    """

    before_us: int
    after_us: int
    tick_us: int = 1


@dataclass(frozen=True)
class Onward:
    """An event can change any window from its time on."""


Reach = OnGrid | Nearby | Onward
"""Which windows an event changes."""


@dataclass(frozen=True)
class ReadColumn:
    """A source column that bounds windows, and the field of the window that names it.

    `type` is boolean, timestamp or number.
    """

    field: str
    name: str
    type: str


@dataclass(frozen=True)
class Description:
    """The properties of one window.

    - `kind` is the name under which its digests are stored. A stored name never changes.
    - `text` is the kind and its fields in the words of a spec.
    - `bounds` are the columns of an output that bound the window of a row.
    - `identity` are the columns that distinguish the windows of one key.
    - `state` is what the windows are computed from.
    - `placing` is how the windows lie in time; None for one that has no bounds.
    - `lateness` decides which events are late.
    - `finality` is when a window can change no more; None is never.
    - `reach` is which windows an event changes.
    - `needed_us` is how long an event is needed, allowed lateness aside; None is forever.
    - `divides_time` is true where each event is in exactly one window, whose bounds contain it.
    - `closed_by_event` is true where an event ends the window, whose time is recorded.
    - `marker` is the column that is true for rows which end a window and are in none.
    - `attribute` is the column that every event of a window must have.
    - `place` says in words where windows on a grid lie.
    """

    kind: str
    text: str
    bounds: tuple[str, ...]
    identity: tuple[str, ...]
    state: State
    placing: Placing | None
    lateness: Lateness
    finality: Finality | None
    reach: Reach
    needed_us: int | None
    divides_time: bool = False
    closed_by_event: bool = False
    marker: ReadColumn | None = None
    attribute: ReadColumn | None = None
    place: str = ""

    @property
    def read_columns(self) -> tuple[ReadColumn, ...]:
        """The source columns that windows of this kind need besides those of aggregates."""
        return tuple(column for column in (self.marker, self.attribute) if column is not None)


@lru_cache(maxsize=1024)
def describe_window(window: Window) -> Description:
    """The properties of `window`."""
    match window:
        case Tumbling():
            return _describe_tumbling(window)
        case Sliding():
            return _describe_sliding(window)
        case Cumulate():
            return _describe_cumulate(window)
        case Session():
            return _describe_session(window)
        case CappedSession():
            return _describe_capped_session(window)
        case RecordSliding():
            return _describe_record_sliding(window)
        case Count():
            return _describe_count(window)
        case Delta():
            return _describe_delta(window)
        case Punctuation():
            return _describe_punctuation(window)
        case Global():
            return _describe_global()
        case _:
            assert_never(window)


def place_on_grid(window: Aligned) -> grids.OnGrid:
    """How windows on a grid lie in time."""
    found = describe_window(window).placing
    if isinstance(found, grids.OnGrid):
        return found
    raise TypeError(f"{window.name} does not lie on a grid")


def _describe_tumbling(window: Tumbling) -> Description:
    step, needed_us = _step_text(window.grid), _longest_step_us(window.grid)
    place = f"run from one boundary to the next, every {step}"
    placing = OnSteps(window.grid)
    found = _describe_on_grid("tumbling", f"tumbling, {step}", window, placing, place, needed_us)
    return replace(found, divides_time=True)


def _describe_sliding(window: Sliding) -> Description:
    grid = window.grid
    # With `emit: changes` each window is compared with the one a slide before it.
    compared_us = grid.step_us if window.shown.emit == CHANGES else 0
    needed_us = window.size_us + compared_us + _farthest_jump_us(grid)
    size, step = Duration(window.size_us), _step_text(grid)
    text = f"sliding, {size} every {step}"
    place = f"begin every {step} and last {size}"
    placing = OnSteps(grid, window.size_us)
    return _describe_on_grid("sliding", text, window, placing, place, needed_us)


def _describe_cumulate(window: Cumulate) -> Description:
    grid = window.grid
    step, inner = _step_text(grid), Duration(grid.inner_us, grid.inner_months)
    text = f"cumulate, {step} by {inner}"
    place = (
        f"begin every {step} and last until a boundary every {inner} from there, "
        "at most until the next beginning,"
    )
    needed_us = _longest_step_us(grid)
    return _describe_on_grid("cumulate", text, window, OnPeriods(grid), place, needed_us)


def _describe_on_grid(
    kind: str, text: str, window: Aligned, placing: grids.OnGrid, place: str, needed_us: int
) -> Description:
    """What windows on a grid have in common; `text` and `place` leave out the grid's zone."""
    return Description(
        kind=kind,
        text=f"{text}{_zone_text(window.grid)}",
        bounds=(START, END),
        identity=(START, END),
        state=State.PANES,
        placing=placing,
        lateness=Lateness.WINDOW_END,
        finality=Finality(END),
        reach=OnGrid(window),
        needed_us=needed_us,
        place=f"Windows {place} on the clock of {window.grid.zone or 'UTC'}",
    )


def _describe_session(window: Session) -> Description:
    text = f"session, gap {Duration(window.gap_us)}"
    gap_us = window.gap_us
    reach = Nearby(gap_us, gap_us)
    return _describe_chain("session", text, State.FRAGMENTS, InChains(gap_us), reach)


def _describe_capped_session(window: CappedSession) -> Description:
    gap_us, cap_us = window.gap_us, window.longest_us
    text = f"session, gap {Duration(gap_us)}, at most {Duration(cap_us)}"
    placing = InChains(gap_us, cap_us)
    # An event that moves the beginning of a chain moves all its cuts.
    return _describe_chain("capped_session", text, State.EVENTS, placing, Onward())


def _describe_chain(
    kind: str, text: str, state: State, placing: InChains, reach: Reach
) -> Description:
    """What sessions have in common."""
    return Description(
        kind=kind,
        text=text,
        bounds=(START, END, LAST),
        identity=(START,),
        state=state,
        placing=placing,
        lateness=Lateness.CHAIN,
        # An event up to one gap after the last one still extends the session, and is itself
        # late only one gap later.
        finality=Finality(LAST, 2 * placing.gap_us),
        reach=reach,
        needed_us=(placing.longest_us or 0) + 2 * placing.gap_us,
    )


def _describe_record_sliding(window: RecordSliding) -> Description:
    difference_us, tick_us = window.difference_us, window.tick_us
    placing = OnTicks(difference_us, tick_us)
    return Description(
        kind="record_sliding",
        text=f"record_sliding, difference {Duration(difference_us)}",
        bounds=(START, END),
        identity=(START, END),
        state=State.EVENTS,
        placing=placing,
        lateness=Lateness.WINDOW_END,
        finality=Finality(END),
        # The last window is the one that begins a tick after the event.
        reach=Nearby(difference_us, difference_us + 2 * tick_us, tick_us),
        needed_us=2 * placing.length_us,
        place=(
            f"Windows begin at whole multiples of {Duration(tick_us)} "
            f"and last {Duration(placing.length_us)}"
        ),
    )


def _describe_count(window: Count) -> Description:
    every = "" if window.count == window.every else f" every {window.every}"
    text = f"count, {window.count} events{every}"
    return _describe_event_driven("count", text, apart=window.every >= window.count)


def _describe_delta(window: Delta) -> Description:
    growth = window.delta if window.delta_us is None else Duration(window.delta_us)
    attribute_type = "number" if window.delta_us is None else "timestamp"
    return _describe_event_driven(
        "delta",
        f"delta, {window.attribute} by more than {growth}",
        attribute=ReadColumn("attribute", window.attribute, attribute_type),
    )


def _describe_punctuation(window: Punctuation) -> Description:
    return _describe_event_driven(
        "punctuation",
        f"punctuation, by {window.marker}",
        marker=ReadColumn("marker", window.marker, "boolean"),
    )


def _describe_event_driven(
    kind: str,
    text: str,
    *,
    apart: bool = True,
    marker: ReadColumn | None = None,
    attribute: ReadColumn | None = None,
) -> Description:
    """What count, delta and punctuation windows have in common.

    Nothing bounds how long such a window lasts, so its events are needed forever.
    """
    return Description(
        kind=kind,
        text=text,
        bounds=(START, END, INDEX),
        identity=(INDEX,),
        state=State.EVENTS,
        placing=InOrder(apart),
        lateness=Lateness.EVENT,
        # The event that closes a window is the last one that can change it.
        finality=Finality(CLOSED_BY, 1),
        reach=Onward(),
        needed_us=None,
        closed_by_event=True,
        marker=marker,
        attribute=attribute,
    )


def _describe_global() -> Description:
    return Description(
        kind="global",
        text="global",
        bounds=(START, END),
        identity=(),
        state=State.PANES,
        placing=None,
        lateness=Lateness.NEVER,
        finality=None,
        reach=Onward(),
        needed_us=None,
    )


def _step_text(grid: Grid) -> str:
    return str(Duration(grid.step_us, grid.months))


def _zone_text(grid: Grid) -> str:
    return f", {grid.zone}" if grid.zone else ""


def _longest_step_us(grid: Grid) -> int:
    """The longest that one step of the grid can last, on a clock that may be moved."""
    return longest_us(Duration(grid.step_us, grid.months)) + _farthest_jump_us(grid)


def _farthest_jump_us(grid: Grid) -> int:
    """The most by which the clock of the grid's zone is moved at once, from 1970 on."""
    return farthest_jump_us(grid.zone, 0, _AHEAD_US)
