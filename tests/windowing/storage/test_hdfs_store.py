"""The store on HDFS keeps the contract of all stores, also where it is lost for a while."""

import errno
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.support.faulty_store import Fault
from tests.support.hdfs_server import HdfsServer
from tests.support.shared_store_contract import SharedStoreContract, shared
from windowing.location import Location
from windowing.storage import control, log_copies
from windowing.storage.hdfs_client import HdfsClient
from windowing.storage.hdfs_tokens import Tokens
from windowing.storage.kept_open import lake_written, logs_copied, reuse_table
from windowing.storage.log_lines import LOG
from windowing.storage.store import SharedStore, Store, store_of
from windowing.storage.table_properties import CHECKPOINT_INTERVAL

SCHEMA = pa.schema([("run", pa.int64())])


@pytest.fixture
def home(hdfs_home: Location) -> Location:
    """A directory without files."""
    return hdfs_home


class TestHdfsStore(SharedStoreContract):
    """A name node and a data node."""

    CHANGES = 30
    """Each takes half a second, because the client waits so long for the data node."""

    @pytest.fixture
    def store(self, home: Location) -> Store:
        """A store."""
        return store_of(home)


def write(store: SharedStore, home: Location) -> None:
    store.write(home / "a", b"new")


def write_over_a_replaced_one(store: SharedStore, home: Location) -> None:
    store.write(home / "c", b"new")


def create(store: SharedStore, home: Location) -> None:
    store.create(home / "b", b"new")


def replace(store: SharedStore, home: Location) -> None:
    tagged = store.read_tagged(home / "a")
    assert tagged is not None
    assert store.replace(home / "a", b"new", tagged.tag)


def replace_again(store: SharedStore, home: Location) -> None:
    tagged = store.read_tagged(home / "c")
    assert tagged is not None
    assert store.replace(home / "c", b"new", tagged.tag)


def delete(store: SharedStore, home: Location) -> None:
    store.delete(home / "from")


def delete_replaced(store: SharedStore, home: Location) -> None:
    store.delete_file(home / "c")


Change = Callable[[SharedStore, Location], None]
Files = dict[str, bytes]
CASES: dict[Change, tuple[Files, Files]] = {
    write: ({"a": b"old"}, {"a": b"new"}),
    write_over_a_replaced_one: ({"c": b"old"}, {"c": b"new"}),
    create: ({"a": b"old"}, {"a": b"old", "b": b"new"}),
    replace: ({"a": b"old"}, {"a": b"new"}),
    replace_again: ({"c": b"old"}, {"c": b"new"}),
    delete: ({"from/1": b"1"}, {}),
    delete_replaced: ({"c": b"old"}, {}),
}
"""The files before each change, and after it. What is called `c` was replaced by its tag."""
FAULTS = [
    pytest.param(change, fault, marks=() if change in (create, replace_again) else pytest.mark.deep)
    for change in CASES
    for fault in Fault
]


def lay(store: SharedStore, home: Location, change: Change) -> None:
    """The files before a change."""
    store.delete(home)
    for name, content in CASES[change][0].items():
        if name == "c":
            assert store.replace(home / name, content, None)
        else:
            store.write(home / name, content)


def found(home: Location) -> dict[str, bytes | None]:
    """All files, where no draft may be left."""
    store = store_of(home)
    return {name: store.read(home / name) for name in store.list_files(home)}


@dataclass
class Faulty:
    """The calls to HDFS, of which the one at place `at`, counted from 0, meets `fault`."""

    asks: Callable[..., Any]
    fault: Fault
    at: int
    calls: int = 0

    def __call__(self, client: HdfsClient, place: Location, call: Callable[..., Any]) -> Any:
        """A call."""
        here, self.calls = self.calls, self.calls + 1
        if here != self.at:
            return self.asks(client, place, call)
        if self.fault is Fault.UNANSWERED:
            self.asks(client, place, call)
        raise OSError(errno.EIO, self.fault.value, place.text)


