"""What each kind of window becomes, by hand; and that the names of its tables are its own."""

from dataclasses import replace
from typing import Any

import pytest

from tests.windowing.spec.specs import KINDS, changed, with_window
from windowing.grid.rule import Grid
from windowing.merge.rule import complete_table
from windowing.panes.rule import fragments_table, pane_families
from windowing.spec.duration import DAY, HOUR, MINUTE, SECOND, WEEK
from windowing.spec.kinds import (
    Aggregate,
    CappedSession,
    Count,
    Cumulate,
    Delta,
    Global,
    Having,
    OutputPolicy,
    Punctuation,
    RecordSliding,
    Session,
    Sliding,
    Tumbling,
    Window,
)
from windowing.spec.load import load_pipeline

COUNTED, WORST = Aggregate("flights", "count"), Aggregate("worst", "max", "delay")
ALL = (COUNTED, WORST)
NEW_YEAR = 19_723 * DAY
"""2024-01-01 in local microseconds since 1970."""


def loaded(kind: str, **fields: Any) -> Window:
    """The window of that kind with those fields."""
    return load_pipeline(with_window(kind, **fields)).windows[0]


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("tumbling", {}, Tumbling("w", Grid(HOUR), ALL)),
        ("sliding", {}, Sliding("w", Grid(15 * MINUTE), 3 * HOUR, ALL)),
        ("sliding", {"slide": "3 hours"}, Tumbling("w", Grid(3 * HOUR), ALL)),
        (
            "sliding",
            {"slide": "3 hours", "emit": "changes"},
            Sliding("w", Grid(3 * HOUR), 3 * HOUR, ALL, OutputPolicy("changes")),
        ),
        ("cumulate", {}, Cumulate("w", Grid(DAY, inner_us=HOUR), ALL)),
        (
            "cumulate",
            {"offset": "-1 hour"},
            Cumulate("w", Grid(DAY, origin_us=23 * HOUR, inner_us=HOUR), ALL),
        ),
        (
            "cumulate",
            {"origin": "2024-01-01 06:00", "zone": "Asia/Kolkata"},
            Cumulate(
                "w",
                Grid(DAY, origin_us=NEW_YEAR + 6 * HOUR, zone="Asia/Kolkata", inner_us=HOUR),
                ALL,
            ),
        ),
        ("cumulate", {"step": "1 day"}, Cumulate("w", Grid(DAY, inner_us=DAY), ALL)),
        ("cumulate", {"step": "7 hours"}, Cumulate("w", Grid(DAY, inner_us=7 * HOUR), ALL)),
        (
            "cumulate",
            {"step": "7 hours", "zone": "UTC"},
            Cumulate("w", Grid(DAY, zone="UTC", inner_us=7 * HOUR), ALL),
        ),
        (
            "cumulate",
            {"max_size": "2 hours", "step": "25 minutes"},
            Cumulate("w", Grid(2 * HOUR, inner_us=25 * MINUTE), ALL),
        ),
        (
            "cumulate",
            {"max_size": "1 week", "step": "1 day"},
            Cumulate("w", Grid(WEEK, origin_us=4 * DAY, inner_us=DAY), ALL),
        ),
        (
            "cumulate",
            {"max_size": "1 month", "step": "1 day"},
            Cumulate("w", Grid(months=1, inner_us=DAY), ALL),
        ),
        (
            "cumulate",
            {"max_size": "1 month", "step": "31 days"},
            Cumulate("w", Grid(months=1, inner_us=31 * DAY), ALL),
        ),
        (
            "cumulate",
            {"max_size": "1 year", "step": "1 quarter", "origin": "2024-01-01"},
            Cumulate("w", Grid(months=12, origin_us=NEW_YEAR, inner_months=3), ALL),
        ),
        ("session", {"aggregates": ["worst"]}, Session("w", 30 * MINUTE, (WORST,))),
        ("session", {"max_duration": "12 hours"}, CappedSession("w", 30 * MINUTE, 12 * HOUR, ALL)),
        (
            "session",
            {"max_duration": "30 minutes"},
            CappedSession("w", 30 * MINUTE, 30 * MINUTE, ALL),
        ),
        ("session", {"max_duration": None}, Session("w", 30 * MINUTE, ALL)),
        ("record_sliding", {}, RecordSliding("w", 10 * SECOND, 1_000, ALL)),
        (
            "record_sliding",
            {"tick": "10 seconds"},
            RecordSliding("w", 10 * SECOND, 10 * SECOND, ALL),
        ),
        (
            "record_sliding",
            {"difference": "3 microseconds", "tick": "1 microsecond"},
            RecordSliding("w", 3, 1, ALL),
        ),
        ("count", {}, Count("w", 100, 100, ALL)),
        ("count", {"every": 1}, Count("w", 100, 1, ALL)),
        ("count", {"every": None}, Count("w", 100, 100, ALL)),
        (
            "count",
            {"count": 1_000_000_000, "every": 1_000_000_000},
            Count("w", 1_000_000_000, 1_000_000_000, ALL),
        ),
        ("delta", {}, Delta("w", "miles", "10", None, ALL)),
        ("delta", {"delta": 0}, Delta("w", "miles", "0", None, ALL)),
        ("delta", {"delta": -0.0}, Delta("w", "miles", "0", None, ALL)),
        ("delta", {"delta": 10.0}, Delta("w", "miles", "10", None, ALL)),
        ("delta", {"delta": 1e-9}, Delta("w", "miles", "0.000000001", None, ALL)),
        ("delta", {"delta": 1e17}, Delta("w", "miles", "100000000000000000", None, ALL)),
        ("delta", {"delta": 10**18 - 1}, Delta("w", "miles", "999999999999999999", None, ALL)),
        ("delta", {"delta": "5 minutes"}, Delta("w", "miles", None, 5 * MINUTE, ALL)),
        ("delta", {"delta": "0 seconds"}, Delta("w", "miles", None, 0, ALL)),
        ("punctuation", {}, Punctuation("w", "landed", ALL)),
        ("global", {"aggregates": ["worst", "flights"]}, Global("w", (WORST, COUNTED))),
    ],
)
def test_kinds(kind: str, fields: dict[str, Any], expected: Window) -> None:
    assert loaded(kind, **fields) == expected


