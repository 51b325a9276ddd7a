"""When an event is late, as plain instants: what `W` and the allowed lateness leave open. No Spark, no clock.

A window is late when window_end + lateness <= W. Windows of one kind end in order, so lateness is a cut: events before it are late.
"""

from dataclasses import dataclass

from windowing.grid.rule import boundary, index
from windowing.grid.zone import FIRST_US
from windowing.panes.rule import shape, span
from windowing.spec.duration import DAY
from windowing.spec.kinds import (
    Aligned,
    Count,
    Counted,
    Cumulate,
    Delta,
    Punctuation,
    RecordSliding,
)
from windowing.spec.pipeline import Pipeline, Watermark


@dataclass(frozen=True)
class Cut:
    """Events before `all_us` missed every window of theirs, events before `some_us` at least one: those that ended by `some_us`."""

    window: str
    all_us: int
    some_us: int


@dataclass(frozen=True)
class Quiet:
    """Arrival of the last accepted row, and the highest event time accepted so far (each at most its run's arrival)."""

    since_us: int
    reached_us: int


def cut(window: Aligned | RecordSliding | Counted, closed_us: int) -> Cut:
    """Where lateness begins for `window` when those that ended by `closed_us` (W - allowed lateness) are late."""
    match window:
        case Count() | Delta() | Punctuation():
            return Cut(window.name, closed_us, closed_us)
        case RecordSliding(difference_us=difference, tick_us=tick):
            last = closed_us - tick
            return Cut(window.name, _ticked(last - difference, tick), _ticked(last, tick))
        case Cumulate(grid=grid):
            periods = grid.periods
            return Cut(
                window.name,
                boundary(periods, index(periods, closed_us)),
                boundary(grid, index(grid, closed_us)),
            )
    form = shape(window)
    closed = (index(form.grid, closed_us) - form.size) // form.slide
    return Cut(
        window.name,
        boundary(form.grid, (closed + 1) * form.slide),
        boundary(form.grid, closed * form.slide + form.size),
    )


def _ticked(last_us: int, tick_us: int) -> int:
    """The first instant whose tick is after `last_us`."""
    return (last_us // tick_us + 1) * tick_us


def cuts(pipeline: Pipeline, watermark_us: int | None) -> tuple[Cut, ...]:
    """The cut of every window that has one: sessions are judged by their chains, global windows never close; none while nothing is late."""
    lateness = pipeline.watermark.allowed_lateness_us
    if watermark_us is None or lateness is None:
        return ()
    closed_us = watermark_us - lateness
    cutting = [w for w in pipeline.windows if isinstance(w, Aligned | RecordSliding | Counted)]
    return tuple(cut(w, closed_us) for w in cutting if _on_clock(w, closed_us))


def _on_clock(window: Aligned | RecordSliding | Counted, closed_us: int) -> bool:
    """Whether windows that ended by then lie where calendars reach: what is older than the first of them is late for none."""
    return not isinstance(window, Aligned) or closed_us > FIRST_US + 2 * span(window) + 32 * DAY


def suspicious_before(pipeline: Pipeline, watermark_us: int | None) -> int | None:
    """No event at or after this instant can be late for any window; None while nothing can be late at all."""
    lateness = pipeline.watermark.allowed_lateness_us
    if watermark_us is None or lateness is None:
        return None
    cut_off = [c.some_us for c in cuts(pipeline, watermark_us)]
    chained = [watermark_us - lateness - s.gap_us + 1 for s in pipeline.chained]
    return max([*cut_off, *chained], default=None)


def advanced(
    before_us: int | None, max_event_us: int | None, arrival_us: int, delay_us: int
) -> int | None:
    """W after a run: never lower than before; the highest accepted event time, at most the arrival, less the delay, never before year 4."""
    if max_event_us is None:
        return before_us
    return later(before_us, max(min(max_event_us, arrival_us) - delay_us, FIRST_US))


def idled(
    before_us: int | None, quiet: Quiet | None, arrival_us: int, watermark: Watermark
) -> int | None:
    """W after a run that accepted nothing: once the source has been quiet for `idle_after`, W goes on as the clock does."""
    if (
        quiet is None
        or watermark.idle_after_us is None
        or arrival_us - quiet.since_us < watermark.idle_after_us
    ):
        return before_us
    return later(before_us, quiet.reached_us + (arrival_us - quiet.since_us) - watermark.delay_us)


def later(before_us: int | None, reached_us: int) -> int:
    """The later of W before and what is reached now."""
    return reached_us if before_us is None else max(before_us, reached_us)
