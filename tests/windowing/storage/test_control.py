"""Control tables: what is read, committed and refused."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from windowing.errors import Busy
from windowing.grid.zone import FIRST_US, LAST_US
from windowing.location import Location
from windowing.storage import compaction, control, next_commit
from windowing.storage.files import locate_commit

SCHEMA = pa.schema(
    [
        ("run", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("note", pa.string()),
    ]
)


def row(run: int, at_us: int | None = 0, **counts: int) -> dict[str, Any]:
    """One row of SCHEMA."""
    return {"run": run, "at": at_us, "counts": counts, "note": f"run {run}"}


@pytest.mark.parametrize("kind", [DeltaError, CommitFailedError, OSError])
def test_an_error_of_the_system_keeps_its_number(kind: type[Exception]) -> None:
    """delta-rs has it in the text alone, whatever the class of its error."""
    full = pytest.raises(OSError, match="No space left on device")
    with full as found, control.errors_explained(Location("/lake/p/_seen")):
        raise kind("Generic LocalFileSystem error: write failed (os error 28)")
    assert (found.value.errno, found.value.filename) == (28, "/lake/p/_seen")


def test_a_lost_file_and_a_panic_are_errors_of_the_table() -> None:
    class PanicException(BaseException):
        """As delta-rs raises it where an assertion of its own fails."""

    for error in (DeltaError("part-0 (os error 2)"), PanicException("index out of bounds")):
        with (
            pytest.raises(control.TableError) as found,
            control.errors_explained(Location("/lake/p")),
        ):
            raise error
        assert found.value.reason == str(error)


def test_a_place_that_is_no_url_is_not_a_table_that_is_not_there() -> None:
    with pytest.raises(control.TableError, match="invalid port number"):
        control.open_table(Location("hdfs://node:65536/lake/trips/_ledger"))


def test_a_table_that_is_not_there_has_no_rows_and_no_version(tmp_path: Path) -> None:
    assert control.read_rows(Location(str(tmp_path / "none"))) == []
    assert control.read_version(Location(str(tmp_path / "none"))) == -1


@pytest.mark.parametrize("name", ["my lake", "100%", "lac d'été", "a#b?c"])
def test_a_directory_may_have_any_name(tmp_path: Path, name: str) -> None:
    path = Location(str(tmp_path / name / "table"))
    control.append_rows(path, SCHEMA, [row(1)], after=-1)
    assert [found["run"] for found in control.read_rows(path)] == [1]


def test_rows_are_read_as_they_were_appended(tmp_path: Path) -> None:
    path = Location(str(tmp_path / "table"))
    version = control.append_rows(path, SCHEMA, [row(1, FIRST_US, read=3)], after=-1)
    version = control.append_rows(path, SCHEMA, [row(2, LAST_US), row(3, None)], after=version)
    assert control.read_version(path) == version
    in_order = sorted(control.read_rows(path), key=lambda each: each["run"])
    assert in_order == [row(1, FIRST_US, read=3), row(2, LAST_US), row(3, None)]


def test_a_table_written_anew_with_other_types_is_not_appended_to(tmp_path: Path) -> None:
    path = Location(str(tmp_path / "table"))
    rows = pa.table({"run": pa.array([1], pa.int64()), "note": pa.array([7], pa.int64())})
    write_deltalake(path.text, rows)
    schema = pa.schema([("run", pa.int64()), ("note", pa.string())])
    with pytest.raises(Exception, match="Cast error: Cannot cast"):
        control.append_rows(path, schema, [{"run": 2, "note": "a"}], after=0)
    assert control.read_version(path) == 0
    assert DeltaTable(path.text).to_pyarrow_table().to_pylist() == [{"run": 1, "note": 7}]


def test_an_append_after_an_older_version_is_refused(tmp_path: Path) -> None:
    path = Location(str(tmp_path / "table"))
    first = control.append_rows(path, SCHEMA, [row(1)], after=-1)
    control.append_rows(path, SCHEMA, [row(2)], after=first)
    with pytest.raises(Busy, match="another writer committed first"):
        control.append_rows(path, SCHEMA, [row(3)], after=first)
    assert [each["run"] for each in control.read_rows(path)] == [2, 1]


def test_an_append_to_a_table_that_was_deleted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Busy, match="another writer committed first"):
        control.append_rows(Location(str(tmp_path / "table")), SCHEMA, [row(1)], after=3)
    assert not (tmp_path / "table").exists()


def test_of_two_commits_at_the_same_version_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other writer commits between the look at the version and the commit."""
    path = Location(str(tmp_path / "table"))
    first = control.append_rows(path, SCHEMA, [row(1)], after=-1)
    to_arrow = control._to_arrow

    def overtaken(rows: Any, schema: pa.Schema) -> pa.Table:
        monkeypatch.undo()
        control.append_rows(path, SCHEMA, [row(2)], after=first)
        return to_arrow(rows, schema)

    monkeypatch.setattr(control, "_to_arrow", overtaken)
    with pytest.raises(Busy, match="another writer committed first"):
        control.append_rows(path, SCHEMA, [row(3)], after=first)
    assert sorted(each["run"] for each in control.read_rows(path)) == [1, 2]


