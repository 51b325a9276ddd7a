"""When the windows of an event end: what decides whether it is late.

An event is late for a window when window_end + lateness <= W. So of all windows that contain it,
the one that ends first decides whether it misses any, and the one that ends last whether it misses
all of them and is refused.
"""

from dataclasses import dataclass
from typing import assert_never

import numpy as np

from windowing.grid.boundaries import Boundaries, Instants
from windowing.panes.rule import grid_shape, longest_span
from windowing.spec.duration import DAY
from windowing.spec.kinds import (
    Aligned,
    AnySession,
    CappedSession,
    Count,
    Cumulate,
    Delta,
    Global,
    OnSteps,
    Punctuation,
    RecordSliding,
    Session,
    Window,
)
from windowing.spec.pipeline import Pipeline

NEVER_US = np.iinfo(np.int64).max
"""The end of a window that never ends."""


@dataclass(frozen=True)
class Ends:
    """Of each event when the first and the last of its windows end; `NEVER_US` where none does."""

    first: Instants
    last: Instants


def find_ends(pipeline: Pipeline, t: Instants) -> Ends:
    """The ends of all windows of the pipeline to which events at the instants `t` belong.

    An event in a session is taken as one alone: its window ends one gap after it. In truth its
    chain may end later, so at most those events are late that are late by this end. A row that ends
    a punctuation window is taken as an event.
    """
    if not len(t):
        return Ends(t, t)
    each = [_find_ends_of(window, t) for window in pipeline.windows]
    return Ends(
        np.minimum.reduce([ends.first for ends in each]),
        np.maximum.reduce([ends.last for ends in each]),
    )


def has_sessions(pipeline: Pipeline) -> bool:
    """Whether ends of windows depend on other events, so that they are earlier here than later."""
    return any(isinstance(window, AnySession) for window in pipeline.windows)


def _find_ends_of(window: Window, t: Instants) -> Ends:
    if isinstance(window, OnSteps):
        return _find_ends_on_steps(window, t)
    match window:
        case Global():
            never = np.full(len(t), NEVER_US)
            return Ends(never, never)
        case Session(gap_us=gap_us) | CappedSession(gap_us=gap_us):
            return Ends(t + gap_us, t + gap_us)
        case Count() | Delta() | Punctuation():
            return Ends(t + 1, t + 1)
        case RecordSliding(difference_us=difference_us, tick_us=tick_us):
            end = t - t % tick_us + tick_us
            return Ends(end, end + difference_us)
        case Cumulate(grid=grid):
            steps, periods = (
                find_boundaries(window, t),
                Boundaries(grid.periods, *_reach(window, t)),
            )
            return Ends(
                steps.find_instants(steps.find_numbers(t) + 1),
                periods.find_instants(periods.find_numbers(t) + 1),
            )
        case _:
            assert_never(window)


def _find_ends_on_steps(window: OnSteps, t: Instants) -> Ends:
    shape = grid_shape(window)
    steps = find_boundaries(window, t)
    step = steps.find_numbers(t)
    first = (step - shape.size) // shape.slide + 1
    last = step // shape.slide
    return Ends(
        steps.find_instants(first * shape.slide + shape.size),
        steps.find_instants(last * shape.slide + shape.size),
    )


def find_boundaries(window: Aligned, t: Instants) -> Boundaries:
    """The boundaries around the instants `t`, of which there is one: the steps of the windows."""
    grid = window.grid if isinstance(window, Cumulate) else grid_shape(window).grid
    return Boundaries(grid, *_reach(window, t))


def _reach(window: Aligned, t: Instants) -> tuple[int, int]:
    """The instants between which all windows of events at `t` begin and end."""
    far_us = 2 * longest_span(window) + DAY
    return int(t.min()) - far_us, int(t.max()) + far_us
