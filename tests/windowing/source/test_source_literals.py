"""A text stands for a value of a key column only where it names exactly that value."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windowing.errors import UsageError
from windowing.source.table import literal

NOON = datetime(2024, 3, 5, 12, tzinfo=UTC)

NAMED = [
    ("string", "1.50", "1.50"),
    ("int", "-7", -7),
    ("bigint", "3000000000", 3_000_000_000),
    ("boolean", "true", True),
    ("decimal(10,2)", "1.5", Decimal("1.50")),
    ("decimal(10,2)", "1.2300", Decimal("1.23")),
    ("decimal(10,2)", "12e1", Decimal("120.00")),
    ("date", "2024-03-05", date(2024, 3, 5)),
    ("date", "2024-3-5", date(2024, 3, 5)),
    ("timestamp", "2024-03-05", NOON.replace(hour=0)),
    ("timestamp", "2024-03-05T12:00", NOON),
    ("timestamp", "2024-03-05 12:00:00.500000", NOON.replace(microsecond=500_000)),
    ("timestamp", "2024-03-05T12:00:00Z", NOON),
    ("timestamp", "2024-03-05T14:00:00+02:00", NOON),
]


@pytest.mark.parametrize(("kind", "text", "value"), NAMED)
def test_a_text_that_names_one_value_is_that_value(
    kind: str, text: str, value: object, spark: SparkSession
) -> None:
    (field,) = spark.createDataFrame([], f"k {kind}").schema.fields
    named = literal(spark, "--key", "k", field.dataType, text)
    expected = F.lit(value).cast(kind)
    row = spark.range(1).select((named == expected).alias("is_equal")).first()
    assert row is not None and row["is_equal"]


NOT_NAMED = [
    ("int", "abc", ""),
    ("int", "1.5", ""),
    ("int", "3000000000", ""),
    ("boolean", "perhaps", ""),
    ("decimal(10,2)", "1.239", ""),
    ("decimal(10,2)", "123456789", ""),
    ("decimal(10,2)", "1e-99999999999999999999", ""),
    ("date", "2024", "; write it in full, as in 2013-03-10"),
    ("date", "2024-03", "; write it in full, as in 2013-03-10"),
    ("date", "2024-03-05T12:00", "; write it in full, as in 2013-03-10"),
    ("date", "2024-02-30", "; write it in full, as in 2013-03-10"),
    ("timestamp", "2024", "; write it in full, as in 2013-03-10T05:00:00Z"),
    ("timestamp", "12:00", "; write it in full, as in 2013-03-10T05:00:00Z"),
    (
        "timestamp",
        "2024-03-05 12:00:00.1234567",
        "; write it in full, as in 2013-03-10T05:00:00Z",
    ),
    # At this local time the clock was there twice.
    (
        "timestamp",
        "2024-10-27 02:30:00 Europe/Berlin",
        "; write it in full, as in 2013-03-10T05:00:00Z",
    ),
]


@pytest.mark.parametrize(("kind", "text", "how"), NOT_NAMED)
def test_a_text_that_names_no_value_or_only_part_of_one_is_refused(
    kind: str, text: str, how: str, spark: SparkSession
) -> None:
    (field,) = spark.createDataFrame([], f"k {kind}").schema.fields
    with pytest.raises(UsageError) as raised:
        literal(spark, "--key", "k", field.dataType, text)
    assert str(raised.value) == (
        f"--key: {text!r} is not a value of 'k', which is of type {kind}{how}"
    )
