"""What Delta's log of a table knows in the JVM: each call, compared with the log's own files."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from windowing.location import Location
from windowing.storage import delta, delta_log


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Location:
    """A table with two rows in two files, at version 1."""
    path = Location(str(tmp_path / "t"))
    columns = T.StructType([T.StructField("id", T.LongType(), metadata={"comment": "a number"})])
    delta.create(spark, path, columns, {"delta.logRetentionDuration": "interval 40 days"})
    delta.append(spark.range(0, 2, 1, 2), path)
    return path


def read_actions(table: Location, kind: str) -> list[Any]:
    """What the commits of the table say of one kind, in order."""
    commits = sorted((table.local / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for file in commits for line in file.read_text().splitlines()]
    return [line[kind] for line in lines if kind in line]


def test_the_newest_version_is_that_of_the_last_commit(
    spark: SparkSession, table: Location
) -> None:
    assert delta_log.version(spark, table) == 1
    assert delta_log.known_version(spark, table) == 1
    newest = table.local / "_delta_log" / f"{1:020}.json"
    # Another program commits without the JVM, which learns of it when it looks.
    newest.with_name(f"{2:020}.json").write_text('{"commitInfo":{"timestamp":1}}\n')
    assert delta_log.known_version(spark, table) == 1
    assert delta_log.version(spark, table) == 2
    assert delta_log.known_version(spark, table) == 2


def test_id_columns_and_properties_are_those_of_the_metadata(
    spark: SparkSession, table: Location
) -> None:
    (metadata,) = read_actions(table, "metaData")
    assert delta_log.known_table_id(spark, table) == metadata["id"]
    assert delta_log.known_schema(spark, table).json() == json.dumps(
        json.loads(metadata["schemaString"]), separators=(",", ":"), sort_keys=True
    )
    assert delta_log.setting(spark, table, "delta.logRetentionDuration") == "interval 40 days"
    assert delta_log.setting(spark, table, "delta.appendOnly") is None


def test_features_are_those_of_the_protocol(spark: SparkSession, tmp_path: Path) -> None:
    marked, plain = (Location(str(tmp_path / name)) for name in ("marked", "plain"))
    columns = T.StructType([T.StructField("id", T.LongType())])
    delta.create(spark, plain, columns, {})
    delta.create(spark, marked, columns, {"delta.enableDeletionVectors": "true"})
    (protocol,) = read_actions(marked, "protocol")
    expected = {*protocol["readerFeatures"], *protocol["writerFeatures"]}
    assert "deletionVectors" in expected
    assert delta_log.known_features(spark, marked) == expected
    assert "deletionVectors" not in delta_log.known_features(spark, plain)


def test_a_table_lies_where_its_log_does(spark: SparkSession, table: Location) -> None:
    assert delta_log.home(spark, table) == table
    told = read_actions(table, "commitInfo")[1]["timestamp"]
    assert delta_log.committed(spark, table, 1) == told * 1_000
    assert delta_log.committed(spark, table, 9) is None


def test_files_and_bytes_are_those_that_were_added(spark: SparkSession, table: Location) -> None:
    added = read_actions(table, "add")
    assert len(added) == 2
    expected = (2, sum(file["size"] for file in added))
    assert delta_log.size(spark, table) == expected
    for checksum in (table.local / "_delta_log").glob("*.crc"):
        checksum.unlink()
    delta_log.forget_all(spark)
    assert delta_log.size(spark, table) == expected


def test_rows_may_be_marked_once_a_table_has_deletion_vectors(
    spark: SparkSession, table: Location
) -> None:
    assert not delta_log.may_mark_rows(spark, table)
    delta.set_property(spark, table, "delta.enableDeletionVectors", "true")
    delta.append(spark.range(0, 10, 1, 1), table)
    assert not delta_log.may_mark_rows(spark, table)
    spark.sql(f"delete from delta.`{table}` where id = 7")
    assert delta_log.may_mark_rows(spark, table)


def test_logs_and_files_are_kept_as_the_properties_say(
    spark: SparkSession, table: Location
) -> None:
    assert delta_log.log_retention(spark, table) == timedelta(days=40)
    # That is Delta's own.
    assert delta_log.file_retention(spark, table) == timedelta(days=7)
    delta.set_property(spark, table, "delta.deletedFileRetentionDuration", "interval 3 days")
    assert delta_log.file_retention(spark, table) == timedelta(days=3)


def test_a_checkpoint_of_the_log_is_written(spark: SparkSession, table: Location) -> None:
    log = table.local / "_delta_log"
    assert not list(log.glob("*.checkpoint*"))
    delta_log.write_checkpoint(spark, table)
    assert list(log.glob(f"{1:020}.checkpoint*"))


@pytest.mark.parametrize("forgets_all", [True, False])
def test_a_table_that_was_made_anew_is_another_one(
    spark: SparkSession, tmp_path: Path, table: Location, *, forgets_all: bool
) -> None:
    first = delta_log.known_table_id(spark, table)
    log = table.local / "_delta_log"
    if forgets_all:
        delta_log.forget_all(spark)
    else:
        delta_log.forget(spark, Location(str(tmp_path)))
    for file in (*log.iterdir(), *table.local.glob("*.parquet")):
        if file.is_file():
            file.unlink()
    delta.append(spark.range(1), table)
    assert delta_log.known_table_id(spark, table) != first
    assert delta.read(spark, table).count() == 1
