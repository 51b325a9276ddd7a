"""Which windows events of a range can be in, worked out by hand; no Spark."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.windowing.spec.specs import with_window
from windowing.grid.range import Range
from windowing.grid.zone import micros
from windowing.spec.kinds import Aligned, Sliding, Tumbling
from windowing.spec.load import load_pipeline
from windowing.windows.reach import find_reach, span_windows, windows_touched

LOW = datetime(2024, 5, 15, 10, 30, tzinfo=UTC)
HIGH = datetime(2024, 5, 15, 12, 15, tzinfo=UTC)
ENDLESS: list[tuple[str, dict[str, Any]]] = [
    ("count", {}),
    ("delta", {}),
    ("punctuation", {}),
    ("global", {}),
    # The cuts of a chain depend on where it begins.
    ("session", {"max_duration": "2 hours"}),
]


def on_day(hour: int, minute: int = 0, second: int = 0, day: int = 15) -> datetime:
    """A time of the day of the events."""
    return datetime(2024, 5, day, hour, minute, second, tzinfo=UTC)


BOUNDED: list[tuple[str, dict[str, Any], datetime, datetime]] = [
    ("tumbling", {}, on_day(10), on_day(13)),
    # 10:00 to 11:00 in UTC is no boundary of this zone, whose clock is half an hour off.
    ("tumbling", {"zone": "Asia/Kolkata"}, on_day(10, 30), on_day(12, 30)),
    ("tumbling", {"size": "1 month"}, on_day(0, day=1), datetime(2024, 6, 1, tzinfo=UTC)),
    # The window [07:30, 10:30) does not contain 10:30, so the first one begins at 07:45.
    ("sliding", {}, on_day(7, 45), on_day(15, 15)),
    # All windows of a period begin with it.
    ("cumulate", {}, on_day(0), on_day(0, day=16)),
    ("session", {}, on_day(10), on_day(12, 45)),
    # The window that begins a tick after 12:15:00 is [12:15:01, 12:15:12) in ticks of a second.
    ("record_sliding", {"tick": "1 second"}, on_day(10, 29, 50), on_day(12, 15, 12)),
    # In ticks of 20 minutes the events are at 10:20 and 12:00, and the last window begins at 12:20.
    (
        "record_sliding",
        {"difference": "40 minutes", "tick": "20 minutes"},
        on_day(9, 40),
        on_day(13, 20),
    ),
]


@pytest.mark.parametrize(("kind", "fields", "first", "last"), BOUNDED)
def test_windows_that_an_event_changes_lie_between_two_times(
    kind: str, fields: dict[str, Any], first: datetime, last: datetime
) -> None:
    window = load_pipeline(with_window(kind, **fields)).windows[0]
    assert windows_touched(window, LOW, HIGH) == (first, last)


ALIGNED = [case for case in BOUNDED if case[0] in ("tumbling", "sliding", "cumulate")]


@pytest.mark.parametrize(("kind", "fields", "first", "last"), ALIGNED)
def test_windows_on_a_grid_span_what_their_boundaries_say(
    kind: str, fields: dict[str, Any], first: datetime, last: datetime
) -> None:
    window = load_pipeline(with_window(kind, **fields)).windows[0]
    assert isinstance(window, Aligned)
    within = Range(micros(LOW), micros(HIGH))
    assert span_windows(window, within) == Range(micros(first), micros(last) - 1)


def test_an_event_on_a_boundary_is_not_near_the_window_before() -> None:
    window = load_pipeline(with_window("tumbling", offset="15 minutes")).windows[0]
    assert isinstance(window, Tumbling)
    on_boundary = micros(on_day(10, 15))
    hour = micros(on_day(11)) - micros(on_day(10))
    at_boundary = Range(on_boundary, on_boundary)
    assert span_windows(window, at_boundary) == Range(on_boundary, on_boundary + hour - 1)
    before = on_boundary - 1
    assert span_windows(window, Range(before, before)) == Range(on_boundary - hour, before)


def test_windows_beyond_the_calendar_span_more_than_they_need() -> None:
    fields = {"size": "4000 days", "slide": "1 day", "zone": "America/New_York"}
    window = load_pipeline(with_window("sliding", **fields)).windows[0]
    assert isinstance(window, Sliding)
    early = micros(datetime(5, 1, 1, tzinfo=UTC))
    spanned = span_windows(window, Range(early, early))
    days = 24 * 3_600_000_000
    assert spanned.low_us <= early - 4000 * days
    assert spanned.high_us >= early + 4000 * days


@pytest.mark.parametrize(("kind", "fields"), ENDLESS)
def test_nothing_bounds_windows_that_follow_the_order_of_events(
    kind: str, fields: dict[str, Any]
) -> None:
    pipeline = load_pipeline(with_window(kind, **fields))
    assert windows_touched(pipeline.windows[0], LOW, HIGH) is None
    first, last = find_reach(pipeline, "w", micros(LOW), micros(HIGH))
    assert (first, last.year) == (LOW, 9999)


@pytest.mark.parametrize(("kind", "fields", "first", "last"), BOUNDED)
def test_a_backfill_reaches_every_window_that_one_of_its_events_changes(
    kind: str, fields: dict[str, Any], first: datetime, last: datetime
) -> None:
    """Its range excludes the end, so the last event is a microsecond before it."""
    pipeline = load_pipeline(with_window(kind, **fields))
    end = HIGH + timedelta(microseconds=1)
    from_, to = find_reach(pipeline, "w", micros(LOW), micros(end))
    assert from_ <= first
    assert to >= last


def test_a_backfill_reaches_one_window_beyond_the_panes_it_rebuilds() -> None:
    pipeline = load_pipeline(with_window("tumbling"))
    assert find_reach(pipeline, "w", micros(LOW), micros(HIGH)) == (on_day(9), on_day(14))
    # An end on a boundary needs no pane after it.
    assert find_reach(pipeline, "w", micros(LOW), micros(on_day(12))) == (on_day(9), on_day(13))


FAR: list[tuple[str, dict[str, Any]]] = [
    *ENDLESS,
    ("tumbling", {"zone": "America/New_York"}),
    ("tumbling", {"size": "10 years", "zone": "Asia/Kolkata"}),
    ("sliding", {"zone": "Pacific/Kiritimati"}),
    ("cumulate", {"max_size": "1 month", "step": "1 day"}),
    ("session", {}),
]


@pytest.mark.parametrize(("kind", "fields"), FAR)
def test_a_backfill_may_reach_to_both_ends_of_the_calendar(
    kind: str, fields: dict[str, Any]
) -> None:
    pipeline = load_pipeline(with_window(kind, **fields))
    low, high = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
    first, last = find_reach(pipeline, "w", micros(low), micros(high))
    assert first <= low
    assert last >= high
