"""A table on S3 that is opened from a copy of its log is the one that is there. No Spark."""

import os
from collections.abc import Iterator

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.faulty_proxy import FaultyProxy
from windowing.errors import Busy
from windowing.location import Location
from windowing.storage import compaction, control, log_copies
from windowing.storage.files import locate_commit, read_commit_text
from windowing.storage.kept_open import (
    find_noted_version,
    has_commit,
    lake_seen,
    logs_copied,
    newest_version,
    note_tables,
    tables_kept_open,
)
from windowing.storage.log_copies import LogCopies, select_segment
from windowing.storage.plain_table import find_plain, list_files
from windowing.storage.s3_settings import read_s3_settings
from windowing.storage.store import shared_store_of, store_of

SCHEMA = pa.schema([("run", pa.int64()), ("counts", pa.map_(pa.string(), pa.int64()))])
CHECKPOINT = f"{3:020}.checkpoint.parquet"


def name_commits(*numbers: int) -> list[str]:
    return [f"{number:020}.json" for number in numbers]


@pytest.mark.parametrize(
    ("names", "until", "version", "used"),
    [
        ([], None, -1, []),
        (name_commits(0, 1, 2), None, 2, name_commits(0, 1, 2)),
        (name_commits(0, 1, 2), 1, 1, name_commits(0, 1)),
        ([*name_commits(2, 3, 4), CHECKPOINT], None, 4, [CHECKPOINT, *name_commits(4)]),
        ([*name_commits(0, 1, 2, 3, 4), CHECKPOINT], 2, 2, name_commits(0, 1, 2)),
        ([CHECKPOINT], None, 3, [CHECKPOINT]),
        ([*name_commits(0), "_last_checkpoint", "made up.json"], None, 0, name_commits(0)),
    ],
)
def test_a_version_is_made_of_the_last_checkpoint_and_what_follows(
    names: list[str], until: int | None, version: int, used: list[str]
) -> None:
    found = select_segment(names, until)
    assert found is not None
    assert (found.version, [*found.names]) == (version, used)


@pytest.mark.parametrize(
    ("names", "until"),
    [
        (name_commits(1, 2), None),
        (name_commits(0, 2), None),
        (name_commits(0, 1), 2),
        ([*name_commits(2, 4), CHECKPOINT], 2),
        ([*name_commits(0), f"{0:020}.checkpoint.0000000001.0000000002.parquet"], None),
        ([*name_commits(0), f"{0:020}.checkpoint.80a083e8-7026.json"], None),
    ],
)
def test_what_a_listing_does_not_show_whole_is_not_copied(
    names: list[str], until: int | None
) -> None:
    assert select_segment(names, until) is None


@pytest.fixture
def table(s3_home: Location, s3_proxy: FaultyProxy) -> Iterator[Location]:
    """A table of three rows, each in a commit of its own; its log is copied once."""
    path = s3_home / "shop" / "a table"
    control.create_table(path, SCHEMA)
    for number in range(3):
        append(path, number)
    with logs_copied():
        yield path


def append(path: Location, number: int) -> None:
    """As a program of others does."""
    options = read_s3_settings(os.environ).for_rust()
    rows = pa.table({"run": [number], "counts": [[("a", number)]]}, schema=SCHEMA)
    write_deltalake(path.text, rows, mode="append", storage_options=options)


def list_runs(path: Location) -> list[int]:
    return sorted(row["run"] for row in control.read_rows(path))


def count(proxy: FaultyProxy, path: Location) -> dict[str, int]:
    """What it asks of the store to read a table."""
    proxy.plan()
    control.read_rows(path)
    return dict(proxy.counts)


def test_each_file_is_read_once(table: Location, s3_proxy: FaultyProxy) -> None:
    assert count(s3_proxy, table) == {"LIST": 1, "GET": 4 + 3}
    assert count(s3_proxy, table) == {"LIST": 1}
    append(table, 3)
    assert count(s3_proxy, table) == {"LIST": 1, "GET": 1 + 1}
    assert list_runs(table) == [0, 1, 2, 3]


def test_rows_of_copies_are_those_of_the_table(table: Location) -> None:
    assert control.read_rows(table) == [
        {"run": number, "counts": {"a": number}} for number in (2, 1, 0)
    ]
    plain = find_plain(table)
    assert plain is not None
    names = {file.name for file in list_files(plain, {}) or ()}
    assert names == {uri.rpartition("/")[2] for uri in control.open_delta(table).file_uris()}


def delete_commit(path: Location, version: int) -> None:
    """As the cleaning of a log does."""
    store = shared_store_of(path)
    assert store is not None
    store.delete_file(path / "_delta_log" / f"{version:020}.json")


def test_a_log_checkpoint_replaces_the_commits_before(
    table: Location, s3_proxy: FaultyProxy
) -> None:
    control.open_delta(table).create_checkpoint()
    for version in range(3):
        delete_commit(table, version)
    append(table, 3)
    assert count(s3_proxy, table) == {"LIST": 1, "GET": 2 + 4}
    assert list_runs(table) == [0, 1, 2, 3]


