"""A lease: one writer at a time among processes that only share a store."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from jobs.cli.errors import explain_error
from jobs.locking import running_process
from jobs.locking.attempt import VARIABLE as ATTEMPT
from jobs.locking.lease_note import State, must_fence, parse_lease
from jobs.locking.lease_object import VARIABLE, is_any_not_ended
from jobs.locking.lock_file import held_here, probe
from tests.support.faulty_proxy import CHANGES, READS, Fault, FaultyProxy, Planned
from tests.support.leased_process import describe_trips, held_by, lease_of, note_of
from tests.support.s3_server import S3Server
from windowing.errors import Busy, UsageError
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage.store import store_of

ADDING = """
import json, sys
from tenacity import retry, retry_if_exception_type, wait_random
from jobs.locking.lock_file import held_here
from tests.support.leased_process import add_one
from windowing.errors import Busy
from windowing.spec.load import load_pipeline
trips = load_pipeline(json.loads(sys.argv[1]))
@retry(retry=retry_if_exception_type(Busy), wait=wait_random(0, 0.2))
def write():
    with held_here(trips):
        add_one(trips, {})
for _ in range(3):
    write()
"""


@pytest.fixture
def trips(s3_home: Location, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """A pipeline whose lake is on a store that machines share; its leases are short."""
    monkeypatch.setenv(VARIABLE, "2")
    return load_pipeline(describe_trips(s3_home))


def say(trips: Pipeline, **differing: object) -> None:
    """The object says that of the lease."""
    lease = lease_of(trips)
    found = lease.read()
    assert found.note is not None
    assert lease.write(replace(found.note, **differing), found) is not None


def test_a_lease_is_given_back_and_taken_again(trips: Pipeline) -> None:
    for epoch in (1, 2, 3):
        with held_here(trips):
            assert (note_of(trips).epoch, note_of(trips).state) == (epoch, State.HELD)
            assert note_of(trips).holder.process == os.getpid()
        assert (note_of(trips).epoch, note_of(trips).state) == (epoch, State.FREE)
    assert probe(trips) is None
    assert [*store_of(trips.root).list_files(trips.root)] == ["_lock"]


def test_a_holder_at_work_is_named_at_once(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "30")
    with held_by(trips.lake) as holder:
        began = time.monotonic()
        for attempt in (probe, lambda pipeline: held_here(pipeline).__enter__()):
            with pytest.raises(Busy) as refused:
                attempt(trips)
            assert f"another writer holds {trips.root}/_lock: `" in str(refused.value)
            assert f", process {holder.pid} on " in str(refused.value)
            assert str(refused.value).endswith(", epoch 1; try again when it has finished")
        assert time.monotonic() - began < 7
        assert note_of(trips).renewals == 0


def test_a_block_of_this_process_is_another_writer(trips: Pipeline) -> None:
    with held_here(trips), pytest.raises(Busy, match=f"process {os.getpid()} on"), held_here(trips):
        pass


@pytest.mark.parametrize("writers", [2, 6])
def test_processes_write_one_after_the_other(writers: int, trips: Pipeline) -> None:
    """Each adds to a number three times, which two at once would lose."""
    described = json.dumps(describe_trips(trips.lake))
    command = [sys.executable, "-c", ADDING, described]
    racing = [subprocess.Popen(command) for _ in range(writers)]
    assert [process.wait(120) for process in racing] == [0] * writers
    assert store_of(trips.root).read(trips.table("number")) == b"%d" % (3 * writers)
    assert (note_of(trips).epoch, note_of(trips).state) == (3 * writers, State.FREE)


def test_a_killed_holder_is_followed_at_once(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "30")
    with held_by(trips.lake) as holder:
        holder.kill()
        holder.wait()
        began = time.monotonic()
        assert probe(trips) is None
        assert note_of(trips).state is State.BROKEN
        with held_here(trips):
            assert note_of(trips).epoch == 2
        assert time.monotonic() - began < 20


def test_a_lease_that_was_taken_without_an_answer_is_withdrawn(
    trips: Pipeline, s3_server: S3Server, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others would see a holder at work for as long as this process lives."""
    with held_here(trips):
        pass
    monkeypatch.setenv(VARIABLE, "6")
    s3_proxy.plan(
        Planned(Fault.UNANSWERED, CHANGES, times=None),
        Planned(Fault.LOST, READS, skipped=1, times=None),
    )
    with pytest.raises(OSError, match="the connection to the store was lost"), held_here(trips):
        pass
    assert is_any_not_ended()
    with monkeypatch.context() as of_others:
        for name, value in s3_server.environ.items():
            of_others.setenv(name, value)
        assert note_of(trips).state is State.HELD
    s3_proxy.plan()
    until = time.monotonic() + 20
    while note_of(trips).state is State.HELD:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert note_of(trips).state is State.BROKEN
    assert not is_any_not_ended()
    with held_here(trips):
        assert note_of(trips).epoch == 3


