"""Grids against an independent reading of the tz database: the oracle's loops over zoneinfo."""

from datetime import UTC, datetime
from functools import cache
from zlib import crc32
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle, wall_clock
from tests.windowing.cases import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    cumulate,
    instants,
    monthly,
    nested,
    stepped,
    tumbling,
    year,
    zones,
)
from windowing.grid.rule import Grid, boundary, grid_runs, index, local_spans
from windowing.grid.zone import FIRST_US, LAST_US, micros, moment, transitions

ZONES = sorted(available_timezones() - {"localtime"})
PER_ZONE = 8
"""Transitions looked at in each zone, spread over its history."""


def offset(zone: str, t: int) -> int:
    """Wall clock minus UTC, microseconds."""
    return wall_clock.wall(t, zone) - t


@cache
def jumps(zone: str) -> tuple[int, ...]:
    """Instants from 1970 to 2030 at which the clock jumps.

    Two jumps that undo each other within a month are overlooked.
    """
    months = [
        micros(datetime(y, m, 1, tzinfo=UTC)) for y in range(1970, 2031) for m in range(1, 13)
    ]
    info, found = ZoneInfo(zone), []
    offsets = [moment(t).astimezone(info).utcoffset() for t in months]
    for low, high, before, after in zip(months, months[1:], offsets, offsets[1:], strict=False):
        if before != after:
            found.append(_first_second(info, low // SECOND, high // SECOND) * SECOND)
    return tuple(found)


def _first_second(info: ZoneInfo, low: int, high: int) -> int:
    target = moment(high * SECOND).astimezone(info).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle)
            if moment(middle * SECOND).astimezone(info).utcoffset() == target
            else (middle, high)
        )
    return high


