"""Rows that differ between two states of a table; every expected answer is written by hand."""

from typing import Any

import pyarrow as pa
import pytest

from windowing.storage.row_changes import compare_rows

NAN = float("nan")
LIST = pa.list_(pa.float64())
STRUCT = pa.struct([("v", pa.float64()), ("n", pa.int64())])
MAP = pa.map_(pa.string(), pa.float64())
SAME: list[tuple[pa.DataType, Any, Any]] = [
    (pa.float64(), NAN, NAN),
    (LIST, [1.0, NAN, None], [1.0, NAN, None]),
    (STRUCT, {"v": NAN, "n": None}, {"v": NAN, "n": None}),
    (pa.list_(STRUCT), [{"v": NAN, "n": 1}], [{"v": NAN, "n": 1}]),
    (MAP, [("x", NAN)], [("x", NAN)]),
    (LIST, None, None),
]
OTHERS: list[tuple[pa.DataType, Any, Any]] = [
    (pa.float64(), NAN, None),
    (LIST, [1.0, NAN], [1.0, None]),
    (LIST, [NAN], [NAN, NAN]),
    (LIST, [], None),
    (STRUCT, {"v": NAN, "n": 1}, {"v": NAN, "n": 2}),
    (MAP, [("x", NAN)], [("y", NAN)]),
]


def table_of(kind: pa.DataType, value: Any) -> pa.Table:
    return pa.table({"key": ["a"], "value": pa.array([value], kind)})


@pytest.mark.parametrize(("kind", "old", "new"), SAME, ids=str)
def test_no_number_is_the_same_as_no_number_also_inside_of_values(
    kind: pa.DataType, old: Any, new: Any
) -> None:
    found = compare_rows(table_of(kind, old), table_of(kind, new), ["key"])
    assert found.count == 0


@pytest.mark.parametrize(("kind", "old", "new"), OTHERS, ids=str)
def test_a_row_with_another_value_is_updated(kind: pa.DataType, old: Any, new: Any) -> None:
    found = compare_rows(table_of(kind, old), table_of(kind, new), ["key"])
    assert (found.count, found.after.num_rows) == (1, 1)
