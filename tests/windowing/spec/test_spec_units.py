"""Errors of lengths name units that the field takes."""

from typing import Any

import pytest

from tests.windowing.spec.specs import changed, refused, with_window
from windowing.spec.load import load_pipeline

FIXED_LENGTHS: list[tuple[str, dict[str, Any], str]] = [
    ("sliding", {"slide": "1 microsecond"}, "size"),
    ("sliding", {"size": "2 weeks"}, "slide"),
    ("tumbling", {}, "offset"),
    ("cumulate", {}, "offset"),
    ("session", {}, "gap"),
    ("session", {"gap": "1 microsecond"}, "max_duration"),
    ("record_sliding", {"tick": "1 microsecond"}, "difference"),
    ("record_sliding", {"difference": "1 week"}, "tick"),
    ("delta", {}, "delta"),
]
"""Each field of a window whose length is fixed, with fields beside which any length is right."""


@pytest.mark.parametrize(("kind", "fields", "field"), FIXED_LENGTHS)
def test_every_unit_that_an_error_lists_is_one_that_the_field_takes(
    kind: str, fields: dict[str, Any], field: str
) -> None:
    message = refused(with_window(kind, **fields, **{field: "1 fortnight"})).message
    units = message.partition("units are ")[2].split(", ")
    assert units[-1] == "week"
    for unit in units:
        # A window of an hour is sliding in more than a million microseconds.
        beside = fields
        if field == "slide":
            beside = {"size": f"2 {unit}s"}
        if field == "size":
            beside = {"slide": f"1 {unit}"}
        load_pipeline(with_window(kind, **beside, **{field: f"1 {unit}"}))


@pytest.mark.parametrize(
    "path",
    [
        "watermark/delay",
        "watermark/max_future",
        "watermark/allowed_lateness",
        "watermark/idle_after",
        "freshness",
    ],
)
def test_every_unit_that_an_error_lists_is_right_beside_windows(path: str) -> None:
    message = refused(changed(**{path: "1 fortnight"})).message
    units = message.partition("units are ")[2].removesuffix("; or write forever, or 0 seconds")
    assert units.split(", ")[-1] == "week"
    for unit in units.split(", "):
        # The freshness is longer than the delay.
        load_pipeline(changed(**{"watermark/delay": "0 seconds", path: f"1 {unit}"}))


def test_a_month_is_not_advised_where_no_month_is_right() -> None:
    assert "write" not in refused(with_window("session", gap="P1M")).message
    assert "write '1 month'" in refused(with_window("tumbling", size="P1M")).message


def test_a_count_window_may_put_an_event_into_a_million_windows() -> None:
    load_pipeline(with_window("count", count=3_000_002, every=3))
