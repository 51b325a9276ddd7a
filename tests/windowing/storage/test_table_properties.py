"""Properties of tables are read as Delta reads them."""

import pytest

from windowing.storage.table_properties import is_true


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", True), ("TRUE", True), ("True", True), ("false", False), ("FALSE", False)],
)
def test_case_does_not_matter(value: str, expected: object) -> None:
    assert is_true(value) is expected


def test_unset_is_false() -> None:
    assert not is_true(None)
