"""Tables against what a transcript expects of them."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from windowing.report.difference import find_difference, lines, values_agree

FIVE = datetime(2013, 1, 1, 5, tzinfo=UTC)


@pytest.mark.parametrize(("expected", "found"), [
    ("2013-01-01 05:00", FIVE), ("2013-01-01T00:00-05:00", FIVE),
    (1, 1), (1, 1.0), (0.3, 0.1 + 0.2), (float("nan"), float("nan")),
    (None, None), (True, True), ("EWR", "EWR"),
    ("1.20", Decimal("1.2")), (1.2, Decimal("1.20")), (Decimal("1.2"), Decimal("1.20")),
    ([1, 2], [1, 2]), ([], []), ([{"value": "a"}], [{"value": "a", "count": 3}]),
    ({"at": "2013-01-01 05:00"}, {"at": "2013-01-01T05:00:00Z"}),
])  # fmt: skip
def test_values_that_agree(expected: Any, found: Any) -> None:
    assert values_agree(expected, found)


@pytest.mark.parametrize(("expected", "found"), [
    ("2013-01-01 05:01", FIVE), ("noon", FIVE), (5, FIVE),
    (1, 2), (1.5, 1), (1, 1.01), ("1", 1), (1, "1"), (float("nan"), 1.0), ("ewr", "EWR"),
    (True, 1), (1, True), (None, 0), (0, None), (False, None),
    ("1.21", Decimal("1.2")), (Decimal("1.21"), Decimal("1.2")),
    ("x", Decimal(1)), (True, Decimal(1)),
    ([1], [1, 2]), ([2, 1], [1, 2]), (1, [1]), ({"value": 1}, {}), ({"value": 1}, {"value": 2}),
])  # fmt: skip
def test_values_that_do_not(expected: Any, found: Any) -> None:
    assert not values_agree(expected, found)


def row(key: str, n: int, total: int | None = None) -> dict[str, Any]:
    return {"key": key, "window_start": FIVE, "n": n, "total": total, "revision": 0}


def written(expected: list[dict[str, Any]], *found: dict[str, Any]) -> list[str]:
    wrong = find_difference("hourly", expected, found, ("key", "window_start"))
    return lines(wrong) if wrong else []


@pytest.mark.parametrize(("expected", "found"), [
    ([], []),
    ([{"key": "a"}], [row("a", 1)]),
    ([{"key": "b"}, {"key": "a", "n": 1}], [row("a", 1), row("b", 2)]),
    # The first names less and could take either. It must leave the only one that fits the second.
    ([{"key": "a"}, {"key": "a", "n": 1}], [row("a", 1), row("a", 2)]),
    ([{"key": "a"}, {"key": "a"}], [row("a", 1), row("a", 1)]),
])  # fmt: skip
def test_rows_agree_in_any_order_and_in_the_columns_that_are_named(
    expected: list[dict[str, Any]], found: list[dict[str, Any]]
) -> None:
    assert written(expected, *found) == []


def test_each_row_that_differs_is_reported_once() -> None:
    start = "2013-01-01 05:00Z"
    assert written([{"key": "a", "n": 1}, {"key": "c", "n": 3}], row("a", 2, 9), row("b", 1)) == [
        f"hourly: {{key: a, window_start: {start}}} differs in n: expected 1, found 2",
        "hourly: {key: c, n: 3} is missing",
        f"hourly: {{key: b, window_start: {start}, n: 1}} was not expected",
    ]


def test_a_row_counts_as_often_as_it_is_there() -> None:
    assert written([{"key": "a", "n": 1}], row("a", 1), row("a", 1)) != []
    assert written([{"key": "a", "n": 1}, {"key": "a", "n": 1}], row("a", 1)) == [
        "hourly: {key: a, n: 1} is missing"
    ]


def test_where_no_row_is_expected_all_that_has_a_value_is_reported() -> None:
    assert written([], row("a", 1)) == [
        "hourly: {key: a, window_start: 2013-01-01 05:00Z, n: 1} was not expected"
    ]
