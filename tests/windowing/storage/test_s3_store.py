"""The store on S3 keeps the contract of all stores, also where requests and answers are lost."""

import errno
import socket
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from tests.support import faulty_proxy
from tests.support.faulty_proxy import CHANGES, READS, Fault, FaultyProxy, Planned
from tests.support.s3_server import KEYS, S3Server, find_free_port
from tests.support.shared_store_contract import SharedStoreContract, shared
from windowing.errors import UsageError
from windowing.location import Location
from windowing.storage import control, s3_errors, s3_store
from windowing.storage import store as store_module
from windowing.storage.conditional_put import check_conditional_put
from windowing.storage.files import list_tables
from windowing.storage.log_lines import LOG
from windowing.storage.store import Store, store_of


@pytest.fixture
def home(s3_home: Location) -> Location:
    """A directory without files."""
    return s3_home


class TestS3Store(SharedStoreContract):
    """A server that speaks S3."""

    @pytest.fixture
    def store(self, home: Location) -> Store:
        """A store."""
        return store_of(home)


class TestS3StoreThatLosesWrites(TestS3Store):
    """Every seventh write does not arrive at first, and every fifth read has to be repeated."""

    FAULTS: tuple[Planned, ...] = (
        Planned(Fault.LOST, CHANGES, times=None, every=7),
        Planned(Fault.REFUSED, READS, times=None, every=5),
    )

    @pytest.fixture
    def store(self, home: Location, s3_proxy: FaultyProxy) -> Store:
        """A store."""
        s3_proxy.plan(*self.FAULTS)
        return store_of(home)


class TestS3StoreThatLosesAnswers(TestS3StoreThatLosesWrites):
    """Of every fifth write the answer is lost, and every fifth read does not arrive."""

    FAULTS = (
        Planned(Fault.UNANSWERED, CHANGES, times=None, every=5),
        Planned(Fault.LOST, READS, times=None, every=5),
    )


class TestS3StoreThatListsSlowly(TestS3StoreThatLosesWrites):
    """Every other listing arrives late, so it lacks what was written meanwhile.

    S3 promises that a listing has all that was written before it was asked for, so none is older.
    """

    FAULTS = (Planned(Fault.LATE, frozenset({"LIST"}), times=None, every=2),)

    def test_what_is_written_while_a_listing_is_on_its_way_is_in_the_next(
        self, store: Store, home: Location, s3_proxy: FaultyProxy
    ) -> None:
        store.write(home / "a", b"1")
        s3_proxy.plan(Planned(Fault.LATE, frozenset({"LIST"})))
        with ThreadPoolExecutor(1) as pool:
            listed = pool.submit(lambda: [*store.list_files(home)])
            while not any(each.kind == "LIST" for each in s3_proxy.asked):
                time.sleep(0.01)
            assert store.create(home / "b", b"2")
            assert not store.create(home / "b", b"3")
            assert listed.result() == ["a"]
        assert [*store.list_files(home)] == ["a", "b"]


def write(home: Location) -> None:
    store_of(home).write(home / "a", b"new")


def create(home: Location) -> None:
    assert store_of(home).create(home / "b", b"new")


def replace(home: Location) -> None:
    tagged = shared(home).read_tagged(home / "a")
    assert tagged is not None
    assert shared(home).replace(home / "a", b"new", tagged.tag)


def delete(home: Location) -> None:
    store_of(home).delete(home / "from")


