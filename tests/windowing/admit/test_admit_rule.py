"""Cuts against the law itself.

An event is late for a window when the window's end plus the allowed lateness is at or before W.
"""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.windowing.cases import COUNT, DAY, HOUR, MINUTE, Case, aligned, instants, pipeline
from windowing.admit.rule import (
    Quiet,
    advance_idle_watermark,
    advance_watermark,
    lateness_cut,
    lateness_cuts,
    suspicious_before,
)
from windowing.grid.rule import Grid
from windowing.grid.zone import micros
from windowing.spec.kinds import Count, Global, RecordSliding, Session, Tumbling
from windowing.spec.pipeline import Watermark

lateness = st.one_of(
    st.just(0), st.sampled_from([1, 10 * MINUTE, HOUR, 40 * DAY]), st.integers(0, 3 * DAY)
)
beside = st.integers(-3 * DAY, 3 * DAY)


def _late_ends(case: Case, t: int, watermark: int, allowed: int) -> list[bool]:
    return [end + allowed <= watermark for _, end in oracle.spans(case.theirs, t)]


@pytest.mark.slow
@settings(max_examples=600)
@given(aligned(), instants, lateness, beside)
def test_events_before_the_cuts_are_late_and_no_others(
    case: Case, watermark: int, allowed: int, away: int
) -> None:
    found = lateness_cut(case.ours, watermark - allowed)
    assert found.window == case.ours.name
    edges = {found.all_us, found.some_us}
    for t in {*edges, *(e - 1 for e in edges), watermark - allowed, watermark - allowed + away}:
        late = _late_ends(case, t, watermark, allowed)
        assert all(late) == (t < found.all_us), (t, found)
        assert any(late) == (t < found.some_us), (t, found)


@settings(max_examples=200)
@given(aligned(), instants, lateness)
def test_the_second_cut_is_the_end_of_the_last_closed_window(
    case: Case, watermark: int, allowed: int
) -> None:
    found = lateness_cut(case.ours, watermark - allowed)
    assert found.some_us + allowed <= watermark
    assert found.some_us in {end for _, end in oracle.spans(case.theirs, found.some_us - 1)}


@settings(max_examples=200)
@given(aligned(), instants, lateness, st.integers(0, DAY))
def test_cuts_never_go_back(case: Case, watermark: int, allowed: int, more: int) -> None:
    before, after = (
        lateness_cut(case.ours, watermark - allowed),
        lateness_cut(case.ours, watermark + more - allowed),
    )
    assert (before.all_us, before.some_us) <= (after.all_us, after.some_us)


@settings(max_examples=300)
@given(
    st.lists(aligned(), max_size=3),
    st.lists(st.integers(1, DAY), max_size=2),
    instants,
    lateness,
    st.integers(0, 2 * DAY),
)
def test_from_the_suspicious_instant_on_nothing_is_late(
    cases: list[Case], gaps: list[int], watermark: int, allowed: int, more: int
) -> None:
    sessions = [Session(f"s{n}", gap, COUNT) for n, gap in enumerate(gaps)]
    windows = [c.ours for c in cases]
    if not windows and not sessions:
        return
    before = suspicious_before(pipeline(*windows, *sessions, lateness_us=allowed), watermark)
    assert before is not None
    for t in (before, before + more):
        assert not any(late for c in cases for late in _late_ends(c, t, watermark, allowed))
        assert not any(_session_may_be_late(t, gap, watermark, allowed) for gap in gaps)
    last = before - 1
    assert any(late for c in cases for late in _late_ends(c, last, watermark, allowed)) or any(
        _session_may_be_late(last, gap, watermark, allowed) for gap in gaps
    )


def _session_may_be_late(t: int, gap: int, watermark: int, allowed: int) -> bool:
    """Alone, or by touching from as far as possible a session that is just final.

    It is final at last + 2 gaps + lateness = W.
    """
    alone = t + gap + allowed <= watermark
    last_of_final = watermark - allowed - 2 * gap
    return alone or t <= last_of_final + gap