def test_rows_are_replaced_in_one_commit(tmp_path: Path) -> None:
    path = Location(str(tmp_path / "table"))
    control.append_rows(path, SCHEMA, [row(1, read=1), row(2, read=1)], after=-1)
    before = control.read_version(path)
    control.replace_rows(path, SCHEMA, [row(2, read=5)], "run = 2")
    assert control.read_version(path) == before + 1
    found = sorted(control.read_rows(path), key=lambda each: each["run"])
    assert found == [row(1, read=1), row(2, read=5)]


@pytest.mark.parametrize("before", [(), (1,)], ids=["without a table", "with one"])
def test_rows_are_added_where_there_is_none_to_replace(
    tmp_path: Path, before: tuple[int, ...]
) -> None:
    path = Location(str(tmp_path / "table"))
    for run in before:
        control.append_rows(path, SCHEMA, [row(run)], after=-1)
    control.replace_rows(path, SCHEMA, [row(2)], "run = 2")
    assert sorted(each["run"] for each in control.read_rows(path)) == [*before, 2]


def test_times_that_spark_wrote_as_int96_keep_their_century(tmp_path: Path) -> None:
    """INT96 has nanoseconds, and as 64 bits these would wrap around in the years 1677 and 2262."""
    path = tmp_path / "table"
    control.create_table(Location(str(path)), SCHEMA)
    rows = [row(1, FIRST_US), row(2, LAST_US)]
    pq.write_table(
        pa.Table.from_pylist(rows, schema=SCHEMA),
        path / "spark.parquet",
        use_deprecated_int96_timestamps=True,
    )
    size = (path / "spark.parquet").stat().st_size
    stats = json.dumps({"numRecords": 2})
    added = AddAction("spark.parquet", size, {}, 0, True, stats)
    table = DeltaTable(path)
    table.create_write_transaction([added], "append", table.schema(), [])
    assert list(control.read_rows(Location(str(path)))) == rows
    control.append_rows(Location(str(path)), SCHEMA, [row(3)], after=1)
    assert compaction.compact_files(Location(str(path)), most=1)
    assert in_order(Location(str(path))) == [*rows, row(3)]


def write_rows(path: Location, many: int) -> int:
    """As many files as rows; returns the newest version."""
    version = -1
    for run in range(many):
        version = control.append_rows(path, SCHEMA, [row(run, FIRST_US + run, read=run)], version)
    return version


def in_order(path: Location) -> list[dict[str, Any]]:
    """The rows of the newest version."""
    return sorted(map(dict, control.read_rows(path)), key=lambda each: each["run"])


def test_compaction_makes_few_files_of_many_and_changes_no_row(tmp_path: Path) -> None:
    path = Location(str(tmp_path / "table"))
    version = write_rows(path, 5)
    before = in_order(path)
    assert not compaction.compact_files(path, most=5)
    assert control.read_version(path) == version
    assert compaction.compact_files(path, most=4)
    found = control.read_contents(path)
    assert (found.version, len(found.files)) == (version + 1, 1)
    assert in_order(path) == before
    control.append_rows(path, SCHEMA, [row(9)], after=version + 1)
    assert len(in_order(path)) == 6


