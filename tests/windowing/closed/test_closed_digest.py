"""A digest of frozen rows: what changes it, and what does not."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

import pytest
from pyspark.sql import DataFrame, SparkSession

from windowing.closed.rule import LANES, write_digest
from windowing.closed.table import digest_rows

ROWS = (
    "(timestamp'2026-01-01 00:00:00.000001Z', timestamp_ntz'2026-01-01 00:00:00.000001', 1.10BD, 2,"
    " cast(null as string), 1e23D, array(named_struct('ratio', 0.1D, 'n', 7), null))",
    "(timestamp'2026-01-01 00:00:01Z', timestamp_ntz'2026-01-01 00:00:01', 1.20BD, 3, 'a',"
    " cast('NaN' as double), null)",
)
COLUMNS = ("at", "local", "price", "n", "first name", "miles", "parts")


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
        ("1e23D", "9.999999999999998E22D"),
        ("0.1D", "0.10000000000000002D"),
        ("'n', 7", "'n', 8"),
        (", null))", "))"),
        ("1e23D", "cast(null as double)"),
    ],
)
def test_every_value_changes_it(old: str, new: str, spark: SparkSession) -> None:
    assert old in ROWS[0]
    before = digest_rows(rows_of(spark, *ROWS), COLUMNS)
    after = digest_rows(rows_of(spark, ROWS[0].replace(old, new), ROWS[1]), COLUMNS)
    assert (after[0], after[1] != before[1]) == (2, True)


def test_no_version_of_java_changes_it(spark: SparkSession) -> None:
    # Java 17 writes both numbers with more decimals than Java 21 does.
    rows = spark.sql("select 1e23D as miles, cast(pow(2, -31) as float) as ratio")
    text = '{"miles":"0x1.52d02c7e14af6p76","ratio":"0x1.0p-31"}'
    digest = sha256(text.encode()).hexdigest()
    lanes = tuple(int(digest[16 * lane : 16 * lane + 16], 16) for lane in range(LANES))
    assert digest_rows(rows, ("miles", "ratio")) == (1, write_digest(lanes))


def test_rows_that_are_equal_count_each(spark: SparkSession) -> None:
    once, twice = (digest_rows(rows_of(spark, *[ROWS[1]] * n), COLUMNS) for n in (1, 2))
    assert (once[0], twice[0]) == (1, 2)
    assert once[1] != twice[1]
    assert digest_rows(rows_of(spark, ROWS[1]).limit(0), COLUMNS) == (0, "0" * 64)
