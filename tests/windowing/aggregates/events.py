"""Events with a column of each type, nulls and ties among them."""

import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from windowing.columns import TIME
from windowing.location import Location
from windowing.spec.duration import HOUR
from windowing.spec.pipeline import EventTime, Pipeline, Source, Watermark


@dataclass(frozen=True)
class Row:
    """One event: its place in event order, and its columns."""

    key: str
    piece: int
    t: int
    id: str
    columns: dict[str, Any]


SOURCE = Source(Location("/source"), EventTime("ts"), ("key",), event_id="id")
PIPELINE = Pipeline("p", Location("/lake"), SOURCE, Watermark(0, 0, HOUR), ())
START = datetime(2024, 3, 10, tzinfo=UTC)
TYPES: dict[str, T.DataType] = {
    "tiny": T.ByteType(),
    "small": T.ShortType(),
    "int": T.IntegerType(),
    "big": T.LongType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "decimal": T.DecimalType(10, 2),
    "wide": T.DecimalType(38, 4),
    "number": T.StringType(),
    "text": T.StringType(),
    "mark": T.BooleanType(),
    "day": T.DateType(),
    "moment": T.TimestampType(),
}
POOLS: dict[str, list[Any]] = {
    "tiny": [-128, 127, 0, 5, 7],
    "small": [-32768, 32767, 3, 4],
    "int": [-(2**31), 2**31 - 1, 1, 2, 17, 18],
    "big": [-(2**63), 2**63 - 1, 2**62, -(2**61), 1, 2, 3],
    "float": [-1.5, 0.25, 3.75, 1024.0, -0.0, 0.0],
    "double": [-1e9, 0.1, 0.7, 1e9, 123456.789, -0.0, 0.0],
    "decimal": [Decimal("-99999999.99"), Decimal("0.01"), Decimal("12.50"), Decimal("12.51")],
    "wide": [Decimal("1234567890123456789.0001"), Decimal("-0.0001"), Decimal("7.0000")],
    "number": ["1.5", "-2e3", "17", "0.125"],
    "text": ["", "a", "A", "zürich", "日本", "a b"],
    "mark": [True, False],
    "day": [date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)],
    "moment": [START + timedelta(microseconds=n) for n in (0, 1, 999_999, 10**12)],
}
PIECES = 9

SCHEMA = T.StructType(
    [
        T.StructField("key", T.StringType()),
        T.StructField("piece", T.IntegerType()),
        T.StructField(TIME, T.LongType()),
        T.StructField("id", T.StringType()),
        *(T.StructField(c, kind) for c, kind in TYPES.items()),
    ]
)


def _rows() -> list[Row]:
    rng = random.Random(7)
    out = []
    for key, count, nulls in (
        ("many", 400, 0.2),
        ("some", 40, 0.3),
        ("three", 3, 0.3),
        ("one", 1, 0.0),
        ("none", 20, 1.0),
    ):
        for n in range(count):
            columns = {
                c: None if rng.random() < nulls else rng.choice(pool) for c, pool in POOLS.items()
            }
            out.append(
                Row(
                    key,
                    rng.randrange(PIECES),
                    rng.randrange(count // 3 + 1) * 1_000_000,
                    f"{key}{n:04}",
                    columns,
                )
            )
    return out


ROWS = _rows()


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    """The rows as accepted events."""
    return spark.createDataFrame(
        [(r.key, r.piece, r.t, r.id, *r.columns.values()) for r in rows], SCHEMA
    )