def test_a_lease_that_was_not_taken_in_time_can_not_be_taken_later(
    trips: Pipeline, s3_proxy: FaultyProxy
) -> None:
    """The request may still be on its way, and would find the lease as it was."""
    with held_here(trips):
        pass
    found = lease_of(trips).read()
    assert found.note is not None
    s3_proxy.plan(Planned(Fault.LOST, CHANGES, times=None))
    with pytest.raises(OSError, match="the connection to the store was lost"), held_here(trips):
        pass
    s3_proxy.plan()
    until = time.monotonic() + 20
    while note_of(trips) == found.note:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert note_of(trips).state is State.BROKEN
    assert lease_of(trips).write(found.note.renewed(), found) is None


def test_a_holder_elsewhere_is_busy_once_it_has_renewed(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "8")
    with held_by(trips.lake):
        monkeypatch.setattr(running_process, "name_system", lambda: "another machine")
        began = time.monotonic()
        with pytest.raises(Busy):
            probe(trips)
        # It renews every two seconds.
        assert time.monotonic() - began < 6
        assert note_of(trips).state is State.HELD


def test_a_holder_elsewhere_has_gone_when_it_has_not_renewed_for_its_time(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is what it said itself, by the clock of whoever waits."""
    with held_here(trips):
        pass
    say(trips, state=State.HELD, seconds=1.5)
    monkeypatch.setattr(running_process, "name_system", lambda: "another machine")
    monkeypatch.setenv(VARIABLE, "30")
    began = time.monotonic()
    with held_here(trips):
        assert 1.5 <= time.monotonic() - began < 10
        assert note_of(trips).epoch == 2


def test_the_next_try_ends_the_lost_one_on_the_same_machine(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "30")
    monkeypatch.setenv(ATTEMPT, "nightly#2")
    with held_by(trips.lake, **{ATTEMPT: "nightly#1"}) as lost:
        ended = probe(trips)
        assert ended is not None
        assert (ended.process, lost.wait(10)) == (lost.pid, -15)
        with held_here(trips):
            assert note_of(trips).epoch == 2


def test_a_try_on_another_machine_is_not_ended(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ATTEMPT, "nightly#2")
    with held_by(trips.lake, **{ATTEMPT: "nightly#1"}) as other:
        monkeypatch.setattr(running_process, "name_system", lambda: "another machine")
        with pytest.raises(Busy, match="try 1 of nightly, epoch 1"):
            probe(trips)
        assert other.poll() is None


def test_an_object_that_is_no_lease_is_one_of_a_holder_who_may_sleep(trips: Pipeline) -> None:
    """As of a lake that was copied from a disk, where it is a lock of the system."""
    for content in (b"", b"{", b"[]", b'{"process": 1}', b'{"holder": {}, "epoch": 1}', b"\xff"):
        store_of(trips.root).write(trips.table("_lock"), content)
        found = lease_of(trips).read()
        assert found.note is None
        assert must_fence(found.note)
        with held_here(trips):
            assert note_of(trips).epoch == 1


def test_what_a_lease_says_is_read_as_it_was_written(trips: Pipeline) -> None:
    with held_here(trips):
        note = note_of(trips)
        assert parse_lease(note.as_bytes()) == note
        assert note.renewed().as_bytes() != note.as_bytes()
        assert not must_fence(note.ended(State.FREE))
        assert must_fence(note.ended(State.BROKEN))


@pytest.mark.parametrize("text", ["0", "0.9", "3601", "soon", "nan", "-1"])
def test_a_time_that_a_lease_can_not_have_is_refused(
    text: str, trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(UsageError, match="it has to be a number of seconds from 1 to 3600"):
        probe(trips)


def test_a_store_without_conditions_gets_no_lease(trips: Pipeline, s3_proxy: FaultyProxy) -> None:
    s3_proxy.plan(Planned(Fault.UNCONDITIONAL, frozenset({"PUT"}), times=None))
    with pytest.raises(UsageError, match="on a store that ignores If-None-Match"), held_here(trips):
        pass
    s3_proxy.plan()
    assert not store_of(trips.root).list_files(trips.root)


def test_a_lease_costs_three_requests(
    trips: Pipeline, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One to see it, one to take it, one to give it back; the store is tried only once."""
    monkeypatch.setenv(VARIABLE, "600")
    with held_here(trips):
        pass
    s3_proxy.plan()
    with held_here(trips):
        pass
    assert (s3_proxy.counts["GET"], s3_proxy.counts["PUT"]) == (1, 2)


def test_a_store_that_is_not_there_is_a_sentence(
    trips: Pipeline, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3_server.kill()
    try:
        for attempt in (probe, lambda pipeline: held_here(pipeline).__enter__()):
            with pytest.raises(OSError, match="the store can't be reached") as refused:
                attempt(trips)
            # It is tried again, as by a scheduler, because the store may be there by then.
            failure = explain_error(refused.value)
            assert (failure.message, failure.code) == (
                f"{trips.root}/_lock: the store can't be reached; check AWS_ENDPOINT_URL; "
                "run again, which finishes what was begun",
                1,
            )
    finally:
        s3_server.start()
