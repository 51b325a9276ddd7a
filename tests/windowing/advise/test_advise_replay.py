"""A history replayed with proposed settings refuses exactly the events that were promised.

The oracle replays it: it knows nothing of margins.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.oracle import Event, Oracle
from tests.windowing.cases import (
    COUNT,
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Case,
    aligned,
    pipeline,
    tumbling,
    year,
)
from windowing.advise.history import (
    UNKNOWN_US,
    Batches,
    Events,
    History,
    build_history,
    find_margins,
    judge,
)
from windowing.advise.rule import Margins, Settings, propose
from windowing.grid.rule import Grid
from windowing.spec.kinds import Count, Global, RecordSliding, Session, Window
from windowing.spec.pipeline import Pipeline, Watermark

START = year(2026)


@dataclass(frozen=True)
class Batch:
    """Events that arrived together at an instant."""

    arrival: int
    events: list[Event]


lengths = st.one_of(
    st.integers(0, 3 * MINUTE),
    st.integers(0, 5 * HOUR),
    st.integers(0, 4 * DAY),
    st.sampled_from([0, MINUTE, HOUR, DAY]),
)


@st.composite
def histories(draw: st.DrawFn, *, with_ids: bool) -> list[Batch]:
    """Some batches, whose events are late or up to two hours ahead of the clock."""
    arrival, found, drawn = START, [], 0
    for _ in range(draw(st.integers(1, 6))):
        arrival += draw(st.sampled_from([0, SECOND, 7 * MINUTE, HOUR, 30 * HOUR]))
        events = []
        for late in draw(st.lists(lengths, min_size=1, max_size=6)):
            ahead = draw(st.sampled_from([0, 0, 0, 30 * MINUTE, 2 * HOUR]))
            name = draw(st.sampled_from([None, f"new{drawn}", "a", "b"])) if with_ids else None
            t = arrival - late + ahead
            # Copies of an event are equal.
            known = [e for batch in found for e in batch.events if e.id == name and name]
            known += [e for e in events if e.id == name and name]
            events.append(known[0] if known else Event(draw(st.sampled_from("xyz")), t, 1.0, name))
            drawn += 1
        found.append(Batch(arrival, events))
    return found


def number_events(batches: list[Batch]) -> tuple[Batches, Events]:
    """The same history as arrays."""
    rows = [(n, e) for n, batch in enumerate(batches) for e in batch.events]
    names = sorted({e.id for _, e in rows if e.id})
    arrays = [
        [n for n, _ in rows],
        [e.t for _, e in rows],
        ["xyz".index(str(e.key)) for _, e in rows],
        [0 for _ in rows],
        [names.index(e.id) if e.id else -1 for _, e in rows],
    ]
    arrived = np.array([batch.arrival for batch in batches], np.int64)
    known = Batches(arrived, np.full(len(batches), UNKNOWN_US))
    return known, Events(*(np.array(array, np.int64) for array in arrays))


def replay(
    asked: Pipeline, theirs: list[oracle.Window], batches: list[Batch], chosen: Settings
) -> tuple[int, int]:
    """How many events miss a window, and how many are refused, with the chosen settings."""
    mark = asked.watermark
    referee = Oracle(
        chosen.delay_us,
        chosen.lateness_us,
        mark.max_future_us,
        None,
        tuple(theirs),
        mark.idle_after_us,
    )
    late = 0
    for batch in batches:
        if mark.idle_after_us is not None:
            referee.run([], batch.arrival)
        counts = referee.run(batch.events, batch.arrival)
        late += counts["late"]
        # A silence would go on where all that a batch brought is late.
        assume(mark.idle_after_us is None or counts["accepted"] or not counts["late"])
    return late + sum(bool(a.missed) for a in referee.accepted), late


def find(asked: Pipeline, batches: list[Batch], every: int = 0) -> tuple[History, Margins]:
    """The history as arrays, and the margins of its events."""
    history = build_history(asked, *number_events(batches), every)
    return history, find_margins(judge(asked, history))


def made(windows: list[Window], idle: int | None) -> Pipeline:
    """A pipeline with these windows that may advance over silences."""
    return replace(pipeline(*windows), watermark=Watermark(0, 0, HOUR, idle_after_us=idle))


shares = st.sampled_from([Fraction(1, 2), Fraction(9, 10), Fraction(99, 100), Fraction(1)])
OTHERS: tuple[tuple[Window, oracle.Window], ...] = (
    (Count("c", 3, 3, COUNT), oracle.Count("c", 3)),
    (RecordSliding("r", HOUR, SECOND, COUNT), oracle.RecordSliding("r", HOUR, SECOND)),
    (Global("g", COUNT), oracle.Global("g")),
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.data(),
    st.lists(st.sampled_from(["1", "2", "3"]), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(OTHERS), max_size=2, unique_by=lambda pair: pair[0].name),
    st.sampled_from([None, None, 20 * MINUTE]),
    shares,
    shares,
)
def test_proposed_settings_refuse_what_was_promised(
    data: st.DataObject,
    names: list[str],
    others: list[tuple[Window, oracle.Window]],
    idle: int | None,
    on_time: Fraction,
    counted: Fraction,
) -> None:
    cases: list[Case] = [data.draw(aligned(name)) for name in names]
    batches = data.draw(histories(with_ids=data.draw(st.booleans())))
    asked = made([*(case.ours for case in cases), *(ours for ours, _ in others)], idle)
    theirs = [*(case.theirs for case in cases), *(them for _, them in others)]
    _, margins = find(asked, batches)
    assume(margins.first.total)
    chosen = propose(margins, on_time, counted)
    promised = margins.count_missed(chosen), margins.count_refused(chosen)
    assert replay(asked, theirs, batches, chosen) == promised
    assert promised[0] <= margins.first.total * (1 - counted)
    # Without any lateness, exactly the share that is not on time misses a window.
    at_once = Settings(chosen.delay_us, 0)
    missed, refused = replay(asked, theirs, batches, at_once)
    assert (missed, refused) == (margins.count_missed(at_once), margins.count_refused(at_once))
    assert missed <= margins.first.total * (1 - on_time)
    assert margins.count_correcting(chosen) == missed - promised[0]


@settings(max_examples=60, deadline=None)
@given(histories(with_ids=False), st.sampled_from([Fraction(1, 2), Fraction(1)]))
def test_needs_are_the_least(batches: list[Batch], share: Fraction) -> None:
    """With a microsecond less, too many events miss a window."""
    case = aligned_hour()
    asked = made([case.ours], None)
    _, margins = find(asked, batches)
    assume(margins.first.total)
    need = margins.need_for(share)
    allowed = margins.first.total * (1 - share)
    assert replay(asked, [case.theirs], batches, Settings(0, need))[0] <= allowed
    if need:
        assert replay(asked, [case.theirs], batches, Settings(0, need - 1))[0] > allowed


def aligned_hour() -> Case:
    """Hours of UTC."""
    return tumbling(Grid(HOUR))


@settings(max_examples=80, deadline=None)
@given(histories(with_ids=False), st.sampled_from([MINUTE, 30 * MINUTE]), shares, shares)
def test_of_sessions_at_most_what_was_promised_is_refused(
    batches: list[Batch], gap: int, on_time: Fraction, counted: Fraction
) -> None:
    asked = made([Session("s", gap, COUNT)], None)
    _, margins = find(asked, batches)
    assume(margins.first.total)
    chosen = propose(margins, on_time, counted)
    missed, refused = replay(asked, [oracle.Session("s", gap=gap)], batches, chosen)
    assert missed <= margins.count_missed(chosen)
    assert refused <= margins.count_refused(chosen)


@settings(max_examples=80, deadline=None)
@given(histories(with_ids=True), st.sampled_from([HOUR, DAY]), shares)
def test_batches_of_one_stretch_are_one_run(
    batches: list[Batch], every: int, counted: Fraction
) -> None:
    case = aligned_hour()
    asked = made([case.ours], None)
    together: dict[int, Batch] = {}
    for batch in batches:
        stretch = batch.arrival // every
        before = together.get(stretch, Batch(batch.arrival, []))
        together[stretch] = Batch(batch.arrival, [*before.events, *batch.events])
    history, margins = find(asked, batches, every)
    assert history.batches.arrived_us.tolist() == [b.arrival for b in together.values()]
    assume(margins.first.total)
    chosen = propose(margins, counted, counted)
    promised = margins.count_missed(chosen), margins.count_refused(chosen)
    assert replay(asked, [case.theirs], [*together.values()], chosen) == promised


def test_a_silence_goes_on_over_copies() -> None:
    """Seven minutes after a copy came it has been quiet for longer than the twenty minutes."""
    asked = made([aligned_hour().ours], 20 * MINUTE)
    first, copy = Event("x", START, 1.0, "a"), Event("x", START, 1.0, "a")
    arrivals = (START, START + 17 * MINUTE, START + 24 * MINUTE)
    new = Event("x", START + 24 * MINUTE, 1.0, "b")
    batches = [Batch(at, [e]) for at, e in zip(arrivals, (first, copy, new), strict=True)]
    history = build_history(asked, *number_events(batches), 0)
    assert judge(asked, history).over_first.tolist() == [START + 24 * MINUTE - START - HOUR]
