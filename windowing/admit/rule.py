"""When an event is late, as plain instants: what `W` and the allowed lateness leave open. No Spark, no clock.

A window is late when window_end + lateness <= W. Windows of one grid end in order, so lateness is a cut: events before it are late.
"""

from dataclasses import dataclass

from windowing.grid.rule import boundary, index
from windowing.panes.rule import shape
from windowing.spec.pipeline import Pipeline, Sliding, Tumbling


@dataclass(frozen=True)
class Cut:
    """Events before `all_us` missed every window of theirs, events before `some_us` at least one: those that ended by `some_us`."""

    window: str
    all_us: int
    some_us: int


def cut(window: Tumbling | Sliding, watermark_us: int, lateness_us: int) -> Cut:
    """Where lateness begins for `window` once the watermark stands at `watermark_us`."""
    form = shape(window)
    closed = (index(form.grid, watermark_us - lateness_us) - form.size) // form.slide
    return Cut(window.name, boundary(form.grid, (closed + 1) * form.slide), boundary(form.grid, closed * form.slide + form.size))


def cuts(pipeline: Pipeline, watermark_us: int | None) -> tuple[Cut, ...]:
    """The cut of every aligned window; none while nothing can be late."""
    lateness = pipeline.watermark.allowed_lateness_us
    if watermark_us is None or lateness is None:
        return ()
    return tuple(cut(w, watermark_us, lateness) for w in pipeline.aligned)


def suspicious_before(pipeline: Pipeline, watermark_us: int | None) -> int | None:
    """No event at or after this instant can be late for any window; None while nothing can be late at all."""
    lateness = pipeline.watermark.allowed_lateness_us
    if watermark_us is None or lateness is None:
        return None
    aligned = [c.some_us for c in cuts(pipeline, watermark_us)]
    sessions = [watermark_us - lateness - s.gap_us + 1 for s in pipeline.sessions]
    return max([*aligned, *sessions])


def advanced(before_us: int | None, max_event_us: int | None, arrival_us: int, delay_us: int) -> int | None:
    """W after a run: never lower than before; the highest accepted event time, at most the arrival, less the delay."""
    if max_event_us is None:
        return before_us
    reached = min(max_event_us, arrival_us) - delay_us
    return reached if before_us is None else max(before_us, reached)
