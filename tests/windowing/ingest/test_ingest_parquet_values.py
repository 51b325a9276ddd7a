"""Values of Parquet are those of a pinned type by the rules of texts: nothing gets a zone."""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windowing.columns import FILE
from windowing.ingest.columns import PinnedColumn
from windowing.ingest.fit import fit_rows
from windowing.ingest.frame import take_parquet
from windowing.spec.pipeline import CsvForm
from windowing.storage import delta

LOCAL = "timestamp_ntz'2026-03-02 10:05:00.123456'"
INSTANT = "timestamp'2026-03-02 10:05:00.123456Z'"
DAY = "date'2026-03-02'"
SHOWN = "2026-03-02 10:05:00.123456"
VALUES = [
    (LOCAL, "timestamp", None, None),
    (INSTANT, "timestamp_ntz", None, None),
    (DAY, "timestamp", None, None),
    ("timestamp'2026-03-02 00:00:00Z'", "date", None, None),
    ("1772445900L", "timestamp", None, None),
    ("1.5D", "timestamp", None, None),
    (INSTANT, "bigint", None, None),
    (INSTANT, "timestamp", None, SHOWN),
    (LOCAL, "timestamp_ntz", None, SHOWN),
    # A day has no zone, and is a local time at its beginning, as in text.
    (DAY, "timestamp_ntz", None, "2026-03-02 00:00:00"),
    ("timestamp_ntz'2026-03-02 00:00:00'", "date", None, "2026-03-02"),
    (LOCAL, "date", None, None),
    ("'2026-03-02 10:05:00'", "timestamp", None, None),
    ("'2026-03-02T12:05:00+02:00'", "timestamp", None, "2026-03-02 10:05:00"),
    ("'2026-03-02T10:05:00Z'", "timestamp_ntz", None, None),
    ("'2/3/2026 10:05'", "timestamp_ntz", "d/M/yyyy H:mm", "2026-03-02 10:05:00"),
    ("'2026-03-02 10:05:00'", "timestamp_ntz", "d/M/yyyy H:mm", None),
    ("' 7 '", "bigint", None, "7"),
    ("'7.50'", "decimal(10,2)", None, "7.50"),
    ("'7.505'", "decimal(10,2)", None, None),
    ("'7d'", "double", None, None),
    ("'7,5'", "double", None, None),
    (f"named_struct('a', {LOCAL})", "struct<a:timestamp>", None, "{null}"),
    (f"named_struct('a', {LOCAL})", "string", None, '{"a":"2026-03-02T10:05:00.123456"}'),
    ("named_struct('a', '7d')", "struct<a:double>", None, "{null}"),
    ("array('2026-03-02T10:05:00Z')", "array<timestamp>", None, "[2026-03-02 10:05:00]"),
]


@pytest.fixture(scope="module")
def fitted(spark: SparkSession) -> dict[str, Any]:
    """The values as texts by their columns, what is left, and the record."""
    columns = [PinnedColumn(f"c{n}", case[1], f"c{n}", case[2]) for n, case in enumerate(VALUES)]
    values = [F.expr(case[0]).alias(f"c{n}") for n, case in enumerate(VALUES)]
    values.append(F.expr(f"named_struct('at', {LOCAL})").alias("more"))
    values.append(F.expr("'theirs'").alias("source_file"))
    rows = spark.range(1).select(
        F.lit("a.parquet").alias(FILE), F.struct(*values).alias("__fields")
    )
    pinned = [*(column.source for column in columns)]
    types = delta.parse_columns(", ".join(f"{c.name} {c.type}" for c in columns))
    found = fit_rows(take_parquet(rows, pinned), columns, types, CsvForm(), "rescue")
    shown = [F.col(name).cast("string").alias(name) for name in found.columns]
    return found.select(*shown).collect()[0].asDict()


@pytest.mark.parametrize("place", range(len(VALUES)), ids=lambda n: f"{VALUES[n][:3]}")
def test_a_value_is_one_of_the_type_or_left_over(place: int, fitted: dict[str, Any]) -> None:
    *_, expected = VALUES[place]
    assert fitted[f"c{place}"] == expected
    is_left = f"c{place}" in json.loads(fitted["rescued"])
    assert is_left is (expected is None or "null" in expected)


def test_no_column_has_the_place_of_another(fitted: dict[str, Any]) -> None:
    assert fitted[FILE] == "a.parquet"
    assert json.loads(fitted["rescued"])["source_file"] == "theirs"
    assert json.loads(fitted["__record"])["source_file"] == "theirs"


def test_local_times_keep_their_microseconds(fitted: dict[str, Any]) -> None:
    local = "2026-03-02T10:05:00.123456"
    assert json.loads(fitted["rescued"])["more"] == {"at": local}
    assert json.loads(fitted["__record"])["more"] == {"at": local}
    assert json.loads(fitted["__record"])["c0"] == local
