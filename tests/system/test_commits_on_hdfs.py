"""Commits to one table on HDFS by Spark and by delta-rs: none is lost, and the fence holds."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from tests.support.hdfs_server import HdfsServer
from windowing.location import Location
from windowing.storage.delta_log import CommitFence, allow_commit
from windowing.storage.spark_internals import FENCED, SPARK_ERRORS

ROWS = 8
"""How many rows each writer appends, by a commit each."""


@pytest.fixture
def lake(hdfs_server: HdfsServer) -> Location:
    """A directory without files."""
    return Location(hdfs_server.make_home())


def append_by_spark(spark: SparkSession, table: Location, first: int) -> list[int]:
    """The rows whose commits were acknowledged."""
    for row in range(first, first + ROWS):
        spark.range(row, row + 1).write.format("delta").mode("append").save(table.hadoop)
    return [*range(first, first + ROWS)]


def append_by_delta_rs(table: Location, first: int) -> list[int]:
    """The rows whose commits were acknowledged; a commit that comes second is not tried again."""
    done = []
    for row in range(first, first + ROWS):
        try:
            write_deltalake(
                table.text,
                pa.table({"id": [row]}),
                mode="append",
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except CommitFailedError:
            continue
        done.append(row)
    return done


def read(table: Location) -> list[int]:
    return sorted(DeltaTable(table.text).to_pyarrow_table().column("id").to_pylist())


def test_of_writers_that_race_no_commit_is_lost(spark: SparkSession, lake: Location) -> None:
    table = lake / "table"
    spark.range(0).write.format("delta").save(table.hadoop)
    with ThreadPoolExecutor(3) as pool:
        racing = [
            pool.submit(append_by_spark, spark, table, 0),
            pool.submit(append_by_delta_rs, table, 100),
            pool.submit(append_by_delta_rs, table, 200),
        ]
        done = sorted(row for each in racing for row in each.result())
    assert len(done) > ROWS
    assert read(table) == done
    assert DeltaTable(table.text).version() == len(done)
    assert sorted(row.id for row in spark.read.format("delta").load(table.hadoop).collect()) == done


def test_spark_commits_nothing_that_the_fence_does_not_allow(
    spark: SparkSession, lake: Location
) -> None:
    table = lake / "table"
    spark.range(1).write.format("delta").save(table.hadoop)
    fence = CommitFence(spark, lake.hadoop)
    try:
        with pytest.raises(SPARK_ERRORS) as refused:
            spark.range(1, 2).write.format("delta").mode("append").save(table.hadoop)
        assert f"{FENCED}: nothing may be committed to {table}" in str(refused.value)
        allow_commit(spark, table.hadoop, 1)
        spark.range(1, 2).write.format("delta").mode("append").save(table.hadoop)
    finally:
        fence.lift()
    assert read(table) == [0, 1]
