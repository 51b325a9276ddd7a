"""Several tables read at once: every row with the number of its table, whatever the tables are."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from windowing.location import Location
from windowing.storage import delta, joint_read, own_tables
from windowing.storage.joint_read import Numbered, read_together
from windowing.storage.own_tables import Once

SCHEMA = "key string, event_time timestamp, n bigint"
Found = list[tuple[int, str, int]]


def append(spark: SparkSession, path: Location, batch: int, *numbers: int, schema: str) -> None:
    values = [{"key": path.text[-1], "event_time": None, "n": n} for n in numbers]
    rows = delta.rows(spark, values, schema)
    own_tables.append(rows, Once(path, "app", batch), "event_time", len(numbers))


def read(spark: SparkSession, *paths: Location) -> Found:
    tables = [
        Numbered(number, own_tables.open_snapshot(path), {}) for number, path in enumerate(paths)
    ]
    rows = read_together(spark, tables, ["key", "n"], "number")
    assert rows.schema["number"].dataType == T.IntegerType()
    return sorted((row["number"], row["key"], row["n"]) for row in rows.collect())


@pytest.fixture
def places(spark: SparkSession, tmp_path: Path) -> list[Location]:
    """Three tables of two files each."""
    made = [Location(str(tmp_path / "it's a lake" / name)) for name in "abc"]
    for number, path in enumerate(made):
        append(spark, path, 0, number, schema=SCHEMA)
        append(spark, path, 1, number + 10, schema=SCHEMA)
    return made


EXPECTED = [(0, "a", 0), (0, "a", 10), (1, "b", 1), (1, "b", 11), (2, "c", 2), (2, "c", 12)]


def test_plain_tables_are_read_by_one_scan(
    spark: SparkSession, places: list[Location], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [Numbered(n, own_tables.open_snapshot(path), {}) for n, path in enumerate(places)]
    assert len(read_together(spark, tables, ["n"], "number").inputFiles()) == 6
    monkeypatch.setattr(own_tables, "read_snapshot", None)
    assert read(spark, *places) == EXPECTED


def test_tables_that_differ_are_read_alone(spark: SparkSession, places: list[Location]) -> None:
    first, second, third = places
    spark.sql(f"alter table {second.sql} set tblproperties ('delta.enableDeletionVectors' = true)")
    spark.sql(f"alter table {third.sql} add columns (later double)")
    assert read(spark, first, second, third) == EXPECTED


def test_files_of_the_same_name_are_told_apart(spark: SparkSession, places: list[Location]) -> None:
    first, second, third = places
    shutil.rmtree(second.local)
    shutil.copytree(first.local, second.local)
    copied = [(1, "a", 0), (1, "a", 10)]
    assert read(spark, first, second, third) == [*EXPECTED[:2], *copied, *EXPECTED[4:]]


def test_more_files_than_are_read_by_names_are_read_table_by_table(
    spark: SparkSession, places: list[Location], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joint_read, "MOST_FILES", 5)
    assert read(spark, *places) == EXPECTED