def test_a_long_log_is_listed_from_its_last_checkpoint(
    table: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    control.open_delta(table).create_checkpoint()
    append(table, 3)
    monkeypatch.setattr(log_copies, "_PAGE", 2)
    assert list_runs(table) == [0, 1, 2, 3]
    assert newest_version(table) == 4


def test_a_table_that_was_made_anew_is_another_one(table: Location) -> None:
    assert list_runs(table) == [0, 1, 2]
    before = control.open_to_read(table)
    store_of(table).delete(table)
    assert (control.read_rows(table), has_commit(table)) == ([], False)
    control.create_table(table, SCHEMA)
    for number in (7, 8, 9):
        append(table, number)
    assert list_runs(table) == [7, 8, 9]
    after = control.open_to_read(table)
    assert before is not None and after is not None
    assert before.metadata().id != after.metadata().id


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_what_others_put_in_its_place_is_another_table(
    table: Location,
    has_checkpoint: bool,  # noqa: FBT001
) -> None:
    if has_checkpoint:
        control.open_delta(table).create_checkpoint()
    assert list_runs(table) == [0, 1, 2]
    store_of(table).delete(table)
    for number in (7, 8):
        append(table, number)
    assert (newest_version(table), list_runs(table)) == (1, [7, 8])


def test_a_file_that_became_another_one_since_it_was_listed_is_not_copied(table: Location) -> None:
    copies, asked = LogCopies(), []
    assert copies.find_version(table) == 3
    commit = locate_commit(table, 2)
    store_of(table).write(commit, (store_of(table).read(commit) or b"") + b"\n")
    assert copies.open(table, 3, asked.append) is None
    assert asked == [table], "delta-rs has to open it"
    assert copies.read_commit(table, 2) is None
    assert copies.read_commit(table, 1) == store_of(table).read(locate_commit(table, 1))
    copies.close()


def test_a_command_works_on_what_it_began_with(table: Location, s3_proxy: FaultyProxy) -> None:
    with tables_kept_open():
        note_tables(table.parent)
        append(table, 3)
        s3_proxy.plan()
        assert newest_version(table) == 3
        assert not has_commit(table.parent / "other")
        assert not has_commit(table.parent / "published" / "hourly"), "no directory of it had one"
        assert not s3_proxy.counts, "what it knows it does not ask for"
        assert not has_commit(table.parent / "_hidden" / "hourly")
        assert s3_proxy.counts.total() == 1, "tables in a hidden directory are none of those noted"
        assert list_runs(table) == [0, 1, 2]
        with pytest.raises(Busy, match="another writer committed first"):
            control.append_rows(table, SCHEMA, [{"run": 4, "counts": {}}], 3)
    assert list_runs(table) == [0, 1, 2, 3]


def test_an_append_is_two_requests(table: Location, s3_proxy: FaultyProxy) -> None:
    with tables_kept_open():
        note_tables(table.parent)
        control.read_rows(table)
        s3_proxy.plan()
        made = control.append_rows(table, SCHEMA, [{"run": 3, "counts": {"b": 1}}], 3)
        assert control.append_rows(table, SCHEMA, [{"run": 4, "counts": {}}], made) == 5
        assert list_runs(table) == [0, 1, 2, 3, 4]
        assert dict(s3_proxy.counts) == {"PUT": 4}
    assert control.open_delta(table).to_pyarrow_table(columns=["run"]).num_rows == 5


def test_compaction_leaves_one_file_and_a_log_checkpoint(
    table: Location, s3_proxy: FaultyProxy
) -> None:
    rows = control.read_rows(table)
    with tables_kept_open():
        note_tables(table.parent)
        assert compaction.compact_files(table, most=1)
        assert not compaction.compact_files(table, most=1)
    with logs_copied():
        assert sorted(control.read_rows(table), key=str) == sorted(rows, key=str)
    opened = control.open_delta(table)
    assert (opened.version(), len(opened.file_uris())) == (4, 1)
    # delta-rs does not let the proxy's thread of this process run while it reads a history.
    assert '"operation":"OPTIMIZE"' in (read_commit_text(table, 4) or "")
    names = {*store_of(table).list_names(table / "_delta_log")}
    assert {f"{4:020}.checkpoint.parquet", "_last_checkpoint"} <= names


def test_a_command_writes_several_log_checkpoints(table: Location) -> None:
    with tables_kept_open():
        note_tables(table.parent)
        for version in (3, 5):
            control.append_rows(table, SCHEMA, [{"run": version, "counts": {}}], version)
            assert compaction.compact_files(table, most=1)
    names = {*store_of(table).list_names(table / "_delta_log")}
    assert {f"{version:020}.checkpoint.parquet" for version in (5, 7)} <= names
    assert list_runs(table) == [0, 1, 2, 3, 5]


@pytest.mark.parametrize("page", [1_000, 3])
def test_one_look_shows_the_tables_of_a_lake(
    table: Location, s3_proxy: FaultyProxy, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = table.parent / "other"
    control.create_table(other, SCHEMA)
    store_of(table).write(table.parent / "_docs" / "page.html", b"made up")
    store_of(table).write(table.parent / "_docs" / "_delta_log" / "made up", b"made up")
    nested, hidden = (table.parent / home / "t" for home in ("published", "_check"))
    for each in (nested, hidden):
        control.create_table(each, SCHEMA)
    monkeypatch.setattr(log_copies, "_PAGE", page)
    s3_proxy.plan()
    with lake_seen(table.parent):
        if page == 1_000:
            assert dict(s3_proxy.counts) == {"LIST": 1}
        assert (newest_version(table), newest_version(other)) == (3, 0)
        assert not has_commit(table.parent / "_docs")
        assert find_noted_version(nested) == newest_version(nested) == 0
        assert find_noted_version(hidden) is None, "no command commits to it"
        asked = dict(s3_proxy.counts)
        assert not has_commit(nested.parent / "other")
        assert dict(s3_proxy.counts) == asked, "all that lie there are known"
        assert list_runs(table) == [0, 1, 2]
