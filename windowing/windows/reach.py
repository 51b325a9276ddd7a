"""Between which times windows may change when events of a range do. No Spark."""

from datetime import UTC, datetime
from typing import assert_never

from windowing.grid.range import Range
from windowing.grid.zone import micros, moment
from windowing.panes.rule import (
    longest_span,
    pane_end,
    pane_families,
    pane_start,
)
from windowing.spec.description import Nearby, OnGrid, Onward, describe_window, place_on_grid
from windowing.spec.kinds import Aligned, Window
from windowing.spec.pipeline import Pipeline


def windows_touched(
    window: Window, low: datetime, high: datetime
) -> tuple[datetime, datetime] | None:
    """The times that windows overlap which an event from `low` to `high` can change.

    `low` and `high` are both inside. On a grid the answer runs from the start of the first window
    to the end of the last. A session can begin earlier and end later, because its other events may
    lie anywhere. None where no bounds follow from times, or where they lie beyond the calendar.
    """
    low_us, high_us = micros(low), micros(high)
    try:
        match describe_window(window).reach:
            case Nearby() as near:
                return _reach_around(near, low_us, high_us)
            case OnGrid(window=aligned):
                start_us, end_us = place_on_grid(aligned).surround(low_us, high_us)
                return moment(start_us), moment(end_us)
            case Onward():
                return None
            case other:
                assert_never(other)
    except (OverflowError, IndexError):
        return None


def span_windows(window: Aligned, within: Range) -> Range:
    """All times of the windows that contain an instant of `within`.

    Where the windows lie beyond the calendar the answer is wider.
    """
    try:
        start_us, end_us = place_on_grid(window).surround(within.low_us, within.high_us)
    except (OverflowError, IndexError):
        return within.widen(longest_span(window))
    return Range(start_us, end_us - 1)


def find_reach(pipeline: Pipeline, name: str, low: int, high: int) -> tuple[datetime, datetime]:
    """The times that windows overlap which may change when events from `low` to before `high` do.

    `low` and `high` are in microseconds. Of windows whose cuts depend on all events before, and of
    global windows, all times from `low` on.
    """
    match describe_window(pipeline.window(name)).reach:
        case Nearby() as near:
            return _reach_around(near, low, high)
        case OnGrid(window=aligned):
            # State is rebuilt by whole panes, and a pane changes every window that contains it.
            family = next(f for f in pane_families(pipeline) if aligned in f.windows)
            span_us = longest_span(aligned)
            start_us = pane_start(family, low) - span_us
            end_us = pane_end(family, high - 1) + span_us
            return moment(start_us), moment(end_us)
        case Onward():
            return moment(low), datetime.max.replace(tzinfo=UTC)
        case other:
            assert_never(other)


def _reach_around(near: Nearby, low_us: int, high_us: int) -> tuple[datetime, datetime]:
    first_us, last_us = (us // near.tick_us * near.tick_us for us in (low_us, high_us))
    return moment(first_us - near.before_us), moment(last_us + near.after_us)
