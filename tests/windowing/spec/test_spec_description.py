"""The properties of every kind of window, each derived by hand from the law."""

from itertools import pairwise
from typing import Any, get_args

import pytest

from tests.windowing.spec.kept_specs import kept
from tests.windowing.spec.specs import refused, with_window
from windowing.grid.rule import Grid, boundary, index
from windowing.grid.zone import transitions
from windowing.spec.description import (
    Description,
    Finality,
    Lateness,
    Nearby,
    OnGrid,
    Onward,
    State,
    describe_window,
)
from windowing.spec.kinds import Window
from windowing.spec.load import load_pipeline
from windowing.spec.zones import list_zones

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
JUMP = HOUR
"""The most by which the clock of New York was moved at once since 1970."""


def described(kind: str, **fields: Any) -> Description:
    """The description of the one window of a spec."""
    window = load_pipeline(with_window(kind, **fields)).windows[0]
    return describe_window(window)


EACH = {
    "tumbling": described("tumbling"),
    "sliding": described("sliding"),
    "cumulate": described("cumulate"),
    "session": described("session"),
    "capped_session": described("session", max_duration="2 hours"),
    "record_sliding": described("record_sliding"),
    "count": described("count"),
    "delta": described("delta"),
    "punctuation": described("punctuation"),
    "global": described("global"),
}


def test_every_kind_has_a_description_and_a_name_of_its_own() -> None:
    windows = [window for pipeline in kept().values() for window in pipeline.windows]
    found = {type(window): describe_window(window).kind for window in windows}
    assert set(found) == set(get_args(Window))
    assert sorted(found.values()) == sorted(EACH)
    assert {name: one.kind for name, one in EACH.items()} == {name: name for name in EACH}


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("tumbling, 1 hour", "tumbling", {}),
        (
            "tumbling, 1 day, America/New_York",
            "tumbling",
            {"size": "1 day", "zone": "America/New_York"},
        ),
        ("tumbling, 3 months", "tumbling", {"size": "3 months"}),
        ("sliding, 3 hours every 15 minutes", "sliding", {}),
        ("cumulate, 1 day by 1 hour", "cumulate", {}),
        ("cumulate, 1 month by 1 day", "cumulate", {"max_size": "1 month", "step": "1 day"}),
        ("session, gap 30 minutes", "session", {}),
        ("session, gap 30 minutes, at most 2 hours", "session", {"max_duration": "2 hours"}),
        ("record_sliding, difference 10 seconds", "record_sliding", {}),
        ("count, 100 events", "count", {}),
        ("count, 100 events every 10", "count", {"every": 10}),
        ("delta, miles by more than 10", "delta", {}),
        (
            "delta, at by more than 10 seconds",
            "delta",
            {"attribute": "at", "delta": "10 seconds"},
        ),
        ("punctuation, by landed", "punctuation", {}),
        ("global", "global", {}),
    ],
)
def test_the_text_has_the_words_of_the_spec(text: str, kind: str, fields: dict[str, Any]) -> None:
    assert described(kind, **fields).text == text


@pytest.mark.parametrize(
    ("kinds", "bounds", "identity"),
    [
        (
            ("tumbling", "sliding", "cumulate", "record_sliding"),
            ("window_start", "window_end"),
            ("window_start", "window_end"),
        ),
        # A session moves its end when it grows, so its start alone is its identity.
        (
            ("session", "capped_session"),
            ("window_start", "window_end", "last_event"),
            ("window_start",),
        ),
        # Two of these may share their bounds.
        (
            ("count", "delta", "punctuation"),
            ("window_start", "window_end", "window_index"),
            ("window_index",),
        ),
        # There is one for each key.
        (("global",), ("window_start", "window_end"), ()),
    ],
)
def test_columns_bound_and_identify_windows(
    kinds: tuple[str, ...], bounds: tuple[str, ...], identity: tuple[str, ...]
) -> None:
    for kind in kinds:
        assert (EACH[kind].bounds, EACH[kind].identity) == (bounds, identity), kind


def test_windows_are_computed_from_the_smallest_state_that_decides_them() -> None:
    assert {name: one.state for name, one in EACH.items()} == {
        "tumbling": State.PANES,
        "sliding": State.PANES,
        "cumulate": State.PANES,
        "global": State.PANES,
        "session": State.FRAGMENTS,
        "capped_session": State.EVENTS,
        "record_sliding": State.EVENTS,
        "count": State.EVENTS,
        "delta": State.EVENTS,
        "punctuation": State.EVENTS,
    }


def test_lateness_is_decided_by_window_chain_or_event() -> None:
    assert {name: one.lateness for name, one in EACH.items()} == {
        "tumbling": Lateness.WINDOW_END,
        "sliding": Lateness.WINDOW_END,
        "cumulate": Lateness.WINDOW_END,
        "record_sliding": Lateness.WINDOW_END,
        "session": Lateness.CHAIN,
        "capped_session": Lateness.CHAIN,
        "count": Lateness.EVENT,
        "delta": Lateness.EVENT,
        "punctuation": Lateness.EVENT,
        "global": Lateness.NEVER,
    }


