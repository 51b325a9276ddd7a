"""Days of event time by the clock of a zone, against plain loops."""

import random
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from jobs.publication.local_days import find_days
from windowing.grid.days import MOST_RANGES, bound_days, find_day, list_days, merge_days
from windowing.grid.zone import micros

BACK = ("2010-11-06", "2010-11-07")
HOUR = 3_600_000_000
ZONES = (None, "UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Kathmandu")


def array(*starts: datetime) -> np.ndarray:
    return np.array([micros(start) for start in starts], np.int64)


def day(text: str) -> date:
    return date.fromisoformat(text)


def test_neighbouring_days_are_one_range() -> None:
    days = [day(f"2026-03-{number:02}") for number in (7, 3, 4, 4, 5)]
    merged = merge_days((each, each) for each in days)
    assert merged == ((days[1], days[4]), (days[0], days[0]))
    assert list_days(merged) == sorted(set(days))
    assert merge_days([(days[1], days[0]), (days[2], days[2])]) == ((days[1], days[0]),)
    assert merge_days([]) == ()


def test_too_many_ranges_are_one() -> None:
    first = day("2020-01-01")
    apart = [first + timedelta(days=2 * number) for number in range(MOST_RANGES + 1)]
    assert len(merge_days((each, each) for each in apart[:-1])) == MOST_RANGES
    assert merge_days((each, each) for each in apart) == ((first, apart[-1]),)


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    late = array(datetime(2026, 3, 2, 23, 30, tzinfo=UTC))
    assert find_days(late, None) == ((day("2026-03-02"),) * 2,)
    # In Berlin it is the day after already.
    assert find_days(late, "Europe/Berlin") == ((day("2026-03-03"),) * 2,)


def test_days_over_a_change_of_the_clock() -> None:
    # On 29 March 2026 the clock of Berlin jumps from 2 to 3, so that day begins an hour earlier by
    # UTC than the next one does before it.
    starts = array(
        datetime(2026, 3, 28, 22, 59, tzinfo=UTC),
        datetime(2026, 3, 29, 22, 0, tzinfo=UTC),
    )
    assert list_days(find_days(starts, "Europe/Berlin")) == [day("2026-03-28"), day("2026-03-30")]
    jump = (day("2026-03-29"),) * 2
    start, end = bound_days(jump, "Europe/Berlin")
    assert (start, end - start) == (datetime(2026, 3, 28, 23, tzinfo=UTC), timedelta(hours=23))
    back = (day("2026-10-25"),) * 2
    start, end = bound_days(back, "Europe/Berlin")
    assert end - start == timedelta(hours=25)


def test_a_day_without_a_midnight_begins_where_the_clock_has_jumped() -> None:
    # On 4 November 2018 the clock of Sao Paulo jumped from 0 to 1.
    start, end = bound_days((day("2018-11-04"),) * 2, "America/Sao_Paulo")
    assert (start, end - start) == (datetime(2018, 11, 4, 3, tzinfo=UTC), timedelta(hours=23))


@pytest.mark.parametrize(
    ("zone", "jumps"),
    [
        # The clock went back from 0:01 to 23:01, or to 23:00 at 2, each across midnight.
        ("America/St_Johns", "2010-11-07"),
        ("America/Goose_Bay", "2010-11-07"),
        ("Antarctica/Casey", "2010-03-05"),
        # It went ahead from 23:30 to 0:30, and over a whole day.
        ("America/Toronto", "1919-03-31"),
        ("Pacific/Apia", "2011-12-31"),
    ],
)
def test_ranges_have_each_instant_of_their_days(zone: str, jumps: str) -> None:
    clock, middle = ZoneInfo(zone), datetime.fromisoformat(f"{jumps}T04:00Z")
    minutes = [middle + timedelta(minutes=n) for n in range(-4_320, 4_320)]
    local = [minute.astimezone(clock).date() for minute in minutes]
    for each in sorted(set(local))[1:-1]:
        inside = [at for at, of_day in zip(minutes, local, strict=True) if of_day == each]
        start, end = bound_days((each, each), zone)
        assert (start, end) == (inside[0], inside[-1] + timedelta(minutes=1)), each


def test_neighbouring_ranges_overlap_where_the_clock_goes_back_across_midnight() -> None:
    sixth, seventh = (bound_days((day(text),) * 2, "America/St_Johns") for text in BACK)
    assert sixth[1] - seventh[0] == timedelta(hours=1)


@pytest.mark.parametrize("zone", ZONES)
def test_any_instants_against_plain_loops(zone: str | None) -> None:
    drawn = random.Random(f"days {zone}")
    for _ in range(60):
        low = micros(datetime(drawn.randint(1930, 2060), 1, 1, tzinfo=UTC))
        count, width = drawn.randint(1, 40), drawn.choice((50, 2_000, 30_000))
        starts = [low + drawn.randrange(width) * HOUR // 2 for _ in range(count)]
        clock = ZoneInfo(zone or "UTC")
        moments = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us) for us in starts]
        due = sorted({moment.astimezone(clock).date() for moment in moments})
        found = find_days(np.array(starts, np.int64), zone)
        assert list_days(found) == due
        assert sorted({find_day(us, zone) for us in starts}) == due
        bounds = [bound_days(each, zone) for each in found]
        assert all(any(start <= at < end for start, end in bounds) for at in moments)
        assert all(one[1] < other[0] for one, other in zip(bounds, bounds[1:], strict=False))


def test_ends_of_the_calendar() -> None:
    starts = np.array([-(10**17), 10**18], np.int64)
    assert find_days(starts, None) == ((date.min, date.min), (date.max, date.max))
    assert bound_days((date.max, date.max), "Europe/Berlin")[0].date() >= day("9999-12-30")
    for zone in ZONES:
        start, end = bound_days((date.max, date.max), zone)
        assert start < end == datetime.max.replace(tzinfo=UTC)
    assert find_days(np.array([], np.int64), "Europe/Berlin") == ()
