"""What is to be written, on few rows: the expected rows are written by hand."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Algebra, Near
from windowing.location import Location
from windowing.merge.frame import (
    compute_corrections,
    compute_inserts,
    compute_replacements,
    filter_having,
    keep_differing,
    lower_partials,
)
from windowing.merge.rule import Target
from windowing.spec.kinds import Having

TARGET = Target(Location("/lake/w"), ("key", "window_start"), ("key", "window_start", "n"), False)
NEW = "key string, window_start timestamp, n bigint, __overflow boolean"
STORED = "key string, window_start timestamp, n bigint, revision bigint, run bigint"


def at(minute: int) -> datetime:
    return datetime(2026, 1, 5, 10, minute, tzinfo=UTC)


def minutes(frame: DataFrame) -> set[tuple[Any, ...]]:
    """The rows, with the minute of the hour in place of each time."""
    times = [name for name, kind in frame.dtypes if kind == "timestamp"]
    plain = frame.withColumns({name: F.minute(name) for name in times})
    rows = [tuple(row) for row in plain.collect()]
    assert len(rows) == len(set(rows))
    return set(rows)


def new(spark: SparkSession) -> DataFrame:
    rows = [
        ("a", at(0), 1, False),
        ("a", at(1), 2, False),
        ("a", at(2), None, False),
        ("a", at(3), None, False),
        ("b", at(0), 5, True),
        ("b", at(1), 6, False),
    ]
    return spark.createDataFrame(rows, NEW)


def stored(spark: SparkSession) -> DataFrame:
    rows = [
        ("a", at(0), 1, 0, 1),
        ("a", at(1), 9, 3, 1),
        ("a", at(2), None, 0, 1),
        ("a", at(3), 7, 1, 1),
        ("b", at(0), 5, 2, 1),
        ("b", at(9), 8, 4, 1),
    ]
    return spark.createDataFrame(rows, STORED)


CORRECTED = {
    ("U", "a", 1, 2, 4, 1, False),
    ("U", "a", 3, None, 2, 3, False),
    ("L", "b", 0, 5, 3, 0, True),
    ("I", "b", 1, 6, 0, 1, False),
}


def test_corrections_are_the_rows_that_are_new_or_differ(spark: SparkSession) -> None:
    found = compute_corrections(new(spark), stored(spark), TARGET)
    assert minutes(found) == CORRECTED
    assert found.columns == [
        "__op",
        "key",
        "window_start",
        "n",
        "revision",
        "__begun",
        "__overflow",
    ]


def test_replacements_also_delete_what_is_not_among_the_new_rows(spark: SparkSession) -> None:
    found = compute_replacements(new(spark), stored(spark), TARGET)
    assert minutes(found) == CORRECTED | {("D", "b", 9, 8, 5, 9, False)}


DRAWN = "key string, window_start timestamp, n bigint, p double, mean double, __overflow boolean"
BOUNDS = "__low_p double, __high_p double"


@pytest.mark.parametrize(
    ("n", "p", "mean", "low", "high", "kept"),
    [
        (1, 5.0, 0.1, 4.0, 5.5, 4.0),
        (1, 5.0, 0.1, 3.0, 4.0, 4.0),
        (1, 5.0, 0.1 * (1 + 1e-12), 4.0, 5.5, 4.0),
        (1, 5.0, 0.1, 4.1, 5.5, 5.0),
        (1, 5.0, 0.1, None, None, 5.0),
        (1, None, 0.1, None, None, None),
        (2, 5.0, 0.1, 4.0, 5.5, 5.0),
        (None, 5.0, 0.1, 4.0, 5.5, 5.0),
        (1, 5.0, 0.1001, 4.0, 5.5, 5.0),
        (1, 5.0, None, 4.0, 5.5, 5.0),
    ],
)
def test_a_stored_value_that_is_as_good_stays_where_all_else_is_equal(
    spark: SparkSession,
    n: int | None,
    p: float | None,
    mean: float | None,
    low: float | None,
    high: float | None,
    kept: float | None,
) -> None:
    shown = ("key", "window_start", "n", "p", "mean")
    target = Target(Location("/lake/w"), ("key", "window_start"), shown, False)
    old = "key string, window_start timestamp, n bigint, p double, mean double, revision bigint"
    stored_rows = [(key, at(0), 1, 4.0, 0.1, 7) for key in ("a", "gone")]
    stored_row = spark.createDataFrame(stored_rows, old)
    new_rows = [(key, at(0), n, p, mean, False, low, high) for key in ("a", "new")]
    new_row = spark.createDataFrame(new_rows, f"{DRAWN}, {BOUNDS}")
    found = {row["key"]: row for row in compute_replacements(new_row, stored_row, target).collect()}
    if (n, kept) == (1, 4.0) and mean == 0.1:
        assert "a" not in found
    else:
        assert (found["a"]["__op"], found["a"]["p"], found["a"]["n"]) == ("U", kept, n)
    assert (found["new"]["__op"], found["new"]["p"]) == ("I", p)
    assert (found["gone"]["__op"], found["gone"]["p"]) == ("D", 4.0)
    assert "__low_p" not in compute_inserts(new_row, target).columns


def test_inserts_are_corrections_of_an_empty_table(spark: SparkSession) -> None:
    rows = new(spark).where("not __overflow")
    found = minutes(compute_inserts(rows, TARGET))
    assert found == {
        ("a", 0, 1, 0, False),
        ("a", 1, 2, 0, False),
        ("a", 2, None, 0, False),
        ("a", 3, None, 0, False),
        ("b", 1, 6, 0, False),
    }
    corrections = compute_corrections(rows, stored(spark).limit(0), TARGET)
    assert minutes(corrections.where("__op <> 'I'")) == set()
    assert found == minutes(corrections.drop("__op", "__begun"))


def test_values_are_lowered_and_tell_a_lost_sum(spark: SparkSession) -> None:
    merged = spark.createDataFrame(
        [("a", 10, 4, False), ("b", 9, 0, None), ("c", 7, 2, True)],
        "key string, total bigint, rows bigint, full boolean",
    )
    mean = Algebra((), F.col("total") / F.nullif("rows", F.lit(0)), F.col("full"))
    count = Algebra((), F.col("rows"))
    found = lower_partials(merged, ["key"], {"mean": mean, "events": count})
    assert found.columns == ["key", "mean", "events", "__overflow"]
    assert minutes(found) == {
        ("a", 2.5, 4, False),
        ("b", None, 0, False),
        ("c", 3.5, 2, True),
    }


def test_values_are_lowered_with_the_bounds_of_those_as_good(spark: SparkSession) -> None:
    merged = spark.createDataFrame([(5, 4, 6)], "p int, low int, high int")
    near = Algebra((), F.col("p"), near=Near(F.col("low"), F.col("high")))
    found = lower_partials(merged, [], {"middle": near})
    assert found.collect()[0].asDict() == {
        "middle": 5,
        "__overflow": False,
        "__low_middle": 4,
        "__high_middle": 6,
    }


@pytest.mark.parametrize(
    ("operator", "number", "expected"),
    [
        (">=", "3", {3, 4}),
        (">", "2.5", {3, 4}),
        ("<", "2.5", {1, 2}),
        ("<=", "3", {1, 2, 3}),
        ("=", "3", {3}),
        ("=", "2.5", set()),
        ("!=", "3", {1, 2, 4}),
        ("!=", "2.5", {1, 2, 3, 4}),
    ],
)
def test_having_compares_whole_numbers_exactly_and_null_does_not_qualify(
    spark: SparkSession, operator: str, number: str, expected: set[int]
) -> None:
    rows = spark.createDataFrame([(1,), (2,), (3,), (4,), (None,)], "n bigint")
    found = filter_having(rows, Having("n", operator, number))
    assert {row.n for row in found.collect()} == expected


def test_without_having_every_row_qualifies(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1,), (None,)], "n bigint")
    assert filter_having(rows, None) is rows


def test_points_differ_from_the_one_before_in_their_group(spark: SparkSession) -> None:
    points = spark.createDataFrame(
        [
            ("a", 0, None, True),
            ("a", 1, None, False),
            ("a", 2, 4, False),
            ("a", 3, 4, False),
            ("a", 4, 5, False),
            ("a", 5, None, False),
            ("b", 0, None, True),
            ("b", 1, 4, False),
            ("b", 2, 0, False),
            ("b", 3, 0, False),
        ],
        "key string, at int, n int, before boolean",
    )
    found = keep_differing(points, ["key"], ["at"], ["n"], "before")
    assert minutes(found) == {
        ("a", 2, 4, False),
        ("a", 4, 5, False),
        ("a", 5, None, False),
        ("b", 1, 4, False),
        ("b", 2, 0, False),
    }
