"""A digest of frozen rows: what changes it, and what does not."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import DataFrame, SparkSession

from windowing.closed.table import digest_rows

ROWS = (
    "(timestamp'2026-01-01 00:00:00.000001Z', timestamp_ntz'2026-01-01 00:00:00.000001', 1.10BD, 2,"
    " cast(null as string))",
    "(timestamp'2026-01-01 00:00:01Z', timestamp_ntz'2026-01-01 00:00:01', 1.20BD, 3, 'a')",
)
COLUMNS = ("at", "local", "price", "n", "first name")


def rows_of(spark: SparkSession, *values: str) -> DataFrame:
    """These rows."""
    names = ", ".join(f"`{name}`" for name in COLUMNS)
    return spark.sql(f"select * from values {', '.join(values)} as t({names})")


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """The session with another setting."""
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    yield
    spark.conf.set(name, str(before))


def test_neither_the_order_of_rows_or_columns_nor_the_session_changes_it(
    spark: SparkSession,
) -> None:
    found = digest_rows(rows_of(spark, *ROWS), COLUMNS)
    assert found[0] == 2
    assert digest_rows(rows_of(spark, *reversed(ROWS)).repartition(2), COLUMNS) == found
    assert digest_rows(rows_of(spark, *ROWS), tuple(reversed(COLUMNS))) == found
    for name, value in (
        ("spark.sql.jsonGenerator.ignoreNullFields", "false"),
        ("spark.sql.session.timeZone", "Asia/Kolkata"),
    ):
        with setting(spark, name, value):
            assert digest_rows(rows_of(spark, *ROWS), COLUMNS) == found, name


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("00.000001Z", "00.000002Z"),
        ("00.000001'", "00.000002'"),
        ("1.10BD", "1.11BD"),
        (", 2,", ", 4,"),
        ("cast(null as string)", "''"),
    ],
)
def test_every_value_changes_it(old: str, new: str, spark: SparkSession) -> None:
    assert old in ROWS[0]
    before = digest_rows(rows_of(spark, *ROWS), COLUMNS)
    after = digest_rows(rows_of(spark, ROWS[0].replace(old, new), ROWS[1]), COLUMNS)
    assert (after[0], after[1] != before[1]) == (2, True)


def test_rows_that_are_equal_count_each(spark: SparkSession) -> None:
    once, twice = (digest_rows(rows_of(spark, *[ROWS[1]] * n), COLUMNS) for n in (1, 2))
    assert (once[0], twice[0]) == (1, 2)
    assert once[1] != twice[1]
    assert digest_rows(rows_of(spark, ROWS[1]).limit(0), COLUMNS) == (0, "0" * 64)
