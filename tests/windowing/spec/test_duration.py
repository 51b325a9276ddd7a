"""Durations: what people write, and that it can be read back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowing.spec.duration import DAY, HOUR, MINUTE, SECOND, WEEK, Duration

UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
    "week": WEEK,
}


@pytest.mark.parametrize(
    ("text", "us", "months"),
    [
        ("15 minutes", 15 * MINUTE, 0),
        ("1 hour 30 minutes", 90 * MINUTE, 0),
        ("  2 Days ", 2 * DAY, 0),
        ("1 week", WEEK, 0),
        ("-1 hour", -HOUR, 0),
        ("-1 hour 30 minutes", -30 * MINUTE, 0),
        ("+5 seconds", 5 * SECOND, 0),
        ("0 seconds", 0, 0),
        ("0 months", 0, 0),
        ("1 year 1 quarter 1 month", 0, 16),
        ("1\thour\n1  minute", HOUR + MINUTE, 0),
        ("1 microsecond", 1, 0),
    ],
)
def test_it_reads_what_people_write(text: str, us: int, months: int) -> None:
    assert Duration.parse(text) == Duration(us, months)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "hour",
            "1",
            "1hour",
            "1.5 hours",
            "1 hour 30",
            "1 hour, 5 minutes",
            "an hour",
            "+-1 hour",
        ),
        *("x1 hour", "1 hour1 minute", "PT1H", "1 h", "5 minutess"),
    ],
)
def test_it_refuses_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="units are microsecond, .*year"):
        Duration.parse(text)


def test_it_names_an_unknown_unit() -> None:
    with pytest.raises(ValueError, match="'3 fortnights' has the unit 'fortnight'"):
        Duration.parse("3 fortnights")


def test_it_never_mixes_months_with_fixed_lengths() -> None:
    with pytest.raises(ValueError, match="'1 month 1 day' mixes months with fixed lengths"):
        Duration.parse("1 month 1 day")


@settings(max_examples=200)
@given(
    st.one_of(
        st.integers(-(10**18), 10**18), st.integers(-(10**5), 10**5).map(lambda n: n * SECOND)
    )
)
def test_its_text_reads_back(us: int) -> None:
    assert Duration.parse(str(Duration(us))) == Duration(us)


@settings(max_examples=50)
@given(st.integers(-(10**5), 10**5))
def test_the_text_of_months_reads_back(months: int) -> None:
    assert Duration.parse(str(Duration(0, months))) == Duration(0, months)


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.integers(-(10**6), 10**6), st.sampled_from(sorted(UNITS))),
        min_size=1,
        max_size=4,
    )
)
def test_parts_add_up(parts: list[tuple[int, str]]) -> None:
    text = " ".join(f"{n} {unit}{'' if abs(n) == 1 else 's'}" for n, unit in parts)
    assert Duration.parse(text).us == sum(n * UNITS[unit] for n, unit in parts)
