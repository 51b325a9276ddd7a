"""Few rows by their bytes: what they take, and what is left to Spark."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windowing.storage import few_rows
from windowing.storage.few_rows import collect_few, measure_bytes

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value", "size"),
    [
        ("bigint", 1, None),
        ("timestamp", NOON, None),
        ("decimal(38, 3)", None, None),
        ("struct<a: bigint>", (1,), None),
        ("string", "äb", 3),
        ("string", None, 0),
        ("binary", b"1234", 4),
        ("array<bigint>", [1, 2, 3], 48),
        ("array<string>", ["ab", None, "c"], 3),
        ("array<string>", None, 0),
        ("struct<a: string, b: bigint, `c.d`: binary>", ("ab", 1, b"1"), 3),
        ("struct<a: string>", None, 0),
        ("map<string, bigint>", {"ab": 1, "c": 2}, 3 + 32),
        ("map<bigint, array<string>>", {1: ["ab"], 2: None}, 32 + 2),
        ("array<struct<a: array<string>, b: map<string, string>>>", [(["ab"], {"c": "d"})], 4),
    ],
)
def test_bytes_of_a_value(spark: SparkSession, kind: str, value: Any, size: int | None) -> None:
    rows = spark.createDataFrame([(value,)], f"`odd.name` {kind}")
    text = measure_bytes("`odd.name`", rows.schema.fields[0].dataType)
    assert (text is None) == (size is None)
    if text is not None:
        (found,) = rows.select(F.expr(text).alias("n")).collect()
        assert found["n"] == size


def test_rows_beyond_their_share_are_left_to_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_rows, "_FEW_BYTES", 100)
    rows = spark.createDataFrame([("k1", "x" * 8), ("k2", None)], "key string, doc string")
    kept = collect_few(rows, 10)
    assert kept is not None
    assert sorted(kept["key"].to_pylist()) == ["k1", "k2"]
    assert sorted(map(str, kept["doc"].to_pylist())) == ["None", "x" * 8]
    assert kept.column_names == ["key", "doc"]
    # Each of eleven has nine bytes, and the first row takes ten.
    assert collect_few(rows, 11) is None
    assert collect_few(rows.drop("doc"), 11) is not None
    assert collect_few(rows.limit(0), 0) is not None


def test_another_error_of_a_query_stays_one(spark: SparkSession) -> None:
    rows = spark.range(2).selectExpr("cast(1 / id as string) as text")
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        collect_few(rows, 10)
