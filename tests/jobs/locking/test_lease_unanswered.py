"""A renewal that was done, and of which nobody was told, is that of the holder."""

import errno
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from jobs.locking.holder import find_this_holder
from jobs.locking.lease import _take, holding, take_lease
from jobs.locking.lease_note import LeaseNote, State
from jobs.locking.lease_object import LeaseObject
from tests.support.leased_process import describe_trips
from windowing.errors import CommitUnknown, StateRefused, UsageError
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.storage.store import SharedStore, Tagged

SECONDS = 1.0
NOTE = LeaseNote(3, State.HELD, SECONDS, find_this_holder(), renewals=7)
OTHER = replace(find_this_holder(), process=1)
FAILURES = (
    OSError(errno.ETIMEDOUT, "the store did not answer in time"),
    UsageError("AWS_PROFILE is 'nightly', and keys has no keys of it"),
)
"""What a store raises that is silent, and one whose keys a tool is writing anew."""


@dataclass
class OneFile:
    """A store of one file. While it is `silent`, writes are done and callers get `failure`."""

    found: Tagged
    failure: Exception
    silent: bool = False
    writes: list[bytes] = field(default_factory=list)

    def read_tagged(self, _: Location) -> Tagged:
        """The file."""
        if self.silent:
            raise self.failure
        return self.found

    def replace(self, _: Location, content: bytes, tag: str | None) -> str | None:
        """Writes the file if it has the tag."""
        if tag == self.found.tag:
            self.writes.append(content)
            self.found = Tagged(content, str(len(self.writes)))
            tag = self.found.tag
        else:
            tag = None
        if self.silent:
            raise self.failure
        return tag


@pytest.fixture(params=FAILURES, ids=["silent", "without keys"])
def store(request: pytest.FixtureRequest) -> OneFile:
    """One with a lease that is free."""
    return OneFile(Tagged(NOTE.ended(State.FREE).as_bytes(), "0"), request.param)


@pytest.fixture
def lease(store: OneFile) -> LeaseObject:
    """The lease of a pipeline."""
    trips = load_pipeline(describe_trips(Location("s3://bucket/lake")))
    return LeaseObject(trips, cast("SharedStore", store), SECONDS)


def wait_for(condition: Callable[[], bool]) -> None:
    """Returns as soon as it is true."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def lose_an_answer(store: OneFile) -> None:
    """The next write is done, and its holder is not told."""
    written = len(store.writes)
    store.silent = True
    wait_for(lambda: len(store.writes) > written)
    # By then the error has arrived.
    time.sleep(0.1)
    store.silent = False


def state_of(lease: LeaseObject) -> State:
    note = lease.read().note
    assert note is not None
    return note.state


def test_a_holder_goes_on_behind_its_own_renewal(lease: LeaseObject, store: OneFile) -> None:
    held = take_lease(lease)
    for _ in range(2):
        lose_an_answer(store)
        written = len(store.writes)
        wait_for(lambda before=written: len(store.writes) > before)
    time.sleep(SECONDS)
    held.check()
    assert held.give_back(State.FREE) is None
    assert state_of(lease) is State.FREE


def test_a_lease_is_given_back_behind_a_renewal_of_its_holder(
    lease: LeaseObject, store: OneFile
) -> None:
    held = take_lease(lease)
    lose_an_answer(store)
    assert held.give_back(State.FREE) is None
    assert state_of(lease) is State.FREE


def test_a_lease_that_was_given_back_without_an_answer_is_free(
    lease: LeaseObject, store: OneFile
) -> None:
    held = take_lease(lease)
    store.silent = True
    assert held.give_back(State.FREE) is None
    store.silent = False
    assert state_of(lease) is State.FREE
    taken = take_lease(lease)
    time.sleep(SECONDS / 2)
    taken.check()
    assert taken.give_back(State.FREE) is None


def test_a_lease_that_was_taken_without_an_answer_is_withdrawn(
    lease: LeaseObject, store: OneFile
) -> None:
    found = lease.read()
    store.silent = True
    with pytest.raises(type(store.failure)):
        _take(lease, NOTE, found)
    store.silent = False
    wait_for(lambda: state_of(lease) is State.BROKEN)


def test_a_lease_that_another_one_has_broken_is_lost(lease: LeaseObject) -> None:
    held = take_lease(lease)
    found = lease.read()
    assert found.note is not None
    assert lease.write(found.note.ended(State.BROKEN), found) is not None
    lost = held.give_back(State.FREE)
    assert lost is not None
    assert "another process has broken it" in str(lost)
    assert state_of(lease) is State.BROKEN


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (StateRefused("TABLE_LOST", "made up"), State.FREE),
        (CommitUnknown("made up"), State.BROKEN),
        (ValueError("made up"), State.BROKEN),
    ],
)
def test_a_lease_behind_which_a_write_may_be_under_way_is_left_broken(
    error: Exception, state: State, lease: LeaseObject
) -> None:
    """Whoever takes such a lease fences the tables."""
    with pytest.raises(type(error), match="made up"), holding(take_lease(lease)):
        raise error
    assert state_of(lease) is state


@pytest.mark.parametrize("note", [NOTE, NOTE.ended(State.FREE), NOTE.ended(State.BROKEN)])
def test_a_note_follows_one_of_its_holder(note: LeaseNote) -> None:
    assert note.behind(replace(NOTE, renewals=8)) == replace(note, renewals=9)
    others = (replace(NOTE, holder=OTHER), replace(NOTE, epoch=4), NOTE.ended(State.BROKEN), None)
    assert [note.behind(other) for other in others] == [None] * 4


def test_only_an_end_follows_an_end() -> None:
    free = NOTE.ended(State.FREE)
    assert free.behind(free) == replace(free, renewals=8)
    assert NOTE.behind(free) is None
    assert NOTE.ended(State.BROKEN).behind(free) is None