BEFORE = {"a": b"old", "from/1": b"1", "from/2": b"2"}
AFTER: dict[Callable[[Location], None], dict[str, bytes]] = {
    write: {**BEFORE, "a": b"new"},
    create: {**BEFORE, "b": b"new"},
    replace: {**BEFORE, "a": b"new"},
    delete: {"a": b"old"},
}
"""The files after each change of BEFORE."""


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNANSWERED, Fault.REFUSED])
@pytest.mark.parametrize("change", AFTER)
def test_a_change_is_done_although_a_request_fails(
    change: Callable[[Location], None], fault: Fault, home: Location, s3_proxy: FaultyProxy
) -> None:
    store, at, was_reached = store_of(home), 0, True
    while was_reached:
        store.delete(home)
        for name, content in BEFORE.items():
            store.write(home / name, content)
        s3_proxy.plan(Planned(fault, CHANGES, skipped=at))
        try:
            change(home)
        except OSError:
            # What it is unknown of whether it was done is done once more.
            change(home)
        was_reached = sum(s3_proxy.counts[kind] for kind in CHANGES) > at
        s3_proxy.plan()
        found = {name: store.read(home / name) for name in store.list_files(home)}
        assert found == AFTER[change], (at, fault)
        at += 1
    assert at > 1


@pytest.mark.parametrize("change", [write, create, replace, delete])
def test_what_does_not_get_through_is_an_error(
    change: Callable[[Location], None], home: Location, s3_proxy: FaultyProxy
) -> None:
    for name, content in BEFORE.items():
        store_of(home).write(home / name, content)
    s3_proxy.plan(Planned(Fault.REFUSED, CHANGES, times=None))
    began = time.monotonic()
    with pytest.raises(OSError, match="the store has too much to do") as refused:
        change(home)
    assert refused.value.errno == errno.EBUSY
    assert time.monotonic() - began < 60
    s3_proxy.plan()
    assert [*store_of(home).list_files(home)] == [*BEFORE]