@pytest.mark.parametrize(("change", "fault"), FAULTS)
def test_a_change_is_done_although_a_call_fails(
    change: Change, fault: Fault, home: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, at, was_reached = shared(home), 0, True
    while was_reached:
        lay(store, home, change)
        with monkeypatch.context() as patched:
            faulty = Faulty(HdfsClient._ask, fault, at)
            patched.setattr(
                HdfsClient, "_ask", lambda self, place, call, f=faulty: f(self, place, call)
            )
            try:
                change(store, home)
            except OSError:
                # What it is unknown of whether it was done is done once more.
                change(store, home)
        was_reached = faulty.calls > at
        assert found(home) == CASES[change][1], (at, fault)
        at += 1
    assert at > 1


def test_a_replacement_counts_before_it_is_moved(
    home: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer is killed; the next one moves it, and the first, if it only slept, finds none."""
    store = shared(home)
    first = store.replace(home / "a", b"1", None)
    with monkeypatch.context() as patched:
        patched.setattr(Tokens, "_move_content", lambda *_: None)
        second = store.replace(home / "a", b"2", first)
    tagged = store.read_tagged(home / "a")
    assert tagged is not None
    assert (tagged.content, tagged.tag) == (b"2", second)
    assert store.replace(home / "a", b"x", first) is None
    state = Tokens(HdfsClient(30.0))._look(home / "a")
    third = store.replace(home / "a", b"3", second)
    assert third is not None
    Tokens(HdfsClient(30.0))._move_content(home / "a", state)
    assert store.read(home / "a") == b"3"


def test_a_writer_that_wakes_up_behind_a_deletion_writes_nothing(home: Location) -> None:
    store = shared(home)
    tag = store.replace(home / "a", b"1", None)
    tokens = Tokens(HdfsClient(30.0))
    asleep = tokens._look(home / "a")
    assert asleep.write is not None
    store.delete_file(home / "a")
    store.replace(home / "a", b"2", None)
    assert not tokens._rename_token(home / "a", asleep.write, "late")
    assert store.replace(home / "a", b"3", tag) is None
    assert found(home) == {"a": b"2"}


def test_a_writer_that_wakes_up_before_its_draft_leaves_no_directory(
    home: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = shared(home)
    tag = store.replace(home / "a", b"1", None)
    write_new = HdfsClient.write_new

    def wake_up(client: HdfsClient, file: Location, content: bytes, **options: bool) -> None:
        store.delete_file(home / "a")
        write_new(client, file, content, **options)

    with monkeypatch.context() as patched:
        patched.setattr(HdfsClient, "write_new", wake_up)
        assert store.replace(home / "a", b"2", tag) is None
    assert store.read_tagged(home / "a") is None
    assert store.replace(home / "a", b"3", None) is not None
    assert found(home) == {"a": b"3"}


def test_a_draft_that_others_have_deleted_is_no_file(
    home: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = shared(home)
    rename = HdfsClient.rename

    def drop_first(client: HdfsClient, source: Location, target: Location) -> None:
        store.drop_drafts(source.parent)
        rename(client, source, target)

    monkeypatch.setattr(HdfsClient, "rename", drop_first)
    with pytest.raises(FileNotFoundError):
        store.create(home / "a", b"1")
    assert found(home) == {}


@pytest.mark.parametrize(
    "change",
    [replace, *(pytest.param(each, marks=pytest.mark.deep) for each in (write, create))],
)
def test_a_name_node_that_is_killed_is_an_error_until_it_is_back(
    change: Change, home: Location, hdfs_server: HdfsServer
) -> None:
    store = shared(home)
    lay(store, home, change)
    hdfs_server.kill()
    try:
        began = time.monotonic()
        with pytest.raises(OSError) as refused:
            change(store, home)
        assert time.monotonic() - began < 60
        assert refused.value.errno in (errno.ECONNREFUSED, errno.EIO)
        assert "HDFS" in str(refused.value) or "name node" in str(refused.value)
    finally:
        hdfs_server.start()
    assert found(home) == CASES[change][0]
    change(store, home)
    assert found(home) == CASES[change][1]


@pytest.mark.parametrize("change", [write, pytest.param(replace, marks=pytest.mark.deep)])
def test_a_name_node_that_is_silent_is_an_error_in_time(
    change: Change, home: Location, hdfs_server: HdfsServer
) -> None:
    lay(shared(home), home, change)
    os.kill(hdfs_server.name_node, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(OSError, match="did not answer in time"):
            change(shared(home, 1.0), home)
        assert time.monotonic() - began < 20
    finally:
        os.kill(hdfs_server.name_node, signal.SIGCONT)
    change(shared(home), home)
    assert found(home) == CASES[change][1]


@pytest.fixture
def table(home: Location, monkeypatch: pytest.MonkeyPatch) -> Location:
    """A table with a log checkpoint after each three commits, of which there are four."""
    monkeypatch.setitem(control._PROPERTIES, CHECKPOINT_INTERVAL, "3")
    path = home / "shop" / "_ledger"
    control.create_table(path, SCHEMA)
    for number in range(4):
        with lake_written(path.parent):
            control.append_rows(path, SCHEMA, [{"run": number}], number)
    return path


def test_a_log_gets_its_log_checkpoint(table: Location) -> None:
    names = {*store_of(table).list_names(table / LOG)}
    assert {f"{3:020}.checkpoint.parquet", "_last_checkpoint"} <= names
    assert sorted(row["run"] for row in control.read_rows(table)) == [0, 1, 2, 3]


def test_a_log_is_copied(table: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    reads = HdfsClient.read

    def note(client: HdfsClient, file: Location) -> bytes:
        read.append(file.name)
        return reads(client, file)

    def open_itself(_: Location) -> DeltaTable:
        pytest.fail("the log was not copied")

    monkeypatch.setattr(HdfsClient, "read", note)
    with logs_copied():
        for _ in range(2):
            opened = reuse_table(table, open_itself)
            assert opened is not None
            assert opened.version() == 4
        assert sorted(read) == [f"{3:020}.checkpoint.parquet", f"{4:020}.json"]


def test_a_log_that_is_not_copied_gets_its_log_checkpoint_all_the_same(
    table: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_copies, "select_segment", lambda *_: None)
    with lake_written(table.parent):
        for number in (4, 5):
            control.append_rows(table, SCHEMA, [{"run": number}], number)
    assert f"{6:020}.checkpoint.parquet" in store_of(table).list_names(table / LOG)


def test_an_error_of_hdfs_is_a_sentence_without_pages_of_java(hdfs_server: HdfsServer) -> None:
    place = Location(hdfs_server.url) / "started" / "below" / "a"
    with pytest.raises(OSError) as refused:
        store_of(place).write(place, b"1")
    assert "\tat " not in str(refused.value)
    assert refused.value.filename