PLAIN = OutputPolicy("on_change", having=None, empty_limit=None, change_feed=True)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_shows_all_its_windows_with_every_change(kind: str) -> None:
    assert loaded(kind).shown == PLAIN
    assert loaded(kind, emit="on_change", having=None, change_feed=True).shown == PLAIN


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "global"])
def test_windows_on_close(kind: str) -> None:
    assert loaded(kind, emit="on_close").shown == replace(PLAIN, emit="on_close")


@pytest.mark.parametrize("kind", ["sliding", "cumulate"])
def test_windows_where_values_change(kind: str) -> None:
    assert loaded(kind, emit="changes").shown == replace(PLAIN, emit="changes")


@pytest.mark.parametrize("kind", KINDS)
def test_having(kind: str) -> None:
    assert loaded(kind, having="flights<4").shown == replace(
        PLAIN, having=Having("flights", "<", "4")
    )
    late = loaded(kind, having="worst <> -1.50", aggregates=["worst"], change_feed=False)
    assert late.shown == OutputPolicy(
        "on_change", Having("worst", "!=", "-1.5"), None, change_feed=False
    )


@pytest.mark.parametrize("kind", ["tumbling", "sliding"])
@pytest.mark.parametrize(
    ("fields", "limit"),
    [({}, 1_000_000), ({"empty_limit": None}, 1_000_000), ({"empty_limit": 1}, 1)],
)
def test_empty_windows(kind: str, fields: dict[str, Any], limit: int) -> None:
    assert loaded(kind, empty=True, **fields).shown == replace(PLAIN, empty_limit=limit)
    closed = loaded(kind, empty=True, emit="on_close", having="flights < 1", **fields).shown
    assert closed == OutputPolicy("on_close", Having("flights", "<", "1"), limit)


def test_tables_have_names_of_their_own() -> None:
    every = {
        f"{kind}_{emit}": {"kind": kind, **fields, "emit": emit}
        for kind, fields in KINDS.items()
        for emit in ("on_change", "on_close")
    }
    del every["global_on_close"]
    pipeline = load_pipeline(changed(windows=every))
    whole = [complete_table(pipeline, w).path.name for w in pipeline.windows]
    inner = [
        *(f.table for f in pane_families(pipeline)),
        *map(fragments_table, pipeline.sessions),
        *(name for name in whole if name not in every),
    ]
    assert all(name.startswith("_") for name in inner) and not any(
        name.startswith("_") for name in every
    )
    assert len({*inner, *every}) == len(inner) + len(every)
