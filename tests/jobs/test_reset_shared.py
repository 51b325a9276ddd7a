"""A reset of a lake on storage that can't rename a directory, and on which others may write."""

import os
from collections.abc import Callable
from time import sleep
from typing import Any

import obstore
import pytest
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from jobs.diagnosis.pointer import POINTER, advance_pointer, read_pointer
from jobs.locking.lease_note import State
from jobs.locking.lease_object import VARIABLE
from jobs.locking.lock_file import held_here
from jobs.reset import reset
from tests.support.faulty_proxy import CHANGES, Fault, FaultyProxy, Planned
from tests.support.hdfs_server import HdfsServer
from tests.support.leased_process import describe_trips, lease_of, make_tables, note_of
from windowing.errors import Busy, UsageError
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import s3_store
from windowing.storage.files import list_tables
from windowing.storage.hdfs_tokens import Tokens
from windowing.storage.permission import check_permission
from windowing.storage.store import shared_store_of, store_of


def make_trips(home: Location) -> Pipeline:
    """A pipeline with two tables, a report and a pointer."""
    pipeline = load_pipeline(describe_trips(home))
    with held_here(pipeline):
        make_tables(pipeline)
        for name in ("_report.html", "_published.json"):
            store_of(home).write(pipeline.table(name), b"{}")
    return pipeline


@pytest.fixture
def trips(shared_home: Location, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """Such a pipeline, with short leases."""
    monkeypatch.setenv(VARIABLE, "6" if shared_home.is_on_hdfs else "1")
    return make_trips(shared_home)


@pytest.fixture
def trips_on_s3(s3_home: Location, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """The same on S3 alone."""
    monkeypatch.setenv(VARIABLE, "1")
    return make_trips(s3_home)


@retry(
    retry=retry_if_exception_type(Busy),
    wait=wait_fixed(0.1),
    stop=stop_after_delay(60),
    reraise=True,
)
def patiently(step: Callable[[], object]) -> None:
    step()


def test_everything_but_the_lock_is_deleted(trips: Pipeline) -> None:
    store_of(trips.lake).write(trips.lake / "bronze" / "trips" / "a", b"1")
    deleted = reset(trips)
    assert deleted.tables == ("_ledger", "hourly")
    assert deleted.size > 0
    assert [*store_of(trips.lake).list_files(trips.lake)] == ["bronze/trips/a", "trips/_lock"]
    assert (note_of(trips).epoch, note_of(trips).state) == (2, State.FREE)
    again = reset(trips)
    assert (again.tables, again.size) == ((), 0)


def test_a_reset_that_was_interrupted_is_finished_by_the_next(
    trips_on_s3: Pipeline, s3_proxy: FaultyProxy
) -> None:
    before = len(store_of(trips_on_s3.root).list_files(trips_on_s3.root))
    s3_proxy.plan(Planned(Fault.EXPIRED, CHANGES, skipped=5, times=None))
    with pytest.raises(UsageError, match="the credentials have expired"):
        reset(trips_on_s3)
    s3_proxy.plan()
    # What refuses every run until then is deleted last.
    assert "_ledger" in list_tables(trips_on_s3.root)
    assert len(store_of(trips_on_s3.root).list_files(trips_on_s3.root)) < before
    # A lease that could not be given back is given back as soon as that is possible again.
    patiently(lambda: reset(trips_on_s3))
    assert [*store_of(trips_on_s3.root).list_files(trips_on_s3.root)] == ["_lock"]


def test_a_reset_whose_name_node_is_killed_is_finished_by_the_next(
    hdfs_home: Location, hdfs_server: HdfsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips = make_trips(hdfs_home)
    places = iter(("pointer", "report", "hourly"))

    def check_and_kill() -> None:
        check_permission()
        if next(places) == "hourly":
            hdfs_server.kill()

    with monkeypatch.context() as broken:
        broken.setattr("windowing.storage.whole_lake.check_permission", check_and_kill)
        try:
            with pytest.raises(ConnectionRefusedError, match=str(hdfs_server.port)):
                reset(trips)
        finally:
            hdfs_server.start()
    assert list_tables(trips.root) == ["_ledger", "hourly"]
    assert read_pointer(trips).step is None
    patiently(lambda: reset(trips))
    assert [*store_of(trips.root).list_files(trips.root)] == ["_lock"]


def test_a_pointer_that_is_listed_nowhere_is_deleted(
    hdfs_home: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has written it was killed before its content was moved."""
    trips = make_trips(hdfs_home)
    pointer, shared = trips.table(POINTER), shared_store_of(hdfs_home)
    assert shared is not None
    shared.delete_file(pointer)
    with monkeypatch.context() as killed:
        killed.setattr(Tokens, "_move_content", lambda *_: None)
        advance_pointer(trips, b'{"seq": 7}', 7)
    assert POINTER not in shared.list_names(trips.root)
    assert shared.read_tagged(pointer) is not None
    patiently(lambda: reset(trips))
    assert shared.read_tagged(pointer) is None


def lose_lease(trips: Pipeline) -> None:
    """Another process breaks the lease that is held."""
    lease, found = lease_of(trips), lease_of(trips).read()
    if found.note is not None and found.note.state is State.HELD:
        assert lease.write(found.note.ended(State.BROKEN), found) is not None


def test_a_reset_whose_lock_was_taken_over_deletes_nothing_more(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobs import reset as module
    from windowing.storage import whole_lake

    def lose(pipeline: Pipeline) -> object:
        lose_lease(trips)
        return holding(pipeline)

    def check_slowly() -> None:
        sleep(renewed)
        check_permission()

    holding, renewed = module.holding, float(os.environ[VARIABLE]) + 0.2
    monkeypatch.setattr(module, "holding", lose)
    monkeypatch.setattr(whole_lake, "check_permission", check_slowly)
    with pytest.raises(Busy, match="this process has lost"):
        reset(trips)
    assert list_tables(trips.root) == ["_ledger", "hourly"]


def test_a_table_of_many_files_is_deleted_no_further_once_the_lock_is_lost(
    trips_on_s3: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the next one writes then may have the names of the files that were to be deleted."""
    before = {*store_of(trips_on_s3.root).list_files(trips_on_s3.root)}
    delete, deleted = obstore.delete, []

    def delete_and_sleep(client: Any, keys: str | list[str]) -> None:
        delete(client, keys)
        deleted.extend([keys] if isinstance(keys, str) else keys)
        if any("_ledger/" in key for key in deleted):
            lose_lease(trips_on_s3)
            sleep(1.2)

    monkeypatch.setattr(s3_store, "_DELETED_AT_ONCE", 1)
    monkeypatch.setattr(obstore, "delete", delete_and_sleep)
    with pytest.raises(Busy, match="this process has lost"):
        reset(trips_on_s3)
    left = {*store_of(trips_on_s3.root).list_files(trips_on_s3.root)}
    ledger = {name for name in before if name.startswith("_ledger/")}
    assert len(ledger) > 2
    assert len(ledger - left) == 1
