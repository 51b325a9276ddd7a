"""Between which times windows may change when events of a range of event time do. No Spark."""

from datetime import UTC, datetime

from windowing.grid.rule import boundary, index
from windowing.grid.zone import micros, moment
from windowing.panes.rule import Shape, families, pane_end, pane_start, shape, span
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


def touched(window: Window, low: datetime, high: datetime) -> tuple[datetime, datetime] | None:
    """From the start of the first to the end of the last window that an event from `low` to `high`, both inside, can be in."""
    low_us, high_us = micros(low), micros(high)
    try:
        match window:
            case Session(gap_us=far) | CappedSession(gap_us=far) | RecordSliding(difference_us=far):
                return moment(low_us - far), moment(high_us + far)
            case Tumbling() | Sliding():
                return _steps(shape(window), low_us, high_us)
            case Cumulate(grid=grid):
                periods = grid.periods
                return moment(boundary(periods, index(periods, low_us))), moment(
                    boundary(periods, index(periods, high_us) + 1)
                )
    except (OverflowError, IndexError):
        return None
    return None


def _steps(form: Shape, low_us: int, high_us: int) -> tuple[datetime, datetime]:
    first = (index(form.grid, low_us) + form.slide - form.size) // form.slide
    last = index(form.grid, high_us) // form.slide
    return moment(boundary(form.grid, first * form.slide)), moment(
        boundary(form.grid, last * form.slide + form.size)
    )


def reach_of(pipeline: Pipeline, name: str, low: int, high: int) -> tuple[datetime, datetime]:
    """The times between which windows may change; of windows that count events in order, and of global ones, all after `low`."""
    window = pipeline.window(name)
    match window:
        case Session(gap_us=far) | CappedSession(gap_us=far) | RecordSliding(difference_us=far):
            return moment(low - far), moment(high + far)
        case Tumbling() | Sliding() | Cumulate():
            family = next(f for f in families(pipeline) if window in f.windows)
            return moment(pane_start(family, low) - span(window)), moment(
                pane_end(family, high - 1) + span(window)
            )
    return moment(low), datetime.max.replace(tzinfo=UTC)