@pytest.mark.parametrize("change", [create, replace])
def test_a_conditional_write_that_is_not_answered_in_time_is_tried_again(
    change: Callable[[Location], None],
    home: Location,
    s3_proxy: FaultyProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The library does not, because it does not know whether it was done."""
    monkeypatch.setattr(store_module, "_SECONDS", 1.0)
    store_of(home).write(home / "a", b"old")
    s3_proxy.plan(Planned(Fault.SILENT, CHANGES))
    change(home)
    assert s3_proxy.counts["PUT"] == 2


@pytest.mark.parametrize("change", ["write", "create"])
def test_many_bytes_may_take_longer_than_few(
    change: str, home: Location, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As over a slow link, where three tries of thirty seconds would end in the same way."""
    monkeypatch.setattr(faulty_proxy, "_LATE_SECONDS", 1.5)
    s3_proxy.plan(Planned(Fault.LATE, frozenset({"PUT"})))
    getattr(shared(home, 1.0), change)(home / "a", bytes(300_000))
    assert s3_proxy.counts == {"PUT": 1}
    s3_proxy.plan(Planned(Fault.LATE, frozenset({"PUT"})))
    assert shared(home, 1.0).create(home / "b", b"few")
    assert s3_proxy.counts["GET"] == 1, "it was too late, so it is looked at"


def test_the_store_may_take_longer_to_copy_a_file(
    home: Location, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faulty_proxy, "_LATE_SECONDS", 1.5)
    store_of(home).write(home / "a", b"large")
    s3_proxy.plan(Planned(Fault.LATE, frozenset({"COPY"})))
    shared(home, 1.0).copy(home / "a", home / "b")
    assert s3_proxy.counts == {"COPY": 1}


def test_a_file_that_another_one_made_meanwhile_is_not_taken_for_ours(
    home: Location, s3_proxy: FaultyProxy
) -> None:
    """The same bytes as well: of two that create the same file one does."""
    s3_proxy.plan(Planned(Fault.LOST, frozenset({"PUT"}), times=None))
    with pytest.raises(OSError, match="connection"):
        store_of(home).create(home / "a", b"same")
    s3_proxy.plan()
    assert store_of(home).create(home / "a", b"same")
    s3_proxy.plan(Planned(Fault.REFUSED, frozenset({"PUT"})))
    assert not store_of(home).create(home / "a", b"same")


def test_a_store_that_is_not_there_is_an_error_within_a_minute(
    home: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{find_free_port()}")
    began = time.monotonic()
    with pytest.raises(OSError, match=r"the store can't be reached; check AWS_ENDPOINT_URL") as met:
        store_of(home).read(home / "a")
    assert (met.value.errno, met.value.filename) == (errno.ECONNREFUSED, f"{home}/a")
    assert time.monotonic() - began < 60


def test_a_table_whose_store_is_not_there_is_the_same_error(
    home: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    control.create_table(home / "a", pa.schema([("n", pa.int64())]))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{find_free_port()}")
    with pytest.raises(OSError, match=r"the store can't be reached; check AWS_ENDPOINT_URL") as met:
        control.open_table(home / "a")
    assert (met.value.errno, met.value.filename) == (errno.ECONNREFUSED, f"{home}/a")


def test_a_table_is_opened_without_a_look_for_a_region(
    home: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That ends in the metadata of EC2, which elsewhere nobody answers for."""
    control.create_table(home / "a", pa.schema([("n", pa.int64())]))
    monkeypatch.delenv("AWS_REGION")
    with socket.create_server(("127.0.0.1", 0)) as metadata:
        metadata.settimeout(0)
        address = f"http://127.0.0.1:{metadata.getsockname()[1]}"
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", address)
        assert control.open_table(home / "a") is not None
        with pytest.raises(BlockingIOError):
            metadata.accept()


@pytest.mark.parametrize("kinds", [READS, CHANGES], ids=["read", "write"])
def test_expired_credentials_are_a_sentence_of_a_table_too(
    kinds: frozenset[str], home: Location, s3_proxy: FaultyProxy
) -> None:
    schema = pa.schema([("n", pa.int64())])
    control.create_table(home / "a", schema)
    s3_proxy.plan(Planned(Fault.EXPIRED, kinds, times=None))
    with pytest.raises(OSError, match="the credentials have expired; renew them") as met:
        control.append_rows(home / "a", schema, [{"n": 1}], 0)
    assert KEYS.secret not in "".join(traceback.format_exception(met.value))


def test_a_store_that_never_answers_is_an_error(home: Location, s3_proxy: FaultyProxy) -> None:
    s3_proxy.plan(Planned(Fault.SILENT, times=None))
    with pytest.raises(OSError, match="the store did not answer in time") as met:
        shared(home, 0.5).read(home / "a")
    assert met.value.errno == errno.ETIMEDOUT


@pytest.mark.parametrize("does", ["read", "write", "create", "list_files", "delete"])
def test_expired_credentials_are_a_sentence_without_a_secret(
    does: str, home: Location, s3_proxy: FaultyProxy
) -> None:
    store = store_of(home)
    store.write(home / "a", b"1")
    s3_proxy.plan(Planned(Fault.EXPIRED, times=None))
    arguments = (home, b"2") if does in ("write", "create") else (home,)
    with pytest.raises(OSError, match="the credentials have expired; renew them") as met:
        getattr(store, does)(*arguments)
    assert met.value.errno == errno.EACCES
    assert met.value.__cause__ is None
    assert KEYS.secret not in "".join(traceback.format_exception(met.value))


def test_wrong_credentials_are_a_sentence(home: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another made-up secret")
    with pytest.raises(OSError, match="the credentials are refused; check AWS_ACCESS") as met:
        store_of(home).read(home / "a")
    assert met.value.errno == errno.EACCES


@pytest.mark.parametrize("does", ["read", "write", "create", "list_files", "delete"])
def test_a_bucket_that_is_not_there_is_no_missing_file(does: str, home: Location) -> None:
    place = Location("s3://bucket-of-nobody/lake")
    arguments = (place, b"2") if does in ("write", "create") else (place,)
    with pytest.raises(OSError, match="there is no such bucket") as met:
        getattr(store_of(home), does)(*arguments)
    assert met.value.errno == errno.ENOENT


def test_objects_that_stand_for_directories_are_no_files(
    s3_server: S3Server, home: Location
) -> None:
    """Hadoop and consoles make such."""
    store = store_of(home)
    store.write(home / "full" / "empty", b"")
    for name in ("lake/", "lake/none/", "lake/full/"):
        s3_server.make_object(home, name)
    assert [*store.list_files(home)] == ["full/empty"]
    assert not store.list_files(home / "none")
    assert {*store.list_names(home)} == {"none", "full"}


def test_an_object_that_stands_for_a_log_makes_no_table(
    s3_server: S3Server, home: Location
) -> None:
    """Spark makes such, and they stay when all files are deleted."""
    store_of(home).write(home / "hourly" / LOG / f"{0:020}.json", b"{}")
    for name in ("lake/late/", f"lake/late/{LOG}/"):
        s3_server.make_object(home, name)
    assert list_tables(home) == ["hourly"]


def test_a_name_that_is_no_path_is_told(s3_server: S3Server, home: Location) -> None:
    s3_server.make_object(home, "lake/drop/two%0Alines")
    with pytest.raises(OSError, match="the name of an object there is no path") as met:
        store_of(home).list_files(home / "drop")
    assert met.value.errno == errno.EINVAL


def test_keys_that_are_written_anew_decide_nothing(
    home: Location, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer of a put is lost, and then the keys can't be read: it may still arrive."""
    store = shared(home)
    s3_proxy.plan(Planned(Fault.UNANSWERED, CHANGES))

    def find_no_keys(*_: object) -> None:
        raise UsageError("the profile has no keys")

    monkeypatch.setattr(type(store), "_find", find_no_keys)
    with pytest.raises(s3_errors.NoAnswer):
        store.create(home / "a", b"1")


def test_many_files_are_listed_and_deleted(home: Location, s3_proxy: FaultyProxy) -> None:
    store = store_of(home)
    names = sorted(f"{n:04}" for n in range(1200))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.write(home / name, b"1"), names))
    s3_proxy.plan()
    assert list(store.list_files(home)) == names
    assert s3_proxy.counts == {"LIST": 2}
    store.delete(home)
    assert s3_proxy.counts == {"LIST": 4, "DELETE": 2}
    assert not store.list_files(home)


def test_a_client_is_made_once(home: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a bucket and an environment, because it looks for its credentials only then."""
    store_of(home).write(home / "a", b"1")
    made = s3_store._make_client.cache_info().misses
    for _ in range(3):
        assert store_of(home / "a").read(home / "a") == b"1"
    assert s3_store._make_client.cache_info().misses == made
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another made-up secret")
    with pytest.raises(OSError, match="the credentials are refused"):
        store_of(home).read(home / "a")


def test_a_store_that_keeps_conditions_is_accepted(home: Location) -> None:
    check_conditional_put(shared(home), home)
    assert not store_of(home).list_files(home)


@pytest.mark.parametrize(
    ("skipped", "ignored"), [(1, "If-None-Match"), (3, "If-Match")], ids=["create", "replace"]
)
def test_a_store_that_ignores_a_condition_is_refused(
    skipped: int, ignored: str, home: Location, s3_proxy: FaultyProxy
) -> None:
    s3_proxy.plan(Planned(Fault.UNCONDITIONAL, frozenset({"PUT"}), skipped=skipped))
    with pytest.raises(UsageError, match=f"{home} is on a store that ignores {ignored}, so two"):
        check_conditional_put(shared(home), home)
    s3_proxy.plan()
    assert not store_of(home).list_files(home)


def test_files_outlive_a_server_that_is_killed(s3_server: S3Server, home: Location) -> None:
    store = store_of(home)
    store.write(home / "a", b"1")
    s3_server.kill()
    s3_server.start()
    assert store.read(home / "a") == b"1"