def test_windows_are_final_when_no_event_can_change_them() -> None:
    at_end = Finality("window_end", 0)
    # The law: a session is final when last + 2 * gap + L <= W.
    after_gaps = Finality("last_event", 2 * 30 * MINUTE)
    # An event is late iff t + 1 microsecond + L <= W, and one at closed_by still changes the cut.
    after_closing = Finality("closed_by", 1)
    assert {name: one.finality for name, one in EACH.items()} == {
        "tumbling": at_end,
        "sliding": at_end,
        "cumulate": at_end,
        "record_sliding": at_end,
        "session": after_gaps,
        "capped_session": after_gaps,
        "count": after_closing,
        "delta": after_closing,
        "punctuation": after_closing,
        "global": None,
    }


def test_reach_follows_from_the_grid_from_the_gap_or_from_nothing() -> None:
    for kind in ("tumbling", "sliding", "cumulate"):
        window = load_pipeline(with_window(kind)).windows[0]
        assert describe_window(window).reach == OnGrid(window), kind
    assert EACH["session"].reach == Nearby(30 * MINUTE, 30 * MINUTE)
    # By default a tick is a millisecond.
    after_us = 10 * SECOND + 2_000
    assert EACH["record_sliding"].reach == Nearby(10 * SECOND, after_us, 1_000)
    for kind in ("capped_session", "count", "delta", "punctuation", "global"):
        assert EACH[kind].reach == Onward(), kind


@pytest.mark.parametrize(
    ("needed_us", "kind", "fields"),
    [
        (HOUR, "tumbling", {}),
        (31 * 3 * DAY, "tumbling", {"size": "3 months"}),
        (DAY + JUMP, "tumbling", {"size": "1 day", "zone": "America/New_York"}),
        # On 2014-10-26 the clock went back by two hours, and never ahead by more than one.
        (DAY + 2 * HOUR, "tumbling", {"size": "1 day", "zone": "Asia/Magadan"}),
        (3 * HOUR + 2 * HOUR, "sliding", {"zone": "Asia/Magadan"}),
        (3 * HOUR, "sliding", {}),
        # Each window is compared with the one a slide before it.
        (3 * HOUR + 15 * MINUTE, "sliding", {"emit": "changes"}),
        (DAY, "cumulate", {}),
        (HOUR, "session", {}),
        (2 * HOUR + HOUR, "session", {"max_duration": "2 hours"}),
        (22 * SECOND, "record_sliding", {"tick": "1 second"}),
        (None, "count", {}),
        (None, "delta", {}),
        (None, "punctuation", {}),
        (None, "global", {}),
    ],
)
def test_events_are_needed_while_they_can_still_change_a_window(
    needed_us: int | None, kind: str, fields: dict[str, Any]
) -> None:
    assert described(kind, **fields).needed_us == needed_us


@pytest.mark.slow
def test_state_outlives_the_longest_day_of_every_zone() -> None:
    for zone in sorted(list_zones()):
        needed_us = described("tumbling", size="1 day", zone=zone).needed_us
        assert needed_us is not None
        days = Grid(DAY, zone=zone)
        for at_us, _ in transitions(zone, 0, 130 * 365 * DAY)[1:]:
            near = index(days, at_us)
            bounds = [boundary(days, k) for k in range(near - 2, near + 4)]
            assert needed_us >= max(b - a for a, b in pairwise(bounds)), (zone, at_us)


def test_state_that_a_long_day_outlives_is_refused() -> None:
    """The 25th of October 2014 had 26 hours in Magadan."""
    fields = {"size": "1 day", "zone": "Asia/Magadan"}
    short = with_window("tumbling", **fields) | {
        "watermark": {"delay": "0 seconds", "allowed_lateness": "0 seconds"},
        "retention": {"state": "25 hours"},
    }
    error = refused(short)
    assert error.field == "retention.state"
    assert "write at least '1 day 2 hours'" in error.message
    load_pipeline(short | {"retention": {"state": "26 hours"}})


def test_only_tumbling_windows_divide_time() -> None:
    assert [name for name, one in EACH.items() if one.divides_time] == ["tumbling"]


def test_an_event_closes_windows_that_follow_the_order_of_events() -> None:
    closed = [name for name, one in EACH.items() if one.closed_by_event]
    assert closed == ["count", "delta", "punctuation"]


def test_windows_read_the_columns_that_bound_them() -> None:
    read = {
        name: [(column.field, column.name, column.type) for column in one.read_columns]
        for name, one in EACH.items()
    }
    assert read.pop("delta") == [("attribute", "miles", "number")]
    assert read.pop("punctuation") == [("marker", "landed", "boolean")]
    assert not any(read.values())
    of_time = described("delta", attribute="at", delta="10 seconds")
    assert [column.type for column in of_time.read_columns] == ["timestamp"]
