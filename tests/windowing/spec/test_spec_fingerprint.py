"""Which changes of a spec are another spec: those that state or outputs depend on."""

from typing import Any

import pytest

from tests.windowing.spec.specs import GONE, changed, with_window
from windowing.spec.fingerprint import evolution, fingerprint, parts
from windowing.spec.load import load_pipeline


def of(spec: dict[str, Any]) -> str:
    return fingerprint(load_pipeline(spec))


@pytest.mark.parametrize(
    "paths",
    [
        {"lake": "/elsewhere"},
        {"source/table": "/data/bronze/others"},
        {"source/changes": "feed"},
        {"source/batch": {"rows": 5}},
        {"schedule": GONE},
        {"expectations/suite": "others"},
        {"retention": {"refused": "1 day", "output": "2 days"}},
        {"windows/hourly/change_feed": False},
        {"windows/hourly/emit": "on_change"},
        {"windows/hourly/zone": None},
        {"windows/hourly/size": "60 minutes"},
        {"source/where": None},
        {"source/order_by": []},
    ],
)
def test_what_may_change(paths: dict[str, Any]) -> None:
    assert of(changed(**paths)) == of(changed())


@pytest.mark.parametrize(
    "paths",
    [
        {"name": "others"},
        {"source/key": ["dest"]},
        {"source/event_time": "arrival"},
        {"source/where": "distance > 0"},
        {"source/columns": {"delay": "a + b"}},
        {"watermark/delay": "11 minutes"},
        {"watermark/idle_after": "15 minutes"},
        {"aggregates/flights": {"call": "count()", "where": "delay > 60"}},
        {"aggregates/worst": "min(delay)"},
        {"windows/hourly/size": "2 hours"},
        {"windows/hourly/emit": "on_close"},
        {"windows/hourly/having": "flights > 3"},
        {"windows/hourly/empty": True},
        {"windows/busy/max_duration": "12 hours"},
        {"windows/busy": GONE},
    ],
)
def test_what_is_another_spec(paths: dict[str, Any]) -> None:
    assert of(changed(**paths)) != of(changed())


@pytest.mark.parametrize("field", ["windows", "aggregates"])
def test_the_order_of_what_has_names_is_free(field: str) -> None:
    spec = changed()
    turned = spec | {field: dict(reversed(spec[field].items()))}
    assert list(turned[field]) != list(spec[field])
    assert of(turned) == of(spec)


@pytest.mark.parametrize("kind", ["tumbling", "sliding"])
def test_a_limit_of_empty_windows_may_be_raised(kind: str) -> None:
    limits = [
        with_window(kind, empty=True, **limit)
        for limit in ({}, {"empty_limit": 5}, {"empty_limit": 10**9})
    ]
    assert len({of(spec) for spec in limits}) == 1
    assert of(limits[0]) != of(with_window(kind))


def test_numbers_that_are_equal_are_one_spec() -> None:
    assert (
        of(with_window("delta", delta=10))
        == of(with_window("delta", delta=10.0))
        != of(with_window("delta", delta="10 seconds"))
    )
    assert of(with_window("global", having="flights>3")) == of(
        with_window("global", having=" flights > 3.0")
    )
    assert of(changed(**{"source/where": "a<>1"})) == of(changed(**{"source/where": "a  !=  1"}))


@pytest.mark.parametrize(
    ("paths", "added", "removed", "altered"),
    [
        ({"schedule": GONE}, [], [], []),
        (
            {"windows/daily": {"kind": "tumbling", "size": "1 day"}},
            ["windows.daily", "windows.daily aggregate flights", "windows.daily aggregate worst"],
            [],
            [],
        ),
        (
            {"windows/busy": GONE},
            [],
            ["windows.busy", "windows.busy aggregate flights", "windows.busy aggregate worst"],
            [],
        ),
        ({"windows/hourly/size": "2 hours"}, [], [], ["windows.hourly"]),
        (
            {
                "windows/hourly/kind": "cumulate",
                "windows/hourly/size": GONE,
                "windows/hourly/max_size": "1 day",
                "windows/hourly/step": "1 hour",
            },
            [],
            [],
            ["windows.hourly"],
        ),
        ({"windows/hourly/aggregates": ["flights"]}, [], ["windows.hourly aggregate worst"], []),
        (
            {"aggregates/best": "min(delay)"},
            [f"windows.{w} aggregate best" for w in ("hourly", "rolling", "busy")],
            [],
            [],
        ),
        (
            {"aggregates/worst": "min(delay)"},
            [],
            [],
            [f"windows.{w} aggregate worst" for w in ("hourly", "rolling", "busy")],
        ),
        ({"watermark/delay": "11 minutes"}, [], [], ["watermark"]),
        ({"source/key": ["dest"]}, [], [], ["source"]),
    ],
)
def test_what_came_what_went_and_what_is_another(
    paths: dict[str, Any], added: list[str], removed: list[str], altered: list[str]
) -> None:
    found = evolution(parts(load_pipeline(changed())), parts(load_pipeline(changed(**paths))))
    assert (list(found.added), list(found.removed), list(found.changed)) == (
        added,
        removed,
        altered,
    )
    assert bool(found) is bool(added or removed or altered)
