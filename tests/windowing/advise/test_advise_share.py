"""Curves of what arrives, from windows of which the youngest are not complete."""

import numpy as np
import pytest

from tests.windowing.cases import HOUR, MINUTE
from windowing.advise.share import Pairs, ShareCurve, check_curve, learn_curve

SIZE, EACH, LONGEST = 10 * MINUTE, 240, 2 * HOUR


def plant(windows: int) -> Pairs:
    """Windows after one another; the events of each arrive evenly in the two hours after it."""
    number = np.repeat(np.arange(windows), EACH)
    late = np.tile((np.arange(EACH) + 1) * LONGEST // EACH, windows)
    start = number * SIZE
    return Pairs(start, start + SIZE, start + SIZE + late, np.zeros(len(start), np.int64))


def test_what_has_not_arrived_yet_is_not_taken_for_complete() -> None:
    """In three hours six of eighteen windows are complete, and the youngest have just begun."""
    curve = learn_curve(plant(18), 3 * HOUR)
    assert curve is not None
    for age, share in ((30 * MINUTE, 0.25), (HOUR, 0.5), (90 * MINUTE, 0.75), (LONGEST, 1.0)):
        assert curve.find_share(age) == pytest.approx(share, abs=0.005)
        assert curve.find_age(share) == pytest.approx(age, abs=MINUTE)
    # All windows as if they were complete.
    known = plant(18)
    of_all = (known.arrived - known.end)[known.arrived <= 3 * HOUR]
    assert np.mean(of_all <= HOUR) > 0.55


def test_a_curve_begins_with_nothing_and_ends_with_all() -> None:
    curve = ShareCurve(np.array([-5, 0, 7]), np.array([0.25, 0.5, 1.0]))
    assert [curve.find_share(age) for age in (-6, -5, -1, 0, 6, 7, 99)] == [
        0, 0.25, 0.25, 0.5, 0.5, 1, 1,
    ]  # fmt: skip
    assert [curve.find_age(share) for share in (0.1, 0.25, 0.3, 1)] == [-5, -5, 0, 7]


@pytest.mark.parametrize(("windows", "until"), [(0, HOUR), (4, 9 * HOUR), (18, 40 * MINUTE)])
def test_of_few_windows_nothing_is_learned(windows: int, until: int) -> None:
    assert learn_curve(plant(windows), until) is None
    assert check_curve(plant(windows), until, 2 * until) == ()


def test_checks_compare_with_windows_that_began_later() -> None:
    pairs = plant(60)
    # From the middle on nothing is late any more.
    middle, until = 5 * HOUR, 10 * HOUR
    sudden = np.where(pairs.start >= middle, pairs.end, pairs.arrived)
    checks = check_curve(Pairs(pairs.start, pairs.end, sudden, pairs.number), middle, until)
    assert [round(each.expected, 2) for each in checks] == [0.5, 0.9, 0.99]
    assert {each.was for each in checks} == {1.0}
    assert {each.windows for each in checks} == {18}
    same = check_curve(pairs, middle, until)
    assert [round(each.was, 2) for each in same] == [0.5, 0.9, 0.99]
    # Too few have begun and are old enough since.
    assert check_curve(pairs, 9 * HOUR, until) == ()
