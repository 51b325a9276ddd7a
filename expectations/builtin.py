"""The expectations that every output has to meet, with their descriptions.

window, pipeline, facts -> the builtin expectations that apply
"""

from typing import Any, assert_never

from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.metadata_types import FailureSeverity

from expectations.law import Law, law_of
from expectations.outcome import Facts
from expectations.promises import (
    ExpectGlobalWindowsToHaveNoBounds,
    ExpectSessionsNotToOverlap,
    ExpectSessionsToEndGapAfterLastEvent,
    ExpectWindowColumnsToExist,
    ExpectWindowCountsNotToBeNegative,
    ExpectWindowCountsToAddUp,
    ExpectWindowIndexNotToBeNegative,
    ExpectWindowKeyAndBoundsNotToBeNull,
    ExpectWindowsOnceEventsWereAccepted,
    ExpectWindowStartBeforeEnd,
    ExpectWindowsToBeUnique,
    ExpectWindowsToFollowEventOrder,
    ExpectWindowsToLieOnGrid,
    WindowExpectation,
)
from windowing.grid.placing import InChains, InOrder, OnPeriods, OnSteps, OnTicks
from windowing.spec.description import describe_window
from windowing.spec.duration import Duration
from windowing.spec.kinds import Aligned, Window
from windowing.spec.pipeline import Pipeline

SUITE = "builtin"


def builtin_suite(window: Window, pipeline: Pipeline, facts: Facts) -> list[BatchExpectation]:
    """What the output of `window` must meet after the run that `facts` tell of; all critical."""
    law = law_of(window, pipeline.source.key)
    counts = (
        [
            _expect(
                ExpectWindowCountsNotToBeNegative, law, f"{', '.join(law.counts)}: never below zero"
            )
        ]
        if law.counts
        else []
    )
    return [
        _expect(ExpectWindowColumnsToExist, law, f"Has the columns {', '.join(law.columns)}"),
        _expect(ExpectWindowKeyAndBoundsNotToBeNull, law, f"No NULL in {', '.join(law.filled)}"),
        *(
            [_expect(ExpectWindowStartBeforeEnd, law, "window_start lies before window_end")]
            if law.bounded
            else []
        ),
        _expect(ExpectWindowsToBeUnique, law, f"One row per {', '.join(law.identity)}"),
        *_place(window, law),
        *counts,
        *_floor(window, law, pipeline, facts),
        *([] if _may_expire(window, pipeline, facts) else _conservation(window, law, facts)),
    ]


def _place(window: Window, law: Law) -> list[BatchExpectation]:
    """Where windows of this kind may lie."""
    described = describe_window(window)
    match described.placing:
        case OnSteps() | OnPeriods() | OnTicks():
            return [_expect(ExpectWindowsToLieOnGrid, law, described.place)]
        case InChains(gap_us=gap_us, longest_us=longest_us):
            gap = Duration(gap_us)
            return (
                _session(gap, law)
                if longest_us is None
                else _capped(gap, Duration(longest_us), law)
            )
        case InOrder():
            return _in_turn(law)
        case None:
            text = "window_start and window_end are NULL"
            return [_expect(ExpectGlobalWindowsToHaveNoBounds, law, text)]
        case other:
            assert_never(other)


def _session(gap: Duration, law: Law) -> list[BatchExpectation]:
    return [
        _expect(ExpectSessionsNotToOverlap, law, f"A key's sessions lie more than {gap} apart"),
        _expect(
            ExpectSessionsToEndGapAfterLastEvent,
            law,
            f"window_end is last_event plus {gap}, and last_event not before window_start",
        ),
    ]


def _capped(gap: Duration, longest: Duration, law: Law) -> list[BatchExpectation]:
    begins = (
        f"A key's session begins more than {gap} after the last event of the one before, "
        f"or {longest} or more after its start"
    )
    ends = (
        f"window_end is last_event plus {gap}, but at most window_start plus {longest}, "
        "and last_event lies in between"
    )
    return [
        _expect(ExpectSessionsNotToOverlap, law, begins),
        _expect(ExpectSessionsToEndGapAfterLastEvent, law, ends),
    ]


def _in_turn(law: Law) -> list[BatchExpectation]:
    apart = (
        "A key's windows, by window_index, don't overlap; "
        "the last event of one and the first of the next may share an instant"
    )
    forward = "A key's windows, by window_index, neither begin nor end before the one before"
    return [
        _expect(ExpectWindowIndexNotToBeNegative, law, "window_index is 0 or more"),
        _expect(ExpectWindowsToFollowEventOrder, law, apart if law.apart else forward),
    ]


def _floor(window: Window, law: Law, pipeline: Pipeline, facts: Facts) -> list[BatchExpectation]:
    """At least one row once events were accepted, unless rows of this window expire.

    It doesn't apply where windows with events need not be shown, or where accepted events may be
    markers, because markers are in no window.
    """
    if not window.shown.whole or describe_window(window).marker is not None:
        return []
    least = 0
    if facts.counted(window.name) == 0:
        text = "May be empty: no accepted event counts here"
    elif isinstance(window, Aligned) and _may_expire(window, pipeline, facts):
        text = "May be empty: its rows expire by retention.output"
    else:
        least = 1
        text = "Holds a window, since events were accepted"
    return [_expect(ExpectWindowsOnceEventsWereAccepted, law, text, least=least)]


def _may_expire(window: Window, pipeline: Pipeline, facts: Facts) -> bool:
    """Whether rows of the window expire, or may have expired by an earlier spec."""
    return pipeline.retention.output_us is not None or window.name in facts.expiring


def _conservation(window: Window, law: Law, facts: Facts) -> list[BatchExpectation]:
    total, missed = facts.counted(window.name), facts.partial.get(window.name, 0)
    text = f"adds up to the accepted events that count here: {facts.accepted} - {missed} = {total}"
    return [
        _expect(ExpectWindowCountsToAddUp, law, f"{name} {text}", column=name, total=total)
        for name in law.totals
    ]


def _expect(
    kind: type[WindowExpectation], law: Law, description: str, **more: Any
) -> BatchExpectation:
    return kind(
        law=law.as_mapping(), description=description, severity=FailureSeverity.CRITICAL, **more
    )
