"""When an event is late, as plain instants. No Spark, no clock.

An event is late for a window when window_end + lateness <= W. Windows of one kind end in order, so
lateness is a cut: events before it are late.
"""

from dataclasses import dataclass
from typing import assert_never

from windowing.grid.placing import InChains, InOrder, OnPeriods, OnSteps, OnTicks
from windowing.grid.zone import FIRST_US
from windowing.spec.description import describe_window
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline, Watermark


@dataclass(frozen=True)
class Cut:
    """Events before `all_us` are late for all their windows of `window`.

    Events before `some_us` are late for at least one: those that ended by `some_us`.
    """

    window: str
    all_us: int
    some_us: int


@dataclass(frozen=True)
class Quiet:
    """Since when a source has been quiet.

    `since_us` is the arrival of the last accepted row, and `reached_us` is the highest event time
    accepted so far (each at most its run's arrival).
    """

    since_us: int
    reached_us: int


def lateness_cut(window: Window, closed_us: int) -> Cut | None:
    """Where lateness begins for `window`: windows that ended by `closed_us` are final.

    `closed_us` is W less the allowed lateness. Sessions have no cut, because the lateness of an
    event depends on its chain. Global windows have none, because they never close.
    """
    placing = describe_window(window).placing
    match placing:
        case OnSteps() | OnPeriods() | OnTicks():
            return Cut(window.name, *placing.late_before(closed_us))
        case InOrder():
            return Cut(window.name, closed_us, closed_us)
        case InChains() | None:
            return None
        case _:
            assert_never(placing)


def lateness_cuts(pipeline: Pipeline, watermark_us: int | None) -> tuple[Cut, ...]:
    """The cut of every window that has one; none while nothing can be late."""
    lateness = pipeline.watermark.allowed_lateness_us
    if watermark_us is None or lateness is None:
        return ()
    closed_us = watermark_us - lateness
    cuts = [_cut_on_calendar(window, closed_us) for window in pipeline.windows]
    return tuple(cut for cut in cuts if cut is not None)


def _cut_on_calendar(window: Window, closed_us: int) -> Cut | None:
    """`lateness_cut`; None, too, where windows that ended by `closed_us` lie beyond the calendar.

    No event is old enough to be in one of them.
    """
    try:
        return lateness_cut(window, closed_us)
    except (OverflowError, IndexError):
        return None


def suspicious_before(pipeline: Pipeline, watermark_us: int | None) -> int | None:
    """The instant from which on no event can be late for any window.

    It is None while nothing can be late at all.
    """
    instants = [cut.some_us for cut in lateness_cuts(pipeline, watermark_us)]
    of_sessions = suspicious_for_sessions(pipeline, watermark_us)
    if of_sessions is not None:
        instants.append(of_sessions)
    return max(instants, default=None)


def suspicious_for_sessions(pipeline: Pipeline, watermark_us: int | None) -> int | None:
    """The instant from which on no event can be late for a session; None while none can be."""
    lateness = pipeline.watermark.allowed_lateness_us
    if watermark_us is None or lateness is None:
        return None
    instants = [watermark_us - lateness - session.gap_us + 1 for session in pipeline.chained]
    return max(instants, default=None)


def advance_watermark(
    before_us: int | None, max_event_us: int | None, arrival_us: int, delay_us: int
) -> int | None:
    """W after a run, never lower than before.

    It is the highest accepted event time, at most the arrival, less the delay; never before year 4.
    """
    if max_event_us is None:
        return before_us
    reached_us = min(max_event_us, arrival_us) - delay_us
    return later_watermark(before_us, max(reached_us, FIRST_US))


def advance_idle_watermark(
    before_us: int | None, quiet: Quiet | None, arrival_us: int, watermark: Watermark
) -> int | None:
    """W after a run that accepted nothing.

    Once the source has been quiet for `idle_after`, W advances as the clock does.
    """
    if quiet is None or watermark.idle_after_us is None:
        return before_us
    quiet_for_us = arrival_us - quiet.since_us
    if quiet_for_us < watermark.idle_after_us:
        return before_us
    return later_watermark(before_us, quiet.reached_us + quiet_for_us - watermark.delay_us)


def later_watermark(before_us: int | None, reached_us: int) -> int:
    """The later of W before and `reached_us`."""
    return reached_us if before_us is None else max(before_us, reached_us)
