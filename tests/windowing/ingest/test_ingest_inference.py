"""Types of JSON are the narrowest ones that hold all values; Spark reads each of them."""

from decimal import Decimal

import pytest

from windowing.ingest.inference import infer_objects


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, -5], "bigint"),
        ([1, 2.5], "double"),
        ([True, None], "boolean"),
        ([True, 1], "string"),
        ([None, None], "string"),
        ([2**63], "decimal(19,0)"),
        ([1, 2**63, 10**20], "decimal(21,0)"),
        ([2**53, 1.5], "double"),
        # Of these a double would lose digits.
        ([2**53 + 1, 1.5], "string"),
        ([1.5, -(2**53) - 1, 7], "string"),
        ([2**53 + 1, 7, None], "long"),
        ([10**20, 2**53 + 1], "decimal(21,0)"),
        ([Decimal("2.50"), Decimal("1e-7")], "double"),
        ([Decimal("123456789.123456789"), 1], "string"),
        ([[2**53 + 1], [1.5]], "array<string>"),
        ([10**20, 1.5], "string"),
        ([10**40], "string"),
        ([10**40, 1], "string"),
        (["2026-03-01", "x"], "string"),
        ([[1, 2], [], [3.5]], "array<double>"),
        ([[], []], "array<string>"),
        ([[1], "x"], "string"),
        ([{"a": 1}, {"b": "x"}], "struct<`a`: bigint, `b`: string>"),
        (
            [{"a": {"c d": None}}, {"a": {"`": [1]}}],
            "struct<`a`: struct<`c d`: string, ````: array<bigint>>>",
        ),
        ([{}, {}], "string"),
        ([{"a": 1}, [1]], "string"),
    ],
)
def test_the_type_of_a_name_holds_all_its_values(values: list[object], kind: str) -> None:
    objects = [{"x": value, "n": n} for n, value in enumerate(values)]
    assert infer_objects(objects) == {"x": kind, "n": "bigint"}


def test_no_objects_have_no_names() -> None:
    assert infer_objects([]) == {}
