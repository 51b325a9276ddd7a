"""Grids and clocks over many instants at once: what the rule says of each, and what clocks show."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import wall_clock
from tests.windowing.cases import DAY, HOUR, MINUTE, instants, monthly, nested, stepped, zones
from windowing.grid.boundaries import (
    Boundaries,
    find_instants,
    find_local_hours,
    find_offsets,
)
from windowing.grid.rule import Grid, boundary, index
from windowing.grid.zone import transitions

many = st.lists(instants, min_size=1, max_size=4)
apart = st.lists(st.integers(0, 400 * DAY), min_size=1, max_size=8)
uneven = st.sampled_from([5 * HOUR, 7 * HOUR, 13 * HOUR])
grids = st.one_of(
    stepped(),
    monthly(),
    nested(),
    st.builds(Grid, st.just(DAY), st.just(0), st.just(0), zones, uneven),
    st.builds(Grid, st.sampled_from([15 * MINUTE, 20 * MINUTE]), st.just(0), st.just(0), zones),
)


def list_beside_jumps(zone: str | None, low: int, high: int) -> list[int]:
    """Instants within an hour and a half of each jump of the clock."""
    beside = (-1, 0, 1, HOUR // 2, HOUR - 1, HOUR, 3 * HOUR // 2)
    jumps = transitions(zone, low, high)[1:] if zone else []
    return [at + after for at, _ in jumps for after in beside]


@settings(max_examples=150)
@given(grids, instants, apart)
def test_boundaries_are_those_of_the_rule(grid: Grid, first: int, apart: list[int]) -> None:
    t = [first + each for each in apart]
    t += list_beside_jumps(grid.zone, min(t), max(t))
    found = Boundaries(grid, min(t) - 1, max(t))
    # Boundaries that coincide are told apart by the instants before them.
    for at in (t, [each - 1 for each in t]):
        numbers = found.find_numbers(np.array(at, np.int64))
        assert numbers.tolist() == [index(grid, each) for each in at]
        begun = found.find_instants(numbers).tolist()
        assert begun == [boundary(grid, k) for k in numbers.tolist()]


@settings(max_examples=100)
@given(zones, many)
def test_offsets_and_hours_are_those_of_the_clock(zone: str | None, t: list[int]) -> None:
    at, shown = np.array(t, np.int64), [wall_clock.wall(each, zone) for each in t]
    assert (at + find_offsets(zone, at)).tolist() == shown
    assert find_local_hours(zone, at).tolist() == [each // HOUR % 24 for each in shown]


@settings(max_examples=100)
@given(zones, many)
def test_instants_are_those_at_which_the_clock_shows_a_time(
    zone: str | None, local: list[int]
) -> None:
    beside = list_beside_jumps(zone, min(local) - 400 * DAY, max(local) + 400 * DAY)[:300]
    # The first are shown twice where the clock went back, the others never where it went on.
    local += [wall_clock.wall(t, zone) for t in beside]
    local += [wall_clock.wall(t, zone) - HOUR // 2 for t in beside]
    found, on_clock = find_instants(zone, np.array(local, np.int64))
    for each, at, is_shown in zip(local, found.tolist(), on_clock.tolist(), strict=True):
        first = wall_clock.instant(each, zone)
        assert is_shown == (wall_clock.wall(first, zone) == each)
        assert not is_shown or at == first


def test_of_no_local_times_there_are_no_instants() -> None:
    found, on_clock = find_instants("Europe/Berlin", np.array([], np.int64))
    assert (len(found), len(on_clock)) == (0, 0)
