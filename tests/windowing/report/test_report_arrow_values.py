"""Rows of Arrow are told as rows of Spark are: the same plain values, whatever the type."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from windowing.report.arrow_values import plain_rows
from windowing.report.frame import records

AT = datetime(2026, 3, 2, 12, 10, 0, 500_600, UTC)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
CASES: dict[str, tuple[str, Any]] = {
    "timestamp": ("timestamp'2026-03-02 12:10:00.5006Z'", AT),
    "timestamp beyond the calendar": (
        "timestamp_micros(253402300800000001)",
        "253402300800000001 us since 1970",
    ),
    "timestamp without zone": (
        "timestamp_ntz'2026-03-02 12:10:00.5006'",
        "2026-03-02 12:10:00.5006",
    ),
    "whole second without zone": ("timestamp_ntz'1969-03-02 12:10:00'", "1969-03-02 12:10:00"),
    "date": ("date'2026-03-02'", "2026-03-02"),
    "decimal": ("cast(49.99 as decimal(20,9))", Decimal("49.990000000")),
    "boolean": ("true", True),
    "bytes": ("x'ff00'", b"\xff\x00"),
    "text": ("'a\"b'", 'a"b'),
    "infinity": ("double('-inf')", float("-inf")),
    "times in an array": (
        "array(timestamp'2026-03-02 12:10:00.5006Z', null)",
        ["2026-03-02T12:10:00.500Z", None],
    ),
    "a time before 1970 in an array": (
        "array(timestamp'1969-12-31 23:59:59.9999Z')",
        ["1969-12-31T23:59:59.999Z"],
    ),
    "a late time in an array": (
        "array(timestamp_micros(253402300800000000))",
        ["+10000-01-01T00:00:00.000Z"],
    ),
    "times without zone in an array": (
        "array(timestamp_ntz'2026-03-02 12:10:00')",
        ["2026-03-02T12:10:00.000"],
    ),
    "dates in an array": ("array(date'2026-03-02')", ["2026-03-02"]),
    "decimals in an array": ("array(cast(49.99 as decimal(20,9)), null)", [49.99, None]),
    "whole decimals in an array": ("array(cast(7 as decimal(5,0)))", [7]),
    "numbers that are none": (
        "array(double('nan'), double('inf'), double('-inf'), 0.1d)",
        ["NaN", "Infinity", "-Infinity", 0.1],
    ),
    "short numbers": ("array(0.1f, 1e10f, 16777216f)", [0.1, 1e10, 16777216.0]),
    "bytes in an array": ("array(x'ff00')", ["/wA="]),
    "a struct": (
        "named_struct('a', cast(null as int), 'b', 1.5d, 'c', named_struct('d', 'x'))",
        {"b": 1.5, "c": {"d": "x"}},
    ),
    "a map": ("map('x', 1, 'y', cast(null as int))", {"x": 1, "y": None}),
    "structs in an array": (
        "array(named_struct('v', timestamp'2026-03-02 12:00:00Z', 'n', 2L))",
        [{"v": "2026-03-02T12:00:00.000Z", "n": 2}],
    ),
    "nothing": ("cast(null as array<int>)", None),
    "an empty array": ("cast(array() as array<int>)", []),
}


@pytest.mark.slow
def test_spark_tells_the_same_values(spark: SparkSession) -> None:
    written = [f"{call} as `{name}`" for name, (call, _) in CASES.items()]
    rows = spark.sql("select " + ", ".join(written))
    by_hand = {name: told for name, (_, told) in CASES.items()}
    assert plain_rows(rows.toArrow()) == [by_hand]
    assert records(rows, 1) == [by_hand]


@pytest.mark.slow
def test_what_arrow_can_not_carry_is_told_as_spark_writes_it(spark: SparkSession) -> None:
    """Variants, and the parts of nested values that are variants or intervals."""
    rows = spark.sql(
        """select parse_json('{"b":2}') as top, array(parse_json('[1]')) as listed,
            named_struct('v', parse_json('{"a":1}'), 'n', 1) as part, map(1, parse_json('2')) as by,
            named_struct('i', make_dt_interval(1)) as long"""
    )
    assert records(rows, 1) == [
        {
            "top": '{"b":2}',
            "listed": [[1]],
            "part": {"v": {"a": 1}, "n": 1},
            "by": {"1": 2},
            "long": {"i": "INTERVAL '1 00:00:00' DAY TO SECOND"},
        }
    ]


def test_each_row_has_its_own_values() -> None:
    table = pa.table({"n": [1, None, 3], "at": pa.array([NOON, None, NOON])})
    assert plain_rows(table) == [
        {"n": 1, "at": NOON},
        {"n": None, "at": None},
        {"n": 3, "at": NOON},
    ]
    assert plain_rows(table.slice(0, 0)) == []


def test_dates_have_no_clock() -> None:
    assert plain_rows(pa.table({"day": [date(2026, 3, 2)]})) == [{"day": "2026-03-02"}]
