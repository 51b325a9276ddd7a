"""How long state must live: as long as an event can still change a window."""

from windowing.errors import SpecError
from windowing.grid.rule import Grid
from windowing.grid.zone import longest_jump_us
from windowing.spec.duration import DAY, Duration
from windowing.spec.kinds import (
    CHANGES,
    CappedSession,
    Cumulate,
    RecordSliding,
    Session,
    Sliding,
    Tumbling,
    Window,
)
from windowing.spec.pipeline import Retention, Watermark
from windowing.spec.times import longest_us

_AHEAD_US = 130 * 365 * DAY
"""Until when a zone's clock is looked at, microseconds since 1970."""


def check_state(
    given: str, watermark: Watermark, retention: Retention, windows: tuple[Window, ...]
) -> None:
    """Raises SpecError unless state is kept for allowed lateness + what the windows need."""
    if retention.state_us is None:
        return
    lateness = watermark.allowed_lateness_us
    if lateness is None:
        raise SpecError(
            "retention.state",
            f"{given!r} is given, but allowed_lateness: forever needs state: forever; "
            "change one of them",
        )
    endless = next((w for w in windows if longest_window_us(w) is None), None)
    if endless is not None:
        raise SpecError(
            "retention.state",
            f"{given!r} is given, but windows.{endless.name} can last forever; write forever",
        )
    span, name = max((longest_window_us(w) or 0, w.name) for w in windows)
    if retention.state_us < lateness + span:
        raise SpecError(
            "retention.state",
            f"{given!r} is shorter than allowed_lateness + the '{Duration(span)}' that "
            f"windows.{name} needs;"
            f" write at least '{Duration(lateness + span)}' or forever",
        )


def longest_window_us(window: Window) -> int | None:
    """How long state of `window` is needed, lateness aside; None for no bound.

    It is the size, on a clock that may be moved, and a slide more where sliding windows are
    compared with the one before. Sessions need two gaps more, until they are final.
    """
    match window:
        case Tumbling(grid=grid) | Cumulate(grid=grid):
            return longest_us(Duration(grid.step_us, grid.months)) + _moved(grid)
        case Sliding(size_us=size, grid=grid, shown=shown):
            return size + (grid.step_us if shown.emit == CHANGES else 0) + _moved(grid)
        case Session(gap_us=gap):
            return 2 * gap
        case CappedSession(gap_us=gap, longest_us=longest):
            return longest + 2 * gap
        case RecordSliding(difference_us=difference, tick_us=tick):
            return 2 * (difference + tick)
    return None


def _moved(grid: Grid) -> int:
    """The most by which the clock of the grid's zone is moved at once, from 1970 on."""
    return longest_jump_us(grid.zone, 0, _AHEAD_US) if grid.zone else 0
