"""Lengths, quantiles, steps and settings, as loops find them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.windowing.cases import DAY, HOUR, MINUTE, SECOND
from windowing.advise.rule import (
    Lengths,
    Margins,
    Settings,
    describe_length,
    describe_part,
    propose,
    read_share,
    round_up,
    write_share,
)

lengths = st.lists(st.integers(-3 * DAY, 400 * DAY), max_size=30)
some = st.lists(st.integers(-3 * DAY, 400 * DAY), min_size=1, max_size=30)
shares = st.fractions(0, 1).filter(bool)


@given(some, shares)
def test_a_quantile_is_the_least_that_so_many_do_not_exceed(
    values: list[int], share: Fraction
) -> None:
    found = Lengths.of(np.array(values)).quantile(share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) < share * len(values)


@given(lengths, st.integers(-4 * DAY, 401 * DAY))
def test_counts_are_exact(values: list[int], least: int) -> None:
    found = Lengths.of(np.array(values, np.int64))
    assert found.total == len(values)
    for at in {least, *values}:
        assert found.count_from(at) == sum(value >= at for value in values)


@given(lengths)
def test_each_length_is_in_one_step_that_is_narrow(values: list[int]) -> None:
    steps = Lengths.of(np.array(values, np.int64)).histogram()
    assert [step.low_us for step in steps] == sorted(step.low_us for step in steps)
    for before, after in zip(steps, steps[1:], strict=False):
        assert before.high_us <= after.low_us
    for step in steps:
        inside = [value for value in values if step.low_us <= value < step.high_us]
        below = [value for value in values if value < 0]
        assert step.count == len(below if step.high_us == 0 else inside) > 0
        if step.high_us > 0:
            assert step.high_us - step.low_us <= max(1_000, step.low_us / 16)


def test_of_nothing_there_is_no_quantile() -> None:
    nothing = Lengths.of(np.array([], np.int64))
    with pytest.raises(ValueError, match="no length"):
        nothing.quantile(Fraction(1))
    assert (nothing.total, nothing.count_from(0), nothing.histogram()) == (0, 0, [])


@given(st.integers(0, 1000 * DAY))
def test_lengths_that_read_well_are_at_most_a_tenth_longer(us: int) -> None:
    assert us <= round_up(us) <= max(us * 1.1, us + 999)


def test_a_proposal_reads_well() -> None:
    times = [0, MINUTE + SECOND, 13 * MINUTE, 26 * HOUR + 3 * SECOND]
    margins = Margins(*(Lengths.of(np.array(times)) for _ in range(3)))
    assert propose(margins, Fraction(1, 2), Fraction(1)) == Settings(65 * SECOND, 26 * HOUR)
    assert propose(margins, Fraction(1), Fraction(1, 2)) == Settings(27 * HOUR, 0)
    early = Margins(*(Lengths.of(np.array([-HOUR, -MINUTE])) for _ in range(3)))
    assert propose(early, Fraction(1), Fraction(1)) == Settings(0, 0)


def test_what_events_do_adds_up() -> None:
    margins = Margins(*(Lengths.of(np.array([-5, 0, 10, 20])) for _ in range(3)))
    chosen = Settings(1, 15)
    assert margins.count_missed(chosen) == margins.count_refused(chosen) == 1
    assert margins.count_correcting(chosen) == margins.count_corrections(chosen) == 1
    assert margins.count_correcting(Settings(0, 10)) == 1
    assert margins.count_missed(Settings(0, 10)) == 2


@pytest.mark.parametrize("text", ["0", "-1", "100.1", "many", "", "1/0"])
def test_shares_are_above_nothing_and_at_most_all(text: str) -> None:
    with pytest.raises((ValueError, ZeroDivisionError)):
        read_share(text)


def test_shares_are_read_as_they_are_written() -> None:
    for text in ("100 %", "99.9 %", "50 %"):
        assert write_share(read_share(text)) == text
    assert read_share(" 12.5% ") == Fraction(1, 8)


def test_lengths_are_told_by_two_units() -> None:
    assert describe_length(59 * MINUTE + 59 * SECOND + 1) == "60 min"
    assert describe_length(HOUR) == "1 h"
    assert describe_length(400 * DAY + 1) == "400 d 1 h"
    assert describe_length(1) == "0.001 s"
    assert describe_length(-90 * SECOND) == "-1 min 30 s"


def test_parts_keep_two_digits() -> None:
    assert describe_part(999, 1000) == "99.9 %"
    assert describe_part(11_942, 11_943) == "99.9916 %"
    assert describe_part(1, 2) == "50 %"
