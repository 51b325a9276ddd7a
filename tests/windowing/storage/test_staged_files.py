"""Files that Spark writes for a plain table, and that this process commits.

Delta's own commit of the same rows is what they are compared with.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from windowing.errors import Busy
from windowing.location import Location
from windowing.storage import delta, file_statistics, own_tables, plain_table, staged_files
from windowing.storage.footers import read_footer
from windowing.storage.kept_open import newest_version
from windowing.storage.own_tables import Once
from windowing.storage.store import store_of

ROWS = "select 'k' || id as key, {time} as event_time, {run} as run from range({count})"
SOME = {"time": "timestamp_micros(1700000000123456L + id)", "run": "id", "count": "7"}
CASES: Mapping[str, Mapping[str, str]] = {
    "some rows": SOME,
    "no time": {**SOME, "time": "cast(null as timestamp)"},
    "a few without time": {**SOME, "time": "if(id = 3, null, timestamp_micros(id))"},
    "before 1970": {**SOME, "time": "timestamp_micros(-1700000000123456L + id)"},
    "the first year": {**SOME, "time": "timestamp'0001-01-01 00:00:00'"},
    "no row": {**SOME, "count": "0"},
}


def make_rows(spark: SparkSession, case: Mapping[str, str]) -> DataFrame:
    """Rows of state."""
    return spark.sql(ROWS.format(**case)).coalesce(1)


def make_table(spark: SparkSession, path: Path, rows: DataFrame) -> Location:
    """An empty plain table for these rows."""
    columns = T.StructType([T.StructField(f.name, f.dataType) for f in rows.schema.fields])
    table = Location(str(path))
    own_tables.create(spark, table, columns, delta.properties(columns))
    assert plain_table.find_plain(table) is not None
    return table


def list_rows(spark: SparkSession, path: Location) -> list[str]:
    """All rows in order. Python would read the first instant of year 1 as one of year 0."""
    rows = delta.read(spark, path).selectExpr("key", "unix_micros(event_time)", "run")
    return sorted(map(str, rows.collect()))


def read_added(path: Location) -> list[dict[str, Any]]:
    """What the log says of each file of the table: its statistics, and whether it is data."""
    found = []
    for commit in sorted((path.local / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            added = json.loads(line).get("add")
            if added:
                size = (path.local / added["path"]).stat().st_size
                assert (added["size"], added["dataChange"], added["partitionValues"]) == (
                    size,
                    True,
                    {},
                )
                found.append(json.loads(added["stats"]))
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_log_says_what_delta_would_say(spark: SparkSession, tmp_path: Path, case: str) -> None:
    rows = make_rows(spark, CASES[case])
    ours, theirs = (make_table(spark, tmp_path / name, rows) for name in ("ours", "theirs"))
    own_tables.append_many(rows, own_tables.open_snapshot(ours))
    delta.append(rows, theirs)
    written = [added for added in read_added(theirs) if added["numRecords"]]
    assert read_added(ours) == written
    found, expected = (list_rows(spark, path) for path in (ours, theirs))
    assert found == expected
    assert len(found) == int(CASES[case]["count"])


def test_times_that_text_cannot_express_have_no_statistics(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = make_rows(spark, {**SOME, "time": "timestamp_micros(253402300800000000L + id)"})
    path = make_table(spark, tmp_path / "state", rows)
    own_tables.append_many(rows, own_tables.open_snapshot(path))
    (added,) = read_added(path)
    assert added == {"numRecords": 7}
    # Otherwise the last time in the log would be one that no filter of such readers reaches.
    whole = DeltaTable(path.text).to_pyarrow_dataset()
    assert whole.to_table(filter=ds.field("run") == 6).num_rows == 1
    later = delta.read(spark, path).where("event_time > timestamp'9999-12-31 23:59:59'")
    assert later.count() == 7


def test_several_files_are_one_commit(spark: SparkSession, tmp_path: Path) -> None:
    path = Location(str(tmp_path / "state"))
    rows = spark.sql(ROWS.format(**{**SOME, "count": "90"})).repartition(3)
    own_tables.append_many(rows, Once(path, "app", 4))
    own_tables.append_many(rows, Once(path, "app", 4))
    # In this order, because a look at the table makes its version known.
    assert own_tables.known_version(path) == newest_version(path) == 1
    assert sorted(added["numRecords"] for added in read_added(path)) == [30, 30, 30]
    assert delta.read(spark, path).count() == 90
    found = plain_table.find_plain(path)
    assert found is not None
    assert found.table.transaction_version("app") == 4
    assert {file.name for file in path.local.iterdir() if file.is_dir()} == {"_delta_log"}


def test_all_row_groups_of_a_file_count(tmp_path: Path) -> None:
    file = tmp_path / "part-0.parquet"
    whole_numbers = pa.table({"run": [3, 4, None, None, 1, 9, 5, None]})
    pq.write_table(whole_numbers, file, row_group_size=2)
    found = file_statistics.read_statistics(read_footer(Location(str(file))), ["run"])
    assert found == {
        "numRecords": 8,
        "minValues": {"run": 1},
        "maxValues": {"run": 9},
        "nullCount": {"run": 3},
    }


def test_a_field_of_a_struct_is_not_taken_for_a_column_of_its_path(tmp_path: Path) -> None:
    file = tmp_path / "part-0.parquet"
    pq.write_table(pa.table({"a.n": [3, None], "a": [{"n": 1}, {"n": 9}]}), file)
    found = file_statistics.read_statistics(read_footer(Location(str(file))), ["a.n"])
    assert (found["minValues"], found["maxValues"]) == ({"a.n": 3}, {"a.n": 3})
    assert found["nullCount"] == {"a.n": 1}


def test_a_write_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = Location(str(tmp_path / "state"))
    own_tables.append_many(make_rows(spark, SOME), Once(path, "app", 0))
    before = sorted(path.local.rglob("*"))
    failing = make_rows(spark, {**SOME, "run": "if(id = 6, raise_error('no'), id)"})
    failing = failing.selectExpr("key", "event_time", "cast(run as bigint) as run")
    with pytest.raises(PySparkException):
        own_tables.append_many(failing, Once(path, "app", 1))
    assert sorted(path.local.rglob("*")) == before


def after_writing(monkeypatch: pytest.MonkeyPatch, act: Callable[[DataFrame], None]) -> None:
    """Another program acts when the files are written, and before they are committed."""
    write_files = staged_files.write_files

    def write_and_act(rows: DataFrame, path: Location) -> list[Path]:
        files = write_files(rows, path)
        act(rows)
        return files

    monkeypatch.setattr(staged_files, "write_files", write_and_act)


def test_a_table_that_changes_meanwhile_is_not_written_to(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Location(str(tmp_path / "state"))
    own_tables.append_many(make_rows(spark, SOME), Once(path, "app", 0))
    after_writing(
        monkeypatch,
        lambda _: delta.set_property(spark, path, "delta.enableDeletionVectors", "true"),
    )
    with pytest.raises(Busy, match="another writer committed first"):
        own_tables.append_many(make_rows(spark, SOME), Once(path, "app", 1))
    assert delta.read(spark, path).count() == 7


def test_another_commit_may_come_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Location(str(tmp_path / "state"))
    own_tables.append_many(make_rows(spark, SOME), Once(path, "app", 0))
    after_writing(monkeypatch, lambda rows: delta.append(rows, path))
    own_tables.append_many(make_rows(spark, SOME), Once(path, "app", 1))
    assert delta.read(spark, path).count() == 21


def test_what_a_killed_process_wrote_is_dropped(tmp_path: Path) -> None:
    left = tmp_path / "state" / "staged-1" / "_temporary" / "0" / "part-0.parquet"
    left.parent.mkdir(parents=True)
    left.touch()
    kept = tmp_path / "state" / "part-1.parquet"
    kept.touch()
    staged_files.drop_staged(Location(f"{tmp_path}/state"))
    staged_files.drop_staged(Location(str(tmp_path / "nowhere")))
    assert [*(tmp_path / "state").iterdir()] == [kept]


def test_drafts_of_a_killed_process_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Location(str(tmp_path / "state"))
    kept = {"part-1.parquet", "_change_data/cdc-1.parquet", "_delta_log/0.json", ".notes"}
    for name in kept:
        store_of(table).create(table / name, b"row")
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    for name in ("part-2.parquet", "_change_data/cdc-2.parquet", "_delta_log/1.json"):
        store_of(table).create(table / name, b"row")
        (table / name).local.rename(table.local.with_name("named"))
    monkeypatch.undo()
    assert len(store_of(table).list_files(table)) == 7
    staged_files.drop_staged(table)
    assert {*store_of(table).list_files(table)} == kept