def test_older_versions_can_be_read_after_a_compaction(tmp_path: Path) -> None:
    """Their readers have opened them before, or travel in time."""
    path = Location(str(tmp_path / "table"))
    version = write_rows(path, 4)
    opened_before = DeltaTable(path.local)
    compaction.compact_files(path, most=1)
    for table in (opened_before, DeltaTable(path.local, version=version)):
        assert table.to_pyarrow_table().num_rows == 4


def test_a_table_opens_from_its_log_checkpoint_after_a_compaction(tmp_path: Path) -> None:
    """Its rows are not in older commits alone."""
    path = Location(str(tmp_path / "table"))
    write_rows(path, 3)
    compaction.compact_files(path, most=1)
    newest = control.read_version(path)
    for version in range(newest):
        (tmp_path / "table" / "_delta_log" / f"{version:020}.json").unlink()
    assert control.append_rows(path, SCHEMA, [row(4)], newest) == newest + 1
    assert len(in_order(path)) == 4


def test_a_compaction_deletes_commits_that_are_older_than_the_table_keeps(tmp_path: Path) -> None:
    path = Location(str(tmp_path / "table"))
    write_rows(path, 3)
    compaction.compact_files(path, most=1)
    log = tmp_path / "table" / "_delta_log"
    days_40 = time.time() - 40 * 86_400
    for file in log.iterdir():
        os.utime(file, (days_40, days_40))
    newest = control.read_version(path)
    control.append_rows(path, SCHEMA, [row(3)], after=newest)
    assert (log / f"{0:020}.json").exists()
    compaction.compact_files(path, most=1)
    assert not (log / f"{0:020}.json").exists()
    assert [each["run"] for each in in_order(path)] == [0, 1, 2, 3]


def test_a_compaction_that_comes_second_leaves_the_files_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Location(str(tmp_path / "table"))
    version = write_rows(path, 3)
    commit = next_commit.commit_next

    def overtaken(*given: Any) -> None:
        monkeypatch.undo()
        control.replace_rows(path, SCHEMA, [row(2, read=7)], "run = 2")
        commit(*given)

    monkeypatch.setattr(compaction, "commit_next", overtaken)
    assert not compaction.compact_files(path, most=1)
    assert control.read_version(path) == version + 1
    assert in_order(path)[2] == row(2, read=7)


def test_a_compaction_that_ends_before_its_log_checkpoint_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Location(str(tmp_path / "table"))
    write_rows(path, 3)
    before = in_order(path)

    def killed(_: DeltaTable) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(DeltaTable, "create_checkpoint", killed)
    with pytest.raises(KeyboardInterrupt):
        compaction.compact_files(path, most=1)
    assert in_order(path) == before
    assert not compaction.compact_files(path, most=1)


def test_a_log_contains_statistics_of_run_numbers_only(tmp_path: Path) -> None:
    path = tmp_path / "table"
    control.append_rows(Location(str(path)), SCHEMA, [row(1, 5)], after=-1)
    commit = (path / "_delta_log" / f"{1:020}.json").read_text()
    assert "run 1" not in commit
    actions = [json.loads(line) for line in commit.splitlines()]
    [stats] = [action["add"]["stats"] for action in actions if "add" in action]
    assert json.loads(stats)["minValues"] == {"run": 1}


@pytest.mark.parametrize("behind", [0, 1, 15])
def test_a_commit_without_bytes_is_damage_and_no_commit_of_nothing(
    tmp_path: Path, behind: int
) -> None:
    path = Location(str(tmp_path / "t"))
    newest = -1
    for run in range(17):
        newest = control.append_rows(path, SCHEMA, [row(run)], newest)
    lost = locate_commit(path, newest - behind).local
    content = lost.read_bytes()
    lost.write_bytes(b"")
    with pytest.raises(control.TableError, match="a commit is empty"):
        control.read_rows(path)
    lost.write_bytes(content)
    assert len(control.read_rows(path)) == 17
