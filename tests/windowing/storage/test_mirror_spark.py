"""Mirrors of tables that Spark writes: marked rows, and what Spark reads of a mirror."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.published_readers import open_delta, read_by_each, read_feed, to_rows
from windowing.location import Location
from windowing.storage import delta, upkeep
from windowing.storage.kept_open import newest_version
from windowing.storage.mirror import Mirror, show_version
from windowing.storage.version_changes import compare_versions, find_told_changes
from windowing.storage.version_files import list_version

PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.dataSkippingStatsColumns": "at",
}


def append(spark: SparkSession, table: Location, first: int, end: int) -> None:
    """Appends a row for each number, in one file."""
    rows = spark.range(first, end).selectExpr(
        "concat('k', id % 3) as key", "timestamp_seconds(id * 3600) as at", "id as n"
    )
    delta.append(rows.coalesce(1), table)


def check(spark: SparkSession, mirror: Mirror, table: Location, number: int) -> None:
    """The mirror shows the newest version, for every reader and without marks."""
    show_version(mirror, list_version(table, newest_version(table)), number)
    expected = to_rows(delta.read(spark, table).toArrow())
    found = read_by_each(mirror.home, "key", "k1")
    found["Spark"] = to_rows(delta.read(spark, mirror.home).toArrow())
    assert [name for name, rows in found.items() if rows != expected] == []
    protocol = open_delta(mirror.home).protocol()
    assert protocol.min_reader_version == 1, "every reader opens it"


@pytest.mark.slow
def test_rows_that_are_marked_as_deleted_are_none(spark: SparkSession, tmp_path: Path) -> None:
    table = Location(str(tmp_path / "t"))
    empty = delta.parse_columns("key string, at timestamp, n bigint")
    delta.create(spark, table, empty, PROPERTIES)
    mirror = Mirror(Location(str(tmp_path / "published" / "t")), "p:published", ("key", "at"))
    append(spark, table, 0, 300)
    append(spark, table, 300, 600)
    check(spark, mirror, table, 1)
    upkeep.delete_where(spark, table, F.col("n") == 7)
    upkeep.update_rows(spark, table, F.col("n") == 9, {"n": F.lit(9_000)})
    assert list(table.local.glob("*deletion_vector*")), "there is something to test"
    since = open_delta(mirror.home).version()
    check(spark, mirror, table, 2)
    told = [(row["_change_type"], row["n"]) for row in read_feed(mirror.home, since)]
    expected = [("delete", 7), ("update_preimage", 9), ("update_postimage", 9_000)]
    assert sorted(told) == sorted(expected)
    names = {file.name for file in mirror.home.local.glob("*.parquet")}
    check(spark, mirror, table, 3)
    assert {file.name for file in mirror.home.local.glob("*.parquet")} == names
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    changes = feed.load(mirror.home.hadoop).groupBy("_change_type").count().collect()
    assert {row["_change_type"]: row["count"] for row in changes} == {
        "insert": 600,
        "delete": 1,
        "update_preimage": 1,
        "update_postimage": 1,
    }


@pytest.mark.deep
def test_commits_of_spark_tell_what_files_tell(spark: SparkSession, tmp_path: Path) -> None:
    table = Location(str(tmp_path / "t"))
    empty = delta.parse_columns("key string, at timestamp, n bigint")
    delta.create(spark, table, empty, PROPERTIES)
    append(spark, table, 0, 200)
    upkeep.delete_where(spark, table, F.col("n") % 50 == 7)
    append(spark, table, 200, 300)
    upkeep.compact_files(spark, table)
    upkeep.update_rows(spark, table, F.col("n") > 290, {"n": F.col("n") + 1_000})
    upkeep.delete_where(spark, table, F.lit(True))  # noqa: FBT003 Spark's
    append(spark, table, 100, 150)
    compared_pairs = 0
    versions = [list_version(table, n) for n in range(newest_version(table) + 1)]
    for before in versions:
        for after in versions:
            told = find_told_changes(before, after, ("key", "at"))
            if told is None:
                continue
            compared_pairs += 1
            for file in (table.local / "_change_data").glob("*"):
                file.rename(file.with_suffix(".away"))
            compared = compare_versions(before, after, ("key", "at"))
            for file in (table.local / "_change_data").glob("*.away"):
                file.rename(file.with_suffix(".parquet"))
            assert to_rows(told.tell_feed()) == to_rows(compared.tell_feed())
    assert compared_pairs > len(versions)
