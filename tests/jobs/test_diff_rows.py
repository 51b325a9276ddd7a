"""The rows of a diff: the values that `show` prints, in order of window and key. No JVM."""

from decimal import Decimal
from typing import Any

import pyarrow as pa

from jobs.diff import _describe_changes
from windowing.report.compared import OutputDifference
from windowing.storage.row_changes import RowChanges

HOUR = 3_600_000_000
END_OF_CALENDAR = 253402300800000000
"""The first microsecond behind the year 9999."""
INSTANT = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("place", pa.string()),
        ("window_start", INSTANT),
        ("local", pa.timestamp("us")),
        ("fares", pa.list_(pa.decimal128(9, 2))),
        ("seen", pa.list_(INSTANT)),
        ("best", pa.struct([("n", pa.int64()), ("name", pa.string())])),
    ]
)


def rows_of(*rows: tuple[str | None, int]) -> pa.Table:
    """Rows by place and start; their other values are all the same."""
    places, starts = zip(*rows, strict=True) if rows else ((), ())
    size = len(rows)
    columns: list[Any] = [
        pa.array(places, pa.string()),
        pa.array(starts, pa.int64()).cast(INSTANT),
        pa.array([HOUR] * size, pa.int64()).cast(pa.timestamp("us")),
        pa.array([[Decimal("1.50")]] * size, SCHEMA.field("fares").type),
        pa.array([[HOUR]] * size, pa.list_(pa.int64())).cast(pa.list_(INSTANT)),
        pa.array([{"n": 2, "name": None}] * size, SCHEMA.field("best").type),
    ]
    return pa.table(columns, schema=SCHEMA)


def describe(inserted: pa.Table, deleted: pa.Table, limit: int = 9) -> OutputDifference:
    changes = RowChanges(inserted, deleted, rows_of(), rows_of())
    return _describe_changes(changes, ["window_start", "place", "window_start"], limit)


def test_values_are_those_of_rows_of_tables() -> None:
    (row,) = describe(rows_of(("EWR", HOUR)), rows_of()).rows
    assert row.as_json() == {
        "change": "inserted",
        "before": None,
        "after": {
            "place": "EWR",
            "window_start": "1970-01-01T01:00:00+00:00",
            "local": "1970-01-01 01:00:00",
            "fares": [1.5],
            "seen": ["1970-01-01T01:00:00.000Z"],
            "best": {"n": 2},
        },
    }


def test_rows_are_in_order_of_their_instants_also_beyond_the_calendar() -> None:
    inserted = rows_of(("b", END_OF_CALENDAR + 1), ("a", HOUR), (None, HOUR))
    deleted = rows_of(("c", END_OF_CALENDAR), ("d", 0))
    in_order = [("d", 0), (None, HOUR), ("a", HOUR), ("c", END_OF_CALENDAR)]
    in_order.append(("b", END_OF_CALENDAR + 1))
    for limit in (9, 3, 2):
        found = describe(inserted, deleted, limit)
        assert found.count == 5
        assert [row.values["place"] for row in found.rows] == [at for at, _ in in_order][:limit]
    late = describe(inserted, deleted).rows[-1].values["window_start"]
    assert late == f"{END_OF_CALENDAR + 1} us since 1970"
