"""Commits to S3 from the JVM: one writer wins each version, and lost answers lose nothing."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from uuid import uuid4

import pytest
from py4j.protocol import Py4JJavaError

from tests.support.faulty_proxy import Fault, FaultyProxy, Planned, started_proxy
from tests.support.log_store_process import LogStoreProcess, started_log_store
from tests.support.s3_server import S3Server, find_free_port
from windowing.storage.spark_internals import COMMIT_UNKNOWN, FENCED, UNSAFE_STORE

VERSIONS = 150
PUTS = frozenset({"PUT"})
EVERY = frozenset({"GET", "HEAD", "LIST", "PUT"})
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def bucket(s3_server: S3Server) -> str:
    return f"s3a://{s3_server.make_bucket()}"


@pytest.fixture(scope="module")
def proxy(s3_server: S3Server) -> Iterator[FaultyProxy]:
    with started_proxy(s3_server.endpoint) as started:
        yield started


@pytest.fixture(scope="module")
def direct(jvm: None, s3_server: S3Server) -> Iterator[LogStoreProcess]:
    with started_log_store(s3_server.environ) as started:
        yield started


@pytest.fixture(scope="module")
def proxied(jvm: None, proxy: FaultyProxy, bucket: str) -> Iterator[LogStoreProcess]:
    """A JVM behind the proxy; that the store is safe has been seen already."""
    with started_log_store(proxy.environ) as started:
        started.commit(f"{bucket}/first", 0, "{}")
        yield started


@pytest.fixture
def table(bucket: str) -> str:
    return f"{bucket}/table-{next(_NUMBERS)}"


def line() -> str:
    """What a commit contains: an id that no other commit has."""
    return f'{{"commitInfo":{{"txnId":"{uuid4()}"}}}}'


def log_file(table: str, version: int) -> str:
    return f"{table}/_delta_log/{version:020}.json"


def test_a_version_is_committed_once(direct: LogStoreProcess, table: str) -> None:
    first, second = line(), line()
    assert direct.try_commit(table, 0, first, "{}")
    assert not direct.try_commit(table, 0, second)
    assert direct.try_commit(table, 1, second)
    assert direct.read(log_file(table, 0)) == [first, "{}"]
    names = direct.list_names(f"{table}/_delta_log", f"{1:020}.json")
    assert [name for name in names if name[0].isdigit()] == [f"{1:020}.json"]


def test_a_file_that_may_be_replaced_is(direct: LogStoreProcess, table: str) -> None:
    file = f"{table}/_delta_log/_last_checkpoint"
    for content in ("one", "two"):
        direct.write(file, [content], overwrite=True)
        assert direct.read(file) == [content]


def test_of_two_processes_one_wins_each_version(
    direct: LogStoreProcess, proxied: LogStoreProcess, table: str
) -> None:
    """Which of them is quicker is left to chance."""

    def race(process: LogStoreProcess) -> dict[int, str]:
        lines = {version: line() for version in range(VERSIONS)}
        return {v: said for v, said in lines.items() if process.try_commit(table, v, said)}

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(race, (direct, proxied))
    assert not one.keys() & other.keys()
    won = one | other
    assert {v: [won[v]] for v in range(VERSIONS)} == {
        v: direct.read(log_file(table, v)) for v in range(VERSIONS)
    }


@pytest.mark.parametrize("lost", [1, 2, 4])
def test_a_commit_whose_answer_is_lost_is_made_once(
    lost: int, proxy: FaultyProxy, proxied: LogStoreProcess, table: str
) -> None:
    said = line()
    proxy.plan(Planned(Fault.UNANSWERED, PUTS, times=lost))
    assert proxied.try_commit(table, 0, said)
    assert proxied.read(log_file(table, 0)) == [said]
    assert proxy.counts["PUT"] > 1


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.REFUSED])
def test_a_commit_that_did_not_arrive_is_made_again(
    fault: Fault, proxy: FaultyProxy, proxied: LogStoreProcess, table: str
) -> None:
    said = line()
    proxy.plan(Planned(fault, PUTS, times=3))
    assert proxied.try_commit(table, 0, said)
    assert proxied.read(log_file(table, 0)) == [said]


def test_a_lost_answer_to_a_loser_is_a_conflict(
    direct: LogStoreProcess, proxy: FaultyProxy, proxied: LogStoreProcess, table: str
) -> None:
    proxy.plan()
    said = line()
    direct.commit(table, 0, said)
    proxy.plan(Planned(Fault.UNANSWERED, PUTS))
    assert not proxied.try_commit(table, 0, line())
    assert direct.read(log_file(table, 0)) == [said]


def test_where_nobody_can_tell_it_is_said(
    direct: LogStoreProcess, proxy: FaultyProxy, proxied: LogStoreProcess, table: str
) -> None:
    said = line()
    proxy.plan(Planned(Fault.UNANSWERED, PUTS, times=None), Planned(Fault.LOST, EVERY, 1, None))
    with pytest.raises(Py4JJavaError) as error:
        proxied.commit(table, 0, said)
    assert f"{COMMIT_UNKNOWN}: it is unknown whether {log_file(table, 0)}" in str(error.value)
    assert direct.read(log_file(table, 0)) == [said]


def test_expired_credentials_are_no_conflict(
    direct: LogStoreProcess, proxy: FaultyProxy, proxied: LogStoreProcess, table: str
) -> None:
    proxy.plan(Planned(Fault.EXPIRED, EVERY, times=None))
    with pytest.raises(Py4JJavaError) as error:
        proxied.commit(table, 0, line())
    assert COMMIT_UNKNOWN in str(error.value)
    assert direct.try_commit(table, 0, line())


def test_the_fence_stops_a_commit_before_it_reaches_the_store(
    proxy: FaultyProxy, proxied: LogStoreProcess, table: str
) -> None:
    proxy.plan()
    proxied.fence.only(table.rpartition("/")[0])
    try:
        proxied.fence.allow(table, 1)
        with pytest.raises(Py4JJavaError, match=FENCED):
            proxied.commit(table, 2, line())
        assert sum(proxy.counts.values()) == 0
        proxied.commit(table, 1, line())
        proxied.commit(table, 2, line())
        assert proxy.counts["PUT"] == 2
    finally:
        proxied.fence.lift(table.rpartition("/")[0])


def test_a_store_that_ignores_conditions_is_refused(
    direct: LogStoreProcess, s3_server: S3Server
) -> None:
    bucket = s3_server.make_bucket()
    with started_proxy(s3_server.endpoint) as proxy:
        direct.set_of_bucket(bucket, "endpoint", proxy.endpoint)
        proxy.plan(Planned(Fault.UNCONDITIONAL, PUTS, times=None))
        with pytest.raises(Py4JJavaError) as error:
            direct.commit(f"s3a://{bucket}/table", 0, line())
        said = f"{UNSAFE_STORE}: s3a://{bucket} does not refuse to replace a file"
        assert said in str(error.value)
        names = direct.list_names(f"s3a://{bucket}/table/_delta_log", "0")
        assert names == ["_conditional_create"]


def test_a_client_without_conditional_creates_is_refused(
    direct: LogStoreProcess, s3_server: S3Server
) -> None:
    bucket = s3_server.make_bucket()
    direct.set_of_bucket(bucket, "create.conditional.enabled", "false")
    with pytest.raises(Py4JJavaError, match=UNSAFE_STORE):
        direct.commit(f"s3a://{bucket}/table", 0, line())


def test_where_nobody_listens_a_commit_ends_within_a_minute(
    direct: LogStoreProcess, s3_server: S3Server
) -> None:
    direct.set_of_bucket("nobody", "endpoint", f"http://127.0.0.1:{find_free_port()}")
    begun = time.monotonic()
    with pytest.raises(Py4JJavaError, match="Connection refused"):
        direct.commit("s3a://nobody/table", 0, line())
    assert time.monotonic() - begun < 60