def sampled(zone: str) -> tuple[int, ...]:
    """At most PER_ZONE of the zone's jumps, the same ones every time, others in each zone."""
    every = jumps(zone)
    if len(every) <= PER_ZONE:
        return every
    return tuple(
        every[(crc32(zone.encode()) + i * len(every) // PER_ZONE) % len(every)]
        for i in range(PER_ZONE)
    )


def check(grid: Grid, t: int) -> None:
    """The window of `t` holds it, and its bounds are the oracle's."""
    truth, k = tumbling(grid).theirs, index(grid, t)
    start, end = boundary(grid, k), boundary(grid, k + 1)
    assert isinstance(truth, oracle.Tumbling)
    assert start <= t < end, (grid, t)
    assert (start, end) == oracle.span(truth, k), (grid, t)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_the_window_of_an_instant_beside_every_jump_is_the_oracles(part: int) -> None:
    grids = [(HOUR, 0), (30 * MINUTE, 0), (DAY, 0), (DAY, 23 * HOUR + 59 * MINUTE)]
    for zone in ZONES[part::4]:
        for at in sampled(zone):
            for step, origin in grids:
                for t in (at - 1, at, at + 1, at + 30 * MINUTE, at - HOUR):
                    check(Grid(step, 0, origin, zone), t)


@pytest.mark.parametrize(("step", "inner"), [(DAY, 7 * HOUR), (2 * DAY, 13 * HOUR)])
def test_the_windows_of_a_period_beside_a_jump_are_the_oracles(step: int, inner: int) -> None:
    """The period that the clock changes in is not laid out as those around it are."""
    for zone in ZONES[::4]:
        grid = Grid(step, 0, 0, zone, inner)
        for at in sampled(zone)[:2]:
            for t in (at - DAY, at - 1, at, at + HOUR, at + DAY):
                k = index(grid, t)
                start = boundary(grid.periods, index(grid.periods, t))
                ends = {boundary(grid, n) for n in range(k + 1, (k // grid.per + 1) * grid.per + 1)}
                assert {(start, end) for end in ends} == oracle.spans(cumulate(grid).theirs, t), (
                    grid,
                    t,
                )


def test_months_that_begin_beside_a_jump_are_the_oracles() -> None:
    for zone in ZONES:
        for at in sampled(zone)[:2]:
            local = at + offset(zone, at - 1)
            for origin in (local, local + 30 * MINUTE):
                check(Grid(0, 1, origin, zone), at)


def test_local_time_has_no_hole_and_no_overlap() -> None:
    for zone in ZONES:
        for at in sampled(zone)[:2]:
            spans = local_spans(zone, at - DAY, at + DAY)
            assert spans[0].low_us <= wall_clock.wall(at - DAY, zone)
            assert spans[-1].high_us > wall_clock.wall(at + DAY, zone)
            assert all(a.high_us == b.low_us for a, b in zip(spans, spans[1:], strict=False)), zone
            assert all(s.low_us < s.high_us for s in spans), zone
            for local in (
                at + offset(zone, at - 1) + d for d in (-HOUR, -1, 0, 1, 30 * MINUTE, HOUR)
            ):
                (span,) = (s for s in spans if s.low_us <= local < s.high_us)
                instant = span.at_us + (local - span.low_us if span.on_clock else 0)
                assert instant == wall_clock.instant(local, zone), (zone, local)
                assert span.on_clock == (wall_clock.wall(instant, zone) == local), (zone, local)


@pytest.mark.slow
def test_every_jump_is_found_where_the_clock_jumps() -> None:
    for zone in ZONES[::10]:
        found = [at for at, _ in transitions(zone, year(1970), year(2031) - 1)]
        assert set(jumps(zone)) <= {*found, year(1970)}, zone
        assert all(offset(zone, at) != offset(zone, at - 1) for at in found[1:]), zone


@settings(max_examples=500)
@given(stepped(), instants)
def test_a_window_holds_its_instant(grid: Grid, t: int) -> None:
    check(grid, t)


@settings(max_examples=300)
@given(monthly(), instants)
def test_a_calendar_window_holds_its_instant_and_is_clamped_to_month_ends(
    grid: Grid, t: int
) -> None:
    check(grid, t)


@settings(max_examples=200)
@given(st.one_of(stepped(), monthly()), instants, st.integers(0, 40))
def test_boundaries_are_in_order_and_end_where_the_next_begins(
    grid: Grid, t: int, reach: int
) -> None:
    k = index(grid, t)
    found = [boundary(grid, n) for n in range(k - reach, k + 2)]
    assert found == sorted(found)
    # Of boundaries that coincide in a gap the last one counts: windows are never empty.
    assert all(
        index(grid, b) == k - reach + found.index(b) + found.count(b) - 1 for b in found[:-1]
    )


@settings(max_examples=300)
@given(st.one_of(stepped(), monthly(), nested()), instants, st.integers(0, 400 * DAY))
def test_runs_say_every_boundary_of_a_range_once(grid: Grid, low: int, length: int) -> None:
    high = low + min(length, 300 * (grid.step_us or 31 * DAY))
    pieces = grid_runs(grid, low, high)
    ends = [p.last for p in pieces if p.last is not None]
    if not ends:
        assert len(pieces) == 1
        return
    assert [p.first for p in pieces[1:]] == [end + 1 for end in ends[:-1]]
    assert all(p.step_us >= 0 and p.first <= end for p, end in zip(pieces, ends, strict=True))
    first, last = index(grid, low), index(grid, high) + 1
    assert pieces[0].first <= first
    assert last <= ends[-1]
    for k in {first, last, (first + last) // 2}:
        (piece,) = (p for p, end in zip(pieces, ends, strict=True) if p.first <= k <= end)
        periods, inner = divmod(k - piece.first, piece.per)
        assert piece.at_us + periods * piece.step_us + inner * piece.inner_us == boundary(grid, k)


@pytest.mark.parametrize(
    "zone", [None, "Europe/Berlin", "America/New_York", "Pacific/Apia", "Pacific/Kiritimati"]
)
def test_the_first_and_the_last_event_time_there_is_have_windows(zone: str | None) -> None:
    steps = [
        Grid(DAY, 0, 0, zone),
        Grid(7 * DAY, 0, 3 * DAY, zone),
        Grid(DAY, 0, 0, zone, 7 * HOUR),
        Grid(0, 1, 20 * DAY, zone),
    ]
    years = [
        Grid(0, 12, 0, zone),
        Grid(0, 12, 90 * MINUTE, zone, 0, 12),
        Grid(0, 1200, 0, zone, 0, 1),
    ]
    for grid in (*steps, *years, Grid(36_500 * DAY, 0, 0, zone, 7 * HOUR)):
        for t in (FIRST_US, FIRST_US + 1, LAST_US - HOUR, LAST_US):
            k = index(grid, t)
            assert boundary(grid, k) <= t < boundary(grid, k + 1), (grid, t)


@pytest.mark.parametrize(
    "grid",
    [
        Grid(DAY, 0, 0, "America/New_York", 7 * HOUR),
        Grid(36_500 * DAY, 0, 0, "America/New_York", 7 * HOUR),
        Grid(0, 1200, 0, "Europe/Berlin", 0, 1),
        Grid(0, 1200, 0, "America/New_York", DAY),
    ],
)
def test_a_year_is_a_few_runs(grid: Grid) -> None:
    """Each run is a branch of every query.

    Equal periods between two changes of the clock share one, and of long periods only a part is
    laid out.
    """
    low = micros(datetime(2025, 1, 1, tzinfo=UTC))
    assert len(grid_runs(grid, low, low + 365 * DAY)) < 30


@settings(max_examples=200)
@given(st.integers(-200, 200), st.integers(1, 10_000_000), st.integers(-10_000_000, 10_000_000))
def test_without_a_zone_boundaries_are_plain_multiples(k: int, step: int, origin: int) -> None:
    assert boundary(Grid(step, 0, origin), k) == origin + k * step
    assert index(Grid(step, 0, origin), origin + k * step) == k
    assert index(Grid(step, 0, origin), origin + k * step - 1) == k - 1


@settings(max_examples=200)
@given(zones, instants, st.integers(1, 23))
def test_days_have_as_many_hours_as_the_clock_says(zone: str | None, t: int, at_hour: int) -> None:
    grid = Grid(DAY, 0, at_hour * HOUR, zone)
    k = index(grid, t)
    for at in (boundary(grid, k), boundary(grid, k + 1)):
        shown = wall_clock.wall(at, zone)
        over = (shown - at_hour * HOUR) % DAY
        # Where the clock jumps over that hour, the day begins at the end of the jump.
        assert over == 0 or wall_clock.wall(at - 1, zone) < shown - over


def us(text: str) -> int:
    """Microseconds of an ISO time with an offset."""
    return micros(datetime.fromisoformat(text))


@pytest.mark.parametrize(
    ("grid", "t", "start", "end"),
    [
        # Spring: the hour [2, 3) is not on the clock; fall: one window of two hours.
        (
            Grid(HOUR, 0, 0, "America/New_York"),
            "2026-03-08T01:30:00-05:00",
            "2026-03-08T01:00:00-05:00",
            "2026-03-08T03:00:00-04:00",
        ),
        (
            Grid(HOUR, 0, 0, "America/New_York"),
            "2026-11-01T01:30:00-05:00",
            "2026-11-01T01:00:00-04:00",
            "2026-11-01T02:00:00-05:00",
        ),
        (
            Grid(DAY, 0, 0, "America/New_York"),
            "2026-03-08T12:00:00-04:00",
            "2026-03-08T00:00:00-05:00",
            "2026-03-09T00:00:00-04:00",
        ),
        # Midnight itself is in the gap: the day begins with the jump.
        (
            Grid(DAY, 0, 0, "America/Havana"),
            "2026-03-08T12:00:00-04:00",
            "2026-03-08T01:00:00-04:00",
            "2026-03-09T00:00:00-04:00",
        ),
        # The day that Samoa left out.
        (
            Grid(DAY, 0, 0, "Pacific/Apia"),
            "2011-12-29T23:00:00-10:00",
            "2011-12-29T00:00:00-10:00",
            "2011-12-31T00:00:00+14:00",
        ),
        (
            Grid(DAY, 0, -MINUTE, None),
            "1969-12-31T23:59:00+00:00",
            "1969-12-31T23:59:00+00:00",
            "1970-01-01T23:59:00+00:00",
        ),
        (
            Grid(0, 1, us("2024-01-31T00:00Z"), None),
            "2023-02-28T00:00Z",
            "2023-02-28T00:00Z",
            "2023-03-31T00:00Z",
        ),
        (
            Grid(0, 12, us("2024-02-29T00:00Z"), None),
            "1967-03-01T00:00Z",
            "1967-02-28T00:00Z",
            "1968-02-29T00:00Z",
        ),
    ],
)
def test_windows_one_can_check_by_hand(grid: Grid, t: str, start: str, end: str) -> None:
    k = index(grid, us(t))
    assert (moment(boundary(grid, k)), moment(boundary(grid, k + 1))) == (
        moment(us(start)),
        moment(us(end)),
    )


@pytest.mark.parametrize(("step", "months"), [(0, 0), (1, 1), (-1, 0), (0, -1)])
def test_a_grid_has_a_step_or_months(step: int, months: int) -> None:
    with pytest.raises(ValueError, match="positive step or positive months"):
        Grid(step, months)
