"""The fence in the log store: Spark commits the version that is next for this process, or nothing.

HDFS and local disks have the same log store here, so no server is needed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from jobs.foreign_errors.commit_errors import explain_commit_error
from windowing.errors import Busy
from windowing.location import Location
from windowing.storage import delta_log
from windowing.storage.delta_log import CommitFence, allow_commit
from windowing.storage.kept_open import find_noted_version, tables_kept_open
from windowing.storage.spark_internals import FENCED, SPARK_ERRORS

_LOG_STORE = "spark.delta.logStore.file.impl"


@pytest.fixture
def fence(spark: SparkSession, tmp_path: Path) -> Iterator[CommitFence]:
    """Around all tables of the test, whose logs are opened from now on."""
    java: Any = spark._jvm
    settings = java.org.apache.spark.SparkEnv.get().conf()
    settings.set(_LOG_STORE, "tidemark.FencedLogStore")
    fence = CommitFence(spark, str(tmp_path / "lake"))
    yield fence
    fence.lift()
    settings.remove(_LOG_STORE)


@pytest.fixture
def table(spark: SparkSession, fence: CommitFence, tmp_path: Path) -> str:
    """A table that Spark may make."""
    path = str(tmp_path / "lake" / "table")
    allow_commit(spark, path, 0)
    return path


def append(spark: SparkSession, table: str, *, first: int = 0) -> None:
    spark.range(first, first + 3).write.format("delta").mode("append").save(table)


def append_elsewhere(table: str) -> int:
    """Commits a row as another process would; the version that it made."""
    write_deltalake(table, pa.table({"id": [100]}), mode="append")
    return newest(table)


def newest(table: str) -> int:
    return DeltaTable(table).version()


def rows(spark: SparkSession, table: str) -> list[int]:
    found = DeltaTable(table).to_pyarrow_table().column("id").to_pylist()
    return sorted(found)


def test_in_a_fenced_lake_no_table_is_made_unasked(
    spark: SparkSession, fence: CommitFence, tmp_path: Path
) -> None:
    with pytest.raises(SPARK_ERRORS) as error:
        append(spark, str(tmp_path / "lake" / "table"))
    assert f"{FENCED}: nothing may be committed to {tmp_path}/lake/table" in str(error.value)
    assert not list(tmp_path.rglob("*.json"))


def test_own_commits_follow_each_other(spark: SparkSession, table: str) -> None:
    append(spark, table)
    name = f"delta.`{table}`"
    spark.sql(f"alter table {name} set tblproperties ('delta.appendOnly' = 'false')")
    spark.sql(
        f"merge into {name} t using (select 1L id union select 7L) s on t.id = s.id "
        "when matched then delete when not matched then insert *"
    )
    spark.sql(f"optimize {name}")
    spark.sql(f"delete from {name} where id = 0")
    append(spark, table, first=10)
    assert newest(table) == 5
    assert rows(spark, table) == [2, 7, 10, 11, 12]


@pytest.mark.parametrize(
    "statement",
    [
        "insert into {table} values (1L)",
        "delete from {table} where id = 1",
        "update {table} set id = 9L where id = 1",
        "merge into {table} t using (select 7L id) s on t.id = s.id when not matched then insert *",
        "alter table {table} set tblproperties ('a' = 'b')",
        "optimize {table}",
    ],
)
def test_after_a_commit_of_others_nothing_is_committed(
    statement: str, spark: SparkSession, table: str
) -> None:
    append(spark, table)
    append(spark, table, first=10)
    taken = append_elsewhere(table)
    before = rows(spark, table)
    with pytest.raises(SPARK_ERRORS) as error:
        spark.sql(statement.format(table=f"delta.`{table}`")).collect()
    said = f"version {taken + 1} of {table} may not be committed by this process, which may commit"
    assert f"{FENCED}: {said} version {taken} alone" in str(error.value)
    assert isinstance(explain_commit_error(str(error.value)), Busy)
    assert (newest(table), rows(spark, table)) == (taken, before)


def test_a_commit_that_lost_a_race_is_not_repeated_above(
    spark: SparkSession, fence: CommitFence, table: str
) -> None:
    """Delta tries the version after the one that it lost; the fence is in front of that."""
    append(spark, table)
    before = DeltaTable(table)
    allow_commit(spark, table, 1)
    started = spark.range(5, 6).write.format("delta").mode("append")
    append_elsewhere(table)
    with pytest.raises(SPARK_ERRORS, match=FENCED):
        started.save(table)
    assert before.version() + 1 == newest(table)


def test_whoever_has_seen_the_version_may_commit_the_next(
    spark: SparkSession, fence: CommitFence, table: str
) -> None:
    append(spark, table)
    allow_commit(spark, table, append_elsewhere(table) + 1)
    append(spark, table, first=10)
    assert rows(spark, table) == [0, 1, 2, 10, 11, 12, 100]


def test_what_another_one_has_committed_is_none_of_ones_own(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever goes on from that would overwrite what a successor has made."""
    path = Location(table)
    monkeypatch.setattr(Location, "is_local", False)
    with tables_kept_open():
        with delta_log.committing(spark, path):
            append(spark, table)
        assert find_noted_version(path) == 0
        assert append_elsewhere(table) == delta_log.version(spark, path) == 1
        with delta_log.committing(spark, path):
            spark.sql(f"delete from delta.`{table}` where id = 77")
        assert find_noted_version(path) == 0
        with pytest.raises(SPARK_ERRORS, match=FENCED), delta_log.committing(spark, path):
            append(spark, table)
    assert newest(table) == 1


def test_what_was_allowed_is_refused_by_a_closed_fence(
    spark: SparkSession, fence: CommitFence, table: str
) -> None:
    fence.close()
    with pytest.raises(SPARK_ERRORS, match=f"{FENCED}: nothing may be committed"):
        append(spark, table)


def test_other_directories_have_no_fence(
    spark: SparkSession, fence: CommitFence, tmp_path: Path
) -> None:
    beside = str(tmp_path / "lake_raw" / "table")
    append(spark, beside)
    append_elsewhere(beside)
    append(spark, beside)
    assert newest(beside) == 2


def test_a_fence_ends_and_begins_anew(
    spark: SparkSession, fence: CommitFence, table: str, tmp_path: Path
) -> None:
    append(spark, table)
    fence.lift()
    append_elsewhere(table)
    append(spark, table)
    allow_commit(spark, table, 3)
    CommitFence(spark, str(tmp_path / "lake"))
    with pytest.raises(SPARK_ERRORS, match=f"{FENCED}: nothing may be committed"):
        append(spark, table)
