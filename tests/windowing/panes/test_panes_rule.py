"""Panes: finer than every window, no finer than needed, each instant in exactly one."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.windowing.cases import (
    COUNT,
    DAY,
    HOUR,
    MINUTE,
    Case,
    aligned,
    cumulate,
    instants,
    nested,
    pipeline,
    tumbling,
)
from windowing.grid.rule import Grid, boundary, index
from windowing.grid.zone import micros, moment
from windowing.panes.rule import (
    CHEAP,
    Family,
    buffered_columns,
    grid_shape,
    longest_span,
    pane_end,
    pane_families,
    pane_grids,
    pane_start,
    state_names,
    state_of,
    windows_of_pane,
)
from windowing.spec.kinds import (
    Aggregate,
    Count,
    Cumulate,
    Delta,
    Expression,
    Global,
    Session,
    Sliding,
    Tumbling,
)

several = st.lists(aligned(), min_size=1, max_size=4).map(
    lambda cases: [_named(c, f"w{n}") for n, c in enumerate(cases)]
)


def _named(case: Case, name: str) -> Case:
    return Case(replace(case.ours, name=name), replace(case.theirs, name=name))


def _family_of(families_of: tuple[Family, ...], name: str) -> Family:
    (family,) = (f for f in families_of if name in {w.name for w in f.windows})
    return family


@pytest.mark.slow
@settings(max_examples=500)
@given(several, instants)
def test_no_window_begins_or_ends_inside_a_pane(cases: list[Case], t: int) -> None:
    found = pane_families(pipeline(*(c.ours for c in cases)))
    for case in cases:
        family = _family_of(found, case.ours.name)
        start, end = pane_start(family, t), pane_end(family, t)
        assert start <= t < end
        assert (
            oracle.spans(case.theirs, start)
            == oracle.spans(case.theirs, t)
            == oracle.spans(case.theirs, end - 1)
        )


@settings(max_examples=200)
@given(several, instants)
def test_a_pane_ends_where_the_next_begins_and_where_a_window_does(
    cases: list[Case], t: int
) -> None:
    for family in pane_families(pipeline(*(c.ours for c in cases))):
        end = pane_end(family, t)
        assert pane_start(family, end) == end
        assert pane_start(family, end - 1) == pane_start(family, t)
        own = [c.theirs for c in cases if c.ours in family.windows]
        assert any(oracle.spans(w, end - 1) != oracle.spans(w, end) for w in own)


@settings(max_examples=200)
@given(several)
def test_families_share_out_the_windows_and_have_their_own_tables(cases: list[Case]) -> None:
    found = pane_families(pipeline(*(c.ours for c in cases), Session("s", MINUTE, COUNT)))
    names = [w.name for f in found for w in f.windows]
    assert sorted(names) == sorted(c.ours.name for c in cases)
    assert len({f.table for f in found}) == len(found)
    assert all(f.table.startswith("_panes_") and f.cuts for f in found)


@settings(max_examples=300)
@given(aligned().filter(lambda case: not isinstance(case.ours, Cumulate)), instants)
def test_the_steps_of_a_window_are_its_bounds(case: Case, t: int) -> None:
    form = grid_shape(case.ours)
    assert form.size >= form.slide >= 1
    last = index(form.grid, t) // form.slide
    for j in (last - 1, last, last + 1):
        bounds = (
            boundary(form.grid, j * form.slide),
            boundary(form.grid, j * form.slide + form.size),
        )
        assert bounds == oracle.span(case.theirs, j)


@settings(max_examples=300)
@given(aligned(), instants)
def test_the_span_is_never_shorter_than_a_window(case: Case, t: int) -> None:
    assert all(
        end - start <= longest_span(case.ours) for start, end in oracle.spans(case.theirs, t)
    )


@pytest.mark.parametrize("step", [30 * MINUTE, HOUR, DAY])
def test_the_span_covers_a_window_in_which_the_clock_goes_back(step: int) -> None:
    case = tumbling(Grid(step, 0, 0, "Europe/Berlin"))
    back = micros(datetime(2026, 10, 25, 1, tzinfo=UTC))
    ((start, end),) = oracle.spans(case.theirs, back)
    assert step < end - start <= longest_span(case.ours)


@settings(max_examples=100)
@given(aligned(), instants)
def test_the_cuts_of_a_window_are_its_boundaries_and_no_more(case: Case, t: int) -> None:
    at = {boundary(g, index(g, t) + 1) for g in pane_grids(case.ours)}
    changes = [b for b in at if oracle.spans(case.theirs, b - 1) != oracle.spans(case.theirs, b)]
    assert len(changes) == len(at)


def test_windows_share_panes_while_those_are_few() -> None:
    hourly, daily = Tumbling("hourly", Grid(HOUR), COUNT), Tumbling("daily", Grid(DAY), COUNT)
    rolling = Sliding("rolling", Grid(15 * MINUTE), 3 * HOUR, COUNT)
    year = Tumbling("year", Grid(0, 12), COUNT)
    found = pane_families(pipeline(hourly, daily, rolling, year))
    assert [(f.table, [w.name for w in f.windows]) for f in found] == [
        ("_panes_15m", ["rolling", "hourly", "daily"]),
        ("_panes_12mo", ["year"]),
    ]
    assert found[0].cuts == (Grid(15 * MINUTE),)
    assert year.grid.months * 31 * DAY > CHEAP * 15 * MINUTE


def test_a_size_that_is_no_multiple_of_the_slide_cuts_twice_a_slide() -> None:
    ragged = Sliding("ragged", Grid(10 * MINUTE), 25 * MINUTE, COUNT)
    (family,) = pane_families(pipeline(ragged))
    assert family.cuts == (Grid(10 * MINUTE), Grid(10 * MINUTE, 0, 5 * MINUTE))
    edges = [pane_start(family, 0)]
    while len(edges) < 5:
        edges.append(pane_end(family, edges[-1]))
    assert [b - a for a, b in pairwise(edges)] == [5 * MINUTE] * 4


def test_a_family_shows_each_aggregate_once() -> None:
    total = Aggregate("total", "sum", "x")
    hourly, daily = (
        Tumbling("hourly", Grid(HOUR), (*COUNT, total)),
        Tumbling("daily", Grid(DAY), (total,)),
    )
    (family,) = pane_families(pipeline(hourly, daily))
    assert family.aggregates == (*COUNT, total)


@settings(max_examples=100)
@given(nested(), instants)
def test_the_windows_of_a_period_run_from_its_beginning_to_each_inner_boundary(
    grid: Grid, t: int
) -> None:
    period, k = index(grid.periods, t), index(grid, t)
    start = boundary(grid.periods, period)
    ends = {boundary(grid, n) for n in range(k + 1, (k // grid.per + 1) * grid.per + 1)}
    assert period == k // grid.per
    assert {(start, end) for end in ends} == oracle.spans(cumulate(grid).theirs, t)


def test_global_windows_have_panes_of_their_own() -> None:
    hourly, all_time = Tumbling("hourly", Grid(HOUR), COUNT), Global("all_time", COUNT)
    found = pane_families(pipeline(hourly, all_time))
    assert [(f.table, f.windows) for f in found] == [
        ("_panes_1h", (hourly,)),
        ("_panes_global", (all_time,)),
    ]


def test_a_pane_without_a_cut_on_the_calendar_ends_with_it() -> None:
    decades = Family("_panes", (Grid(0, 120), Grid(DAY)), ())
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
    assert moment(pane_start(decades, micros(first))) == first
    assert moment(pane_end(decades, micros(last))) == datetime.max.replace(tzinfo=UTC)
    only_decades = Family("_panes", (Grid(0, 120),), ())
    assert moment(pane_start(only_decades, micros(first))) == first
    assert moment(pane_end(only_decades, micros(last))) == datetime.max.replace(tzinfo=UTC)


@settings(max_examples=300)
@given(aligned(), instants)
def test_an_instant_is_in_no_more_windows_than_a_pane_may_be(case: Case, t: int) -> None:
    assert len(oracle.spans(case.theirs, t)) <= windows_of_pane(case.ours)


def test_a_pane_is_in_as_many_windows_as_slides_fit_into_a_size() -> None:
    rolling = Sliding("rolling", Grid(15 * MINUTE), 3 * HOUR, COUNT)
    ragged = Sliding("ragged", Grid(10 * MINUTE), 25 * MINUTE, COUNT)
    assert windows_of_pane(rolling) == 12
    assert windows_of_pane(ragged) == 3
    assert windows_of_pane(Tumbling("hourly", Grid(HOUR), COUNT)) == 1


def test_each_window_has_one_state_table_and_ids_are_those_of_all_windows() -> None:
    hourly, ever = Tumbling("hourly", Grid(HOUR), COUNT), Global("ever", COUNT)
    visits, pairs = Session("visits", 5 * MINUTE, COUNT), Count("pairs", 2, 2, COUNT)
    without_ids = pipeline(hourly, ever, visits, pairs)
    states = {
        "_panes_1h": ("hourly",),
        "_panes_global": ("ever",),
        "_fragments_visits": ("visits",),
        "_events": ("pairs",),
    }
    assert state_names(without_ids) == states
    with_ids = replace(without_ids, source=replace(without_ids.source, event_id="id"))
    assert state_names(with_ids) == states | {"_seen": ("hourly", "ever", "visits", "pairs")}
    assert [state_of(with_ids, window) for window in with_ids.windows] == [*states]


def test_events_are_kept_with_the_columns_that_their_windows_read_each_once() -> None:
    total = Aggregate("total", "sum", "x", where=Expression("c > x", ("c", "x")))
    gate = Aggregate("gate", "max_by", "a", by="key")
    grows = Delta("grows", "level", "1.5", None, (total, gate))
    hourly = Tumbling("hourly", Grid(HOUR), (Aggregate("other", "sum", "of_panes"),))
    told = pipeline(hourly, grows)
    source = replace(told.source, event_id="id", order_by=("seq", "level"))
    assert buffered_columns(replace(told, source=source)) == ("x", "c", "a", "level", "id", "seq")
    assert buffered_columns(pipeline(hourly)) == ()


def test_windows_that_end_at_boundaries_of_periods_have_no_number() -> None:
    case = cumulate(Grid(DAY, inner_us=HOUR))
    with pytest.raises(TypeError, match="does not lie on equal steps"):
        grid_shape(case.ours)
