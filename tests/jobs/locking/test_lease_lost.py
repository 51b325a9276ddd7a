"""Whoever has lost a lease ends with a sentence, and commits nothing more."""

import os
import re
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from jobs.landing.look import keeper_of
from jobs.locking import fencing
from jobs.locking.lease import take_lease
from jobs.locking.lease_note import State
from jobs.locking.lease_object import VARIABLE
from jobs.locking.lock_file import held_here
from tests.support.faulty_proxy import Fault, FaultyProxy, Planned
from tests.support.leased_process import (
    COLUMNS,
    ROWS,
    describe_trips,
    end,
    held_by,
    lease_of,
    make_tables,
    note_of,
    stop,
    tell,
)
from tests.support.s3_server import KEYS
from windowing.errors import Busy, StateRefused
from windowing.ingest.rule import FILES, QUARANTINE
from windowing.ledger.rule import CLOSE, LedgerEntry
from windowing.ledger.table import LEDGER, read_history, record_entries
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import fence, plain_table
from windowing.storage.files import newest_version
from windowing.storage.permission import check_permission

SECONDS = {"s3": 1.5, "hdfs": 6.0}
"""How long a lease is valid; on HDFS a renewal takes half a second."""
PUTS = frozenset({"PUT"})


@pytest.fixture
def trips(shared_home: Location, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """A pipeline with two tables, of which a step is open; its leases are short."""
    return make_trips(shared_home, monkeypatch)


@pytest.fixture
def trips_on_s3(s3_home: Location, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """The same on S3 alone."""
    return make_trips(s3_home, monkeypatch)


def make_trips(home: Location, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    seconds = SECONDS["hdfs" if home.is_on_hdfs else "s3"]
    monkeypatch.setenv(VARIABLE, f"{seconds:g}")
    pipeline = load_pipeline(describe_trips(home))
    with held_here(pipeline):
        make_tables(pipeline)
    return pipeline


def valid_seconds() -> float:
    return float(os.environ[VARIABLE])


def versions(trips: Pipeline) -> dict[str, int]:
    return {name: newest_version(trips.table(name)) for name in (LEDGER, "hourly")}


@pytest.mark.parametrize("step", ["record", "append", "append_anew", "check"])
def test_a_sleeper_commits_nothing_after_another_has_taken_over(step: str, trips: Pipeline) -> None:
    before = versions(trips)
    with held_by(trips.lake) as first:
        assert tell(first, "prepare") == "done"
        stop(first)
        began = time.monotonic()
        with held_here(trips):
            assert time.monotonic() - began >= valid_seconds()
            assert note_of(trips).epoch == 3
            # What the other one has opened is one version older now.
            assert versions(trips) == {name: before[name] + 1 for name in before}
            own = plain_table.find_plain(trips.table("hourly"))
            os.kill(first.pid, signal.SIGCONT)
            said = tell(first, step)
            assert first.wait(30) == 75
            assert own is not None
            plain_table.append(own, ROWS)
        assert versions(trips)["hourly"] == before["hourly"] + 2
    named = f"process {os.getpid()} on "
    assert said.startswith(f"trips: this process has lost {trips.root}/_lock, because it was taken")
    assert named in said
    assert said.endswith(", epoch 3; the next command finishes what this one has left")


def test_where_no_step_is_open_only_the_ledger_is_fenced(trips: Pipeline) -> None:
    record_entries(trips, read_history(trips), [LedgerEntry(CLOSE, run=1)])
    before = versions(trips)
    with held_by(trips.lake) as first:
        assert tell(first, "prepare") == "done"
        stop(first)
        with held_here(trips):
            assert versions(trips) == {**before, LEDGER: before[LEDGER] + 1}
        os.kill(first.pid, signal.SIGCONT)
        assert tell(first, "record").startswith("trips: this process has lost ")
        assert first.wait(30) == 75
    assert [entry.step for entry in read_history(trips).entries] == ["open", "close"]


def test_a_sleeper_that_nobody_followed_goes_on(trips: Pipeline) -> None:
    with held_by(trips.lake) as holder:
        assert tell(holder, "prepare") == "done"
        stop(holder)
        time.sleep(valid_seconds() * 1.5)
        os.kill(holder.pid, signal.SIGCONT)
        assert [tell(holder, step) for step in ("check", "append", "record")] == ["done"] * 3
        assert end(holder) == 0
    assert note_of(trips).state is State.FREE


def test_a_commit_that_came_before_the_fence_stays(trips: Pipeline) -> None:
    """As any interrupted step leaves it."""
    before = versions(trips)
    with held_by(trips.lake) as first:
        assert [tell(first, step) for step in ("prepare", "append")] == ["done"] * 2
        first.kill()
        first.wait()
        with held_here(trips):
            assert versions(trips)["hourly"] == before["hourly"] + 2


def test_a_fence_that_is_interrupted_is_written_by_the_next_one(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = versions(trips)
    with held_by(trips.lake) as first:
        first.kill()
        first.wait()

    def die(names: Iterable[Location]) -> None:
        fence.fence_tables(names)
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(fencing, "fence_tables", die)
        with pytest.raises(KeyboardInterrupt), held_here(trips):
            pass
    assert (note_of(trips).epoch, note_of(trips).state) == (3, State.BROKEN)
    assert versions(trips) == {**before, LEDGER: before[LEDGER] + 1}
    with held_here(trips):
        assert note_of(trips).epoch == 4
        assert versions(trips) == {LEDGER: before[LEDGER] + 2, "hourly": before["hourly"] + 1}


def test_tables_of_others_are_not_fenced(trips: Pipeline) -> None:
    plain_table.create(trips.table("other"), COLUMNS, {})
    with held_by(trips.lake) as first:
        first.kill()
        first.wait()
    with held_here(trips):
        assert newest_version(trips.table("other")) == 0


def test_what_an_ingest_keeps_is_fenced_by_whoever_takes_it_over(trips: Pipeline) -> None:
    """A sleeper would store the broken records of a batch that has been voided since."""
    keeper = keeper_of(trips)
    names = (FILES, QUARANTINE)
    with held_here(keeper):
        for name in names:
            plain_table.create(keeper.table(name), COLUMNS, {})
    with held_here(keeper):
        assert [newest_version(keeper.table(name)) for name in names] == [0, 0]
    with pytest.raises(Busy, match="it was taken over by"), held_here(keeper):
        opened = [plain_table.find_plain(keeper.table(name)) for name in names]
        lease = lease_of(keeper)
        found = lease.read()
        assert found.note is not None
        assert lease.write(found.note.ended(State.BROKEN), found) is not None
        take_lease(lease).give_back(State.FREE)
        for table in opened:
            assert table is not None
            with pytest.raises(Busy, match="another writer committed first"):
                plain_table.append(table, ROWS)
        raise ValueError("made up")
    assert [newest_version(keeper.table(name)) for name in names] == [1, 1]


def test_an_error_in_the_code_leaves_a_lease_behind_which_is_fenced(trips: Pipeline) -> None:
    """What the JVM was asked for may still be at work; after an error of ours nothing is."""
    with held_by(trips.lake) as first:
        assert "made up" in tell(first, "fail")
        assert first.wait(30) == 1
    assert note_of(trips).state is State.BROKEN
    with pytest.raises(StateRefused), held_here(trips):
        raise StateRefused("TABLE_LOST", "made up")
    assert note_of(trips).state is State.FREE


@pytest.mark.parametrize("fault", [Fault.UNANSWERED, Fault.LOST, Fault.REFUSED])
def test_a_renewal_whose_answer_is_lost_is_no_lost_lease(
    fault: Fault, trips_on_s3: Pipeline, s3_proxy: FaultyProxy
) -> None:
    with held_here(trips_on_s3):
        s3_proxy.plan(Planned(fault, PUTS, times=None, every=2))
        for _ in range(8):
            time.sleep(valid_seconds() / 4)
            check_permission()
        assert s3_proxy.counts["PUT"] >= 4
        s3_proxy.plan()
        assert note_of(trips_on_s3).renewals >= 3
    assert (note_of(trips_on_s3).epoch, note_of(trips_on_s3).state) == (2, State.FREE)


def test_credentials_that_expire_in_between_are_a_sentence(
    trips_on_s3: Pipeline, s3_proxy: FaultyProxy
) -> None:
    with pytest.raises(Busy) as lost, held_here(trips_on_s3):
        s3_proxy.plan(Planned(Fault.EXPIRED, times=None))
        check_permission()
        time.sleep(valid_seconds() * 1.3)
        check_permission()
    said = str(lost.value)
    assert said.startswith(
        f"trips: this process has lost {trips_on_s3.root}/_lock, because it could "
    )
    renewed = r"not renew it for \d+ s: the credentials have expired; renew them; the next command "
    assert re.search(renewed, said)
    assert KEYS.secret not in said
    s3_proxy.plan()
    # Its process has not ended, so nobody else can know that it is not at work. It gives the lease
    # back as soon as that is possible again.
    time.sleep(valid_seconds())
    assert note_of(trips_on_s3).state is State.FREE


def test_a_command_ends_with_a_sentence_when_credentials_expire(
    trips_on_s3: Pipeline, s3_proxy: FaultyProxy
) -> None:
    with held_by(trips_on_s3.lake) as holder:
        assert tell(holder, "prepare") == "done"
        s3_proxy.plan(Planned(Fault.EXPIRED, times=None))
        said = tell(holder, "append")
        assert "the credentials have expired" in said
        assert KEYS.secret not in said
        assert "TABLE_CHANGED" not in said
        assert holder.wait(30) in (1, 75)


def break_by_hand(trips: Pipeline) -> None:
    """Until it wins, because the holder may renew the lease in between."""
    lease, written = lease_of(trips), None
    while written is None:
        found = lease.read()
        assert found.note is not None
        written = lease.write(found.note.ended(State.BROKEN), found)


def test_a_lease_that_was_broken_by_hand_is_lost(trips: Pipeline) -> None:
    with held_by(trips.lake) as holder:
        break_by_hand(trips)
        said = tell(holder, "append")
        assert holder.wait(30) == 75
    assert "_lock, because another process has broken it; the next command finishes" in said


def test_what_fails_after_the_lease_was_lost_is_told_as_that(trips: Pipeline) -> None:
    """As where Spark's commit is refused before this process has noticed anything."""
    for error in (StateRefused("TABLE_CHANGED", "made up"), ValueError("made up")):
        with pytest.raises(Busy, match="because another process has broken it"), held_here(trips):
            break_by_hand(trips)
            raise error


def test_a_local_lake_has_no_lease(tmp_path: Path) -> None:
    pipeline = load_pipeline(describe_trips(Location(str(tmp_path))))
    pipeline.root.local.mkdir(parents=True)
    with held_here(pipeline):
        check_permission()
        assert b"epoch" not in (pipeline.root.local / "_lock").read_bytes()