@settings(max_examples=100)
@given(st.lists(aligned(), min_size=1, max_size=3), st.one_of(st.none(), instants))
def test_nothing_is_late_without_a_watermark_or_with_lateness_forever(
    cases: list[Case], watermark: int | None
) -> None:
    windows = [c.ours for c in cases]
    for subject, mark in (
        (pipeline(*windows), None),
        (pipeline(*windows, lateness_us=None), watermark),
    ):
        assert lateness_cuts(subject, mark) == ()
        assert suspicious_before(subject, mark) is None


marks = st.one_of(st.none(), instants)


@settings(max_examples=300)
@given(marks, marks, instants, st.integers(0, DAY))
def test_the_watermark_follows_the_highest_event_and_never_goes_back(
    before: int | None, highest: int | None, arrival: int, delay: int
) -> None:
    after = advance_watermark(before, highest, arrival, delay)
    if highest is None:
        assert after == before
    else:
        assert after == max(([] if before is None else [before]) + [min(highest, arrival) - delay])
    assert before is None or (after is not None and after >= before)
    assert advance_watermark(after, highest, arrival, delay) == after


@settings(max_examples=300)
@given(st.integers(1, 20), st.integers(1, 2000), instants, lateness, beside)
def test_the_cuts_of_record_sliding_windows_are_those_of_the_windows_an_event_is_in(
    ticks: int, tick: int, watermark: int, allowed: int, away: int
) -> None:
    found = lateness_cut(RecordSliding("w", ticks * tick, tick, COUNT), watermark - allowed)
    theirs = oracle.RecordSliding("w", ticks * tick, tick)
    for t in (
        found.all_us,
        found.all_us - 1,
        found.some_us,
        found.some_us - 1,
        watermark - allowed + away,
    ):
        late = [end + allowed <= watermark for end in oracle.ends(theirs, t)]
        assert all(late) == (t < found.all_us), (t, found)
        assert any(late) == (t < found.some_us), (t, found)


@settings(max_examples=100)
@given(instants, lateness, beside)
def test_an_event_is_late_for_windows_in_event_order_once_it_has_passed_itself(
    watermark: int, allowed: int, away: int
) -> None:
    found = lateness_cut(Count("w", 3, 3, COUNT), watermark - allowed)
    for t in (found.all_us, found.all_us - 1, watermark - allowed + away):
        assert (t + 1 + allowed <= watermark) == (t < found.all_us) == (t < found.some_us)


def test_windows_of_millennia_end_too() -> None:
    """They begin in 1970, 4970, ..., so the first one of 3,000 years is over in 5000."""
    window = Tumbling("w", Grid(0, 36_000), COUNT)
    last, end = us(4969), us(4970)
    (cut,) = lateness_cuts(pipeline(window, lateness_us=0), end)
    assert (cut.all_us, cut.some_us) == (end, end)
    (cut,) = lateness_cuts(pipeline(window, lateness_us=0), last)
    assert cut.some_us == us(1970)


def us(year: int) -> int:
    return micros(datetime(year, 1, 1, tzinfo=UTC))


def test_nothing_is_late_for_a_global_window() -> None:
    assert lateness_cuts(pipeline(Global("g", COUNT)), 0) == ()
    assert suspicious_before(pipeline(Global("g", COUNT)), 0) is None


@settings(max_examples=300)
@given(
    marks,
    st.one_of(st.none(), st.tuples(instants, instants)),
    st.integers(0, 3 * DAY),
    st.integers(0, DAY),
    st.integers(0, DAY),
)
def test_a_quiet_source_moves_the_watermark_as_the_clock_goes_and_never_beyond_it(
    before: int | None, heard: tuple[int, int] | None, later: int, idle_after: int, delay: int
) -> None:
    quiet = None if heard is None else Quiet(heard[0], min(heard))
    arrival = later + (heard[0] if heard else 0)
    after = advance_idle_watermark(
        before, quiet, arrival, Watermark(delay, 0, HOUR, None, idle_after)
    )
    if quiet is None or later < idle_after:
        assert after == before
        return
    assert after is not None
    assert after == max([quiet.reached_us + later - delay] + ([] if before is None else [before]))
    assert after <= max([arrival - delay] + ([] if before is None else [before]))
    assert advance_idle_watermark(before, quiet, arrival, Watermark(delay, 0, HOUR)) == before
