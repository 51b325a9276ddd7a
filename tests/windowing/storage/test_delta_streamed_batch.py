"""The batch of a stream, read as a table is read, has the rows that the stream passes on."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windowing.location import Location
from windowing.storage import spark_internals

TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "plain": ("at", {}),
    "deletion vectors": ("at", {"delta.enableDeletionVectors": "true"}),
    "mapped columns": ("at time", {"delta.columnMapping.mode": "name"}),
}
"""The name of the time column, and properties; a name with a space needs mapped columns."""


class Reader:
    """A stream over a table that keeps what it read in each way, batch by batch."""

    def __init__(self, spark: SparkSession, table: Path, *options: str) -> None:
        self.spark = spark
        self.stream = spark.newSession()
        self.table = table
        self.options = dict.fromkeys(options, "true")
        self.passed_on: list[list[str]] = []
        self.read_again: list[list[str]] = []
        self.plans: list[str] = []
        self.tasks: list[int] = []
        self.files: list[list[Location] | None] = []
        self.bytes: list[int] = []

    def drain(self) -> None:
        reader = self.stream.readStream.format("delta").options(**self.options)
        stream = reader.load(str(self.table)).writeStream.foreachBatch(self._take)
        home = str(self.table) + "-checkpoint"
        stream.option("checkpointLocation", home).trigger(
            availableNow=True
        ).start().awaitTermination()

    def _take(self, rows: DataFrame, number: int) -> None:
        found = spark_internals.read_streamed_files(self.spark, self.stream, rows)
        if found is None:
            found = spark_internals.pass_rows_on(self.spark, rows)
        self.passed_on.append(show(rows))
        self.read_again.append(show(found))
        plan = found._jdf.queryExecution().optimizedPlan().toString()
        assert found.sparkSession is self.spark
        self.files.append(spark_internals.list_batch_files(self.stream))
        self.bytes.append(spark_internals.measure_batch(self.stream))
        self.tasks.append(found.rdd.getNumPartitions())
        self.plans.append("files" if "Relation [" in plan else "rows")


def measure_file(file: Location) -> int:
    return file.local.stat().st_size


def numbers_of(shown: list[str]) -> list[int]:
    """The column `n` of rows as `show` gives them."""
    return [int(row.split("n=")[1].split(",")[0]) for row in shown]


def show(rows: DataFrame) -> list[str]:
    return sorted(str(row) for row in rows.collect())


def create(
    spark: SparkSession,
    table: Path,
    partitions: tuple[str, ...] = (),
    properties: Mapping[str, str] = MappingProxyType({}),
    time: str = "at",
) -> None:
    columns = f"user string, `{time}` timestamp, n bigint, day date"
    described = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    partitioned = f"partitioned by ({', '.join(partitions)})" if partitions else ""
    with_properties = f"tblproperties ({described})" if described else ""
    spark.sql(
        f"create table delta.`{table}` ({columns}) using delta {partitioned} {with_properties}"
    )


def land(
    spark: SparkSession,
    table: Path,
    first: int,
    partitions: tuple[str, ...] = (),
    time: str = "at",
) -> None:
    rows = spark.range(first, first + 20).select(
        F.concat(F.lit("u"), F.col("id") % 3).alias("user"),
        F.timestamp_seconds("id").alias(time),
        F.col("id").alias("n"),
        F.date_add(F.lit("2026-01-01").cast("date"), (F.col("id") % 2).cast("int")).alias("day"),
    )
    rows.repartition(3).write.format("delta").mode("append").partitionBy(*partitions).save(
        str(table)
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_a_batch_has_the_same_rows_read_as_a_table(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    table = tmp_path / "events"
    time, properties = TABLES[kind]
    create(spark, table, properties=properties, time=time)
    land(spark, table, 0, time=time)
    spark.sql(f"delete from delta.`{table}` where n % 5 = 0")
    reader = Reader(spark, table)
    reader.drain()
    land(spark, table, 100, time=time)
    land(spark, table, 200, time=time)
    reader.drain()
    assert [len(rows) for rows in reader.passed_on] == [16, 40]
    assert reader.read_again == reader.passed_on
    assert reader.plans == ["files", "files"]
    has_only_its_rows = {
        # Files were rewritten by the delete.
        "plain": [True, True],
        # The files of the first batch contain deleted rows.
        "deletion vectors": [False, True],
        # They name columns otherwise.
        "mapped columns": [False, False],
    }
    assert [files is not None for files in reader.files] == has_only_its_rows[kind]
    for rows, files in zip(reader.passed_on, reader.files, strict=True):
        if files is not None:
            assert reader.bytes[reader.files.index(files)] == sum(map(measure_file, files))
            found = spark.read.parquet(*map(str, files))
            assert sorted(row["n"] for row in found.collect()) == sorted(numbers_of(rows))


def test_a_batch_of_a_partitioned_table_has_the_same_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "events"
    create(spark, table, ("day",))
    land(spark, table, 0, ("day",))
    reader = Reader(spark, table)
    reader.drain()
    assert len(reader.passed_on[0]) == 20
    assert reader.read_again == reader.passed_on
    assert reader.plans == ["files"]


def test_a_batch_of_a_change_feed_stays_as_it_is_passed_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "events"
    create(spark, table, properties={"delta.enableChangeDataFeed": "true"})
    land(spark, table, 0)
    reader = Reader(spark, table, "readChangeFeed")
    reader.drain()
    spark.sql(f"update delta.`{table}` set n = n + 1000 where n < 5")
    reader.drain()
    assert reader.read_again == reader.passed_on
    assert [len(rows) for rows in reader.passed_on] == [20, 10]
    assert "files" not in reader.plans[1:]
    assert reader.files[1:] == [None]


@pytest.mark.slow
def test_the_session_of_the_queries_says_how_files_are_split(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "events"
    create(spark, table)
    land(spark, table, 0)
    tasks = []
    for most_bytes in ("100000", "100m"):
        own = spark.newSession()
        own.conf.set("spark.sql.files.maxPartitionBytes", most_bytes)
        own.conf.set("spark.sql.leafNodeDefaultParallelism", "1")
        reader = Reader(own, table)
        reader.drain()
        shutil.rmtree(f"{table}-checkpoint")
        tasks += reader.tasks
    # There are three files, of some thousand bytes.
    assert tasks == [3, 1]


def test_rows_outside_of_a_stream_stay_as_they_are(spark: SparkSession) -> None:
    rows = spark.range(3)
    assert spark_internals.read_streamed_files(spark, spark, rows) is None
    assert show(spark_internals.pass_rows_on(spark, rows)) == show(rows)
    assert spark_internals.list_batch_files(spark) is None
    assert spark_internals.measure_batch(spark) == 0
