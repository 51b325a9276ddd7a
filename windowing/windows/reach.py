"""Between which times windows may change when events of a range do. No Spark."""

from datetime import UTC, datetime

from windowing.grid.rule import Grid, boundary, index
from windowing.grid.zone import micros, moment
from windowing.panes.rule import (
    Shape,
    grid_shape,
    longest_span,
    pane_end,
    pane_families,
    pane_start,
)
from windowing.spec.kinds import (
    CappedSession,
    Cumulate,
    RecordSliding,
    Session,
    Sliding,
    Tumbling,
    Window,
)
from windowing.spec.pipeline import Pipeline


def windows_touched(
    window: Window, low: datetime, high: datetime
) -> tuple[datetime, datetime] | None:
    """The times between which the windows lie that an event from `low` to `high` can be in.

    `low` and `high` are both inside. The answer runs from the start of the first window to the end
    of the last; None where no bounds follow from times, or where they lie beyond the calendar.
    """
    low_us, high_us = micros(low), micros(high)
    try:
        match window:
            case Session(gap_us=far) | CappedSession(gap_us=far) | RecordSliding(difference_us=far):
                return moment(low_us - far), moment(high_us + far)
            case Tumbling() | Sliding():
                return _sliding_reach(grid_shape(window), low_us, high_us)
            case Cumulate(grid=grid):
                return _period_reach(grid.periods, low_us, high_us)
    except (OverflowError, IndexError):
        return None
    return None


def _sliding_reach(form: Shape, low_us: int, high_us: int) -> tuple[datetime, datetime]:
    """From the start of the first to the end of the last window that contains a time."""
    first = (index(form.grid, low_us) + form.slide - form.size) // form.slide
    last = index(form.grid, high_us) // form.slide
    start_us = boundary(form.grid, first * form.slide)
    end_us = boundary(form.grid, last * form.slide + form.size)
    return moment(start_us), moment(end_us)


def _period_reach(periods: Grid, low_us: int, high_us: int) -> tuple[datetime, datetime]:
    """From the start of the period of `low_us` to the end of the period of `high_us`."""
    start_us = boundary(periods, index(periods, low_us))
    end_us = boundary(periods, index(periods, high_us) + 1)
    return moment(start_us), moment(end_us)


def reach_of(pipeline: Pipeline, name: str, low: int, high: int) -> tuple[datetime, datetime]:
    """The times between which windows may change when events from `low` to before `high` do.

    `low` and `high` are in microseconds. Of windows whose cuts depend on all events before, and of
    global windows, all times from `low` on.
    """
    window = pipeline.window(name)
    match window:
        case Session(gap_us=far) | CappedSession(gap_us=far) | RecordSliding(difference_us=far):
            return moment(low - far), moment(high + far)
        case Tumbling() | Sliding() | Cumulate():
            family = next(f for f in pane_families(pipeline) if window in f.windows)
            start_us = pane_start(family, low) - longest_span(window)
            end_us = pane_end(family, high - 1) + longest_span(window)
            return moment(start_us), moment(end_us)
    return moment(low), datetime.max.replace(tzinfo=UTC)
