"""Windows on a grid: those that events were in, and those that are open.

windows on a grid -> `Pairs` of events and windows, and `Span`s
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from windowing.advise.ends import find_boundaries
from windowing.advise.share import Pairs
from windowing.grid.boundaries import Boundaries, Instants
from windowing.panes.rule import grid_shape, windows_of_pane
from windowing.spec.kinds import Aligned, Cumulate, OnSteps

MOST_WINDOWS = 50
"""In how many windows an event is looked at."""
MOST_PAIRS = 5_000_000
"""How many events in windows are looked at."""
MOST_OPEN = 1_000
"""How many open windows of an output are listed, the newest ones."""


@dataclass(frozen=True)
class Span:
    """A window [start, end), and the number that tells those of other lengths apart."""

    start_us: int
    end_us: int
    number: int = 0


def pair_events(window: Aligned, time: Instants, arrived: Instants, since_us: int) -> Pairs:
    """Each event with each window that it is in and that begins at `since_us` or later.

    Where that would be too many pairs, it is with every second window, or with fewer. There is at
    least one event.
    """
    each = [
        Pairs(start, end, arrived[inside], number)
        for inside, start, end, number in _find_windows(window, time)
    ]
    found = Pairs(
        *(
            np.concatenate([getattr(pairs, name) for pairs in each])
            for name in ("start", "end", "arrived", "number")
        )
    )
    return found.select(found.start >= since_us)


_Found = tuple[Instants, Instants, Instants, Instants]
"""The places of some events, and of each the start, the end and the number of a window."""


def _find_windows(window: Aligned, time: Instants) -> Iterator[_Found]:
    most = windows_of_pane(window)
    by = -(-most // MOST_WINDOWS)
    # Of many events, every so many windows or periods are enough.
    thin = -(-min(most, MOST_WINDOWS) * len(time) // MOST_PAIRS)
    steps = find_boundaries(window, time)
    if isinstance(window, Cumulate):
        yield from _find_cumulating(window, steps, time, by, thin)
    else:
        yield from _find_sliding(window, steps, time, max(1, by * thin))


def _find_sliding(window: OnSteps, steps: Boundaries, time: Instants, by: int) -> Iterator[_Found]:
    """Every window whose number is a multiple of `by`, from the last one that has begun."""
    shape = grid_shape(window)
    begun = steps.find_numbers(time) // shape.slide
    last = begun - begun % by
    for back in range(0, windows_of_pane(window) + by, by):
        number = (last - back) * shape.slide
        end = steps.find_instants(number + shape.size)
        inside = np.flatnonzero(end > time)
        yield (
            inside,
            steps.find_instants(number[inside]),
            end[inside],
            np.zeros(len(inside), np.int64),
        )


def _find_cumulating(
    window: Cumulate, steps: Boundaries, time: Instants, by: int, thin: int
) -> Iterator[_Found]:
    """The windows of every `thin` periods after every `by` steps, and the whole period."""
    per = window.grid.per
    step = steps.find_numbers(time)
    chosen = np.flatnonzero(step // per % max(1, thin) == 0)
    first = step[chosen] - step[chosen] % per
    start, whole_end = steps.find_instants(first), steps.find_instants(first + per)
    for number in range(by, per, by):
        end = steps.find_instants(first + number)
        inside = np.flatnonzero((end > time[chosen]) & (end < whole_end))
        yield chosen[inside], start[inside], end[inside], np.full(len(inside), number)
    yield chosen, start, whole_end, np.full(len(chosen), per)


def list_open(window: Aligned, closed_us: int, until_us: int) -> list[Span]:
    """The windows that end after `closed_us` and begin before `until_us`, in order of their ends.

    There are at most `MOST_OPEN`, the last ones. Of cumulate windows it is those that
    `pair_events` looks at.
    """
    if until_us <= closed_us:
        return []
    edges = np.array([closed_us, until_us - 1], np.int64)
    steps = find_boundaries(window, edges)
    low, high = steps.find_numbers(edges).tolist()
    if isinstance(window, Cumulate):
        spans = _list_cumulating(window, steps, low, high)
    else:
        spans = _list_sliding(window, steps, low, high)
    found = {span for span in spans if span.start_us < span.end_us and span.end_us > closed_us}
    return sorted(found, key=lambda span: (span.end_us, span.start_us))[-MOST_OPEN:]


def _list_sliding(window: OnSteps, steps: Boundaries, low: int, high: int) -> Iterator[Span]:
    shape = grid_shape(window)
    last = high // shape.slide
    first = max((low - shape.size) // shape.slide + 1, last - MOST_OPEN)
    number = np.arange(first, last + 1) * shape.slide
    starts, ends = steps.find_instants(number), steps.find_instants(number + shape.size)
    yield from map(Span, starts.tolist(), ends.tolist())


def _list_cumulating(window: Cumulate, steps: Boundaries, low: int, high: int) -> Iterator[Span]:
    per = window.grid.per
    by = -(-per // MOST_WINDOWS)
    last = high // per
    for period in range(max(low // per, last - MOST_OPEN), last + 1):
        numbers = np.array([*range(0, per, by), per], np.int64)
        instants = steps.find_instants(period * per + numbers).tolist()
        start, whole_end = instants[0], instants[-1]
        for number, end in zip(numbers.tolist()[1:-1], instants[1:-1], strict=True):
            if end < whole_end:
                yield Span(start, end, number)
        yield Span(start, whole_end, per)
