"""A pipeline's tables written by Spark and by this process in turn."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windowing.errors import Busy, TidemarkError
from windowing.location import Location
from windowing.storage import control, delta, merges, own_tables, plain_table, staged_files
from windowing.storage.arrow_merge import Clauses
from windowing.storage.kept_open import newest_version, tables_kept_open
from windowing.storage.merges import Merged, merge_rows
from windowing.storage.own_tables import Once
from windowing.storage.plain_table import Bounds

SCHEMA = "key string, window_start timestamp, n bigint"


def rows_of(spark: SparkSession, *numbers: int) -> DataFrame:
    """Rows of state, one for each number."""
    rows = [(f"k{n}", datetime(2026, 1, 1, 0, n, tzinfo=UTC), n) for n in numbers]
    return spark.createDataFrame(rows, SCHEMA)


def append_few(spark: SparkSession, path: Location, batch: int, *numbers: int) -> None:
    """Appends rows in this process."""
    own_tables.append(rows_of(spark, *numbers), Once(path, "app", batch), "window_start", 9)


def append_many(spark: SparkSession, path: Location, batch: int, *numbers: int) -> None:
    """Appends rows in Spark."""
    own_tables.append_many(rows_of(spark, *numbers), Once(path, "app", batch))


def numbers_in(frame: DataFrame) -> list[int]:
    """The numbers of all rows in order."""
    return sorted(row["n"] for row in frame.collect())


def test_a_batch_is_stored_once_whoever_commits_it(spark: SparkSession, tmp_path: Path) -> None:
    path = Location(str(tmp_path / "state"))
    append_few(spark, path, 0, 1)
    append_many(spark, path, 0, 1)
    append_many(spark, path, 1, 2)
    append_few(spark, path, 1, 2)
    append_few(spark, path, 2, 3)
    append_many(spark, path, 2, 3)
    append_few(spark, path, 3, 4)
    assert numbers_in(delta.read(spark, path)) == [1, 2, 3, 4]
    assert plain_table.find_plain(path) is not None


@pytest.mark.parametrize("name", ["state", "my lake {a,b}*", "100%"])
def test_rows_are_read_as_delta_reads_them(spark: SparkSession, tmp_path: Path, name: str) -> None:
    path = Location(str(tmp_path / name / "state"))
    append_few(spark, path, 0, 1, 2)
    append_many(spark, path, 1, 3, 4)
    spark.sql(f"alter table delta.`{path}` add columns (later double)")
    append_few(spark, path, 2, 5)
    read = own_tables.read(spark, path)
    assert read.schema == delta.read(spark, path).schema
    assert sorted(map(str, read.collect())) == sorted(map(str, delta.read(spark, path).collect()))
    assert numbers_in(read) == [1, 2, 3, 4, 5]


def test_files_beyond_the_bounds_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    path = Location(str(tmp_path / "state"))
    for batch in range(4):
        append_few(spark, path, batch, batch)
    third = int(datetime(2026, 1, 1, 0, 2, tzinfo=UTC).timestamp() * 1_000_000)
    from_third = own_tables.read(spark, path, {"window_start": (third, None)})
    assert numbers_in(from_third) == [2, 3]


def test_of_a_large_table_only_bounds_choose_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Location(str(tmp_path / "state"))
    schema = pa.schema([("run", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    version = -1
    for run in range(3):
        row = {"run": run, "at": run * 1_000_000}
        version = control.append_rows(path, schema, [row], version)
    snapshot = own_tables.open_snapshot(path)

    def count(within: Bounds | None) -> int | None:
        files = own_tables.choose_files(snapshot, within)
        return None if files is None else len(files)

    assert (count(None), count(own_tables.EVERY_ROW)) == (3, 3)
    monkeypatch.setattr(own_tables, "_SMALL_BYTES", 100)
    assert (count(None), count(own_tables.EVERY_ROW)) == (None, 3)
    assert count({"run": (1, 1)}) == 3, "only times have bounds"


def test_rows_of_other_types_are_not_cast(spark: SparkSession, tmp_path: Path) -> None:
    path = Location(str(tmp_path / "state"))
    append_few(spark, path, 0, 1)
    text = rows_of(spark, 2).selectExpr("key", "window_start", "cast(n as string) as n")
    with pytest.raises(AnalysisException, match="DELTA_FAILED_TO_MERGE_FIELDS"):
        own_tables.append(text, Once(path, "app", 1), "window_start", 9)
    assert numbers_in(delta.read(spark, path)) == [1]


def test_a_foreign_commit_is_not_taken_for_an_own_one(spark: SparkSession, tmp_path: Path) -> None:
    path = Location(str(tmp_path / "state"))
    with tables_kept_open():
        append_few(spark, path, 0, 1)
        assert own_tables.known_version(path) == 1
        spark.sql(f"delete from delta.`{path}`")
        assert not own_tables.is_new(spark, own_tables.open_snapshot(path))
        assert own_tables.known_version(path) == 1
        assert (newest_version(path), own_tables.known_version(path)) == (2, 1)
        append_many(spark, path, 1, 2)
        assert own_tables.known_version(path) == 3
        spark.sql(f"delete from delta.`{path}`")
        with tables_kept_open():
            assert own_tables.known_version(path) == 3, "a block of the same command"
        assert own_tables.known_version(path) == 3
    # Another command begins with what is there.
    assert own_tables.known_version(path) == 4


def test_local_times_stay_local_where_spark_commits(spark: SparkSession, tmp_path: Path) -> None:
    path = Location(str(tmp_path / "state"))
    local = spark.sql("select timestamp_ntz'2026-01-01 00:00' as window_start, 1L as n")
    properties = {"delta.enableDeletionVectors": "true"}
    own_tables.create(spark, path, local.schema, properties)
    assert plain_table.find_plain(path) is None
    own_tables.append(local, own_tables.open_snapshot(path), "window_start", 9)
    assert delta.read(spark, path).dtypes == [("window_start", "timestamp_ntz"), ("n", "bigint")]
    assert numbers_in(own_tables.read(spark, path)) == [1]


@pytest.mark.parametrize("is_plain", [True, False])
def test_rows_follow_the_version_that_was_read(
    spark: SparkSession, tmp_path: Path, *, is_plain: bool
) -> None:
    """A writer whose JVM has died may commit once more, though it has lost the lock."""
    path = Location(str(tmp_path / "output"))
    append_few(spark, path, 0, 1)
    if not is_plain:
        delta.set_property(spark, path, "delta.enableDeletionVectors", "true")
    read = own_tables.open_snapshot(path)
    append_few(spark, path, 1, 2)
    clauses = Clauses(("key",), None)
    changed = rows_of(spark, 2).withColumn("__op", F.lit("U"))
    writes: list[Callable[[], object]] = [
        lambda: own_tables.append(rows_of(spark, 2), read, "window_start", 9),
        lambda: own_tables.append_many(rows_of(spark, 2), read),
        lambda: merge_rows(changed, read, clauses, Merged(updated=1)),
    ]
    for write in writes:
        with pytest.raises(Busy, match="another writer committed first"):
            write()
    # Whoever looks at the table meanwhile changes nothing for the one who has read it before.
    assert own_tables.open_snapshot(path).version == read.version + 1
    with pytest.raises(Busy, match="another writer committed first"):
        writes[0]()
    assert numbers_in(own_tables.read(spark, path)) == [1, 2]
    own_tables.append(rows_of(spark, 3), own_tables.open_snapshot(path), "window_start", 9)
    own_tables.append_many(rows_of(spark, 4), own_tables.open_snapshot(path))
    merge_rows(changed, own_tables.open_snapshot(path), clauses, Merged(updated=1))
    assert numbers_in(own_tables.read(spark, path)) == [1, 2, 3, 4]


@pytest.mark.slow
def test_a_merge_that_changes_other_rows_is_reported(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Location(str(tmp_path / "output"))
    append_few(spark, path, 0, 1)
    clauses = Clauses(("key",), None)
    changed = rows_of(spark, 1, 2).withColumn("__op", F.lit("U"))
    monkeypatch.setattr(merges, "_REWRITTEN_HERE_BYTES", 0)
    with pytest.raises(TidemarkError, match="to update 2 rows.* it updated 1"):
        merge_rows(changed, own_tables.open_snapshot(path), clauses, Merged(updated=2))
    with pytest.raises(TidemarkError, match="delete 2 .* deleted 1"):
        merges.delete_rows(rows_of(spark, 1).select("key"), path, "t.key = s.key", 2)


def test_a_batch_that_is_committed_while_its_files_are_written_is_stored_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Location(str(tmp_path / "state"))
    append_few(spark, path, 0, 1)
    write_files = staged_files.write_files

    def write_late(rows: DataFrame, table: Location) -> list[Path]:
        append_few(spark, path, 1, 2)
        return write_files(rows, table)

    monkeypatch.setattr(staged_files, "write_files", write_late)
    append_many(spark, path, 1, 2)
    assert numbers_in(own_tables.read(spark, path)) == [1, 2]
