"""`doctor` says who holds a lock on shared storage, and `--break-lock` ends it without a JVM."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import main
from jobs.landing.look import keeper_of
from jobs.locking.lease_note import State
from jobs.locking.lease_object import VARIABLE
from jobs.locking.lock_file import held_here
from tests.jobs.cli.test_confirm import answered
from tests.support.hourly_trips import SPEC
from tests.support.leased_process import describe_trips, end, held_by, note_of, tell
from windowing.location import Location
from windowing.spec.load import load_pipeline


@pytest.fixture
def spec(shared_home: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spec whose lake is on shared storage; its leases are long."""
    monkeypatch.setenv(VARIABLE, "600")
    # JSON is YAML.
    (tmp_path / "trips.yaml").write_text(json.dumps(describe_trips(shared_home)))
    return tmp_path / "trips.yaml"


def break_lock(spec: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["doctor", str(spec), "--break-lock", *words])


def test_the_next_command_goes_on_and_the_holder_can_not(spec: Path, shared_home: Location) -> None:
    trips = load_pipeline(spec)
    with held_by(shared_home) as holder:
        done = break_lock(spec, "--yes")
        assert (done.exit_code, done.stderr) == (0, "")
        named = f"trips: the lock of `leased_process.py`, process {holder.pid} on "
        assert done.stdout.startswith(named)
        assert done.stdout.endswith(", epoch 1 is broken\n")
        assert note_of(trips).state is State.BROKEN
        with held_here(trips):
            assert note_of(trips).epoch == 2
            assert tell(holder, "record") != "done"
            assert holder.wait(30) != 0


def test_the_lock_of_an_ingest_is_broken_where_the_pipeline_is_free(
    spec: Path, shared_home: Location
) -> None:
    described = json.loads(spec.read_text())
    described["source"]["files"] = {"folder": str(spec.parent), "format": "csv"}
    spec.write_text(json.dumps(described))
    keeper = keeper_of(load_pipeline(spec))
    with held_here(keeper):
        done = break_lock(spec, "--yes")
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.startswith("trips: the lock on the ingest of `")
        assert note_of(keeper).state is State.BROKEN
    assert break_lock(spec).stdout == "trips: nobody holds the lock\n"


def test_whoever_does_not_say_yes_leaves_it(spec: Path, shared_home: Location) -> None:
    trips = load_pipeline(spec)
    with held_by(shared_home) as holder:
        code, out, err = answered(spec.parent, b"n\n", "doctor", spec.name, "--break-lock")
        assert (code, out) == (1, "")
        assert f"Break the lock of `leased_process.py`, process {holder.pid} on " in err
        assert err.endswith("tidemark: the lock stays as it is\n")
        unasked = break_lock(spec)
        assert unasked.exit_code == 2
        assert "there is no terminal to ask on: give --yes" in unasked.stderr
        assert note_of(trips).state is State.HELD
        assert end(holder) == 0


def test_what_nobody_holds_is_not_broken(spec: Path, shared_home: Location) -> None:
    for expected in (None, State.FREE):
        done = break_lock(spec, "--json")
        assert json.loads(done.stdout) == {"pipeline": "trips", "broken": False, "lock": None}
        if expected is None:
            with held_here(load_pipeline(spec)):
                pass
    assert note_of(load_pipeline(spec)).state is State.FREE


def test_a_diagnosis_says_who_holds_the_lock(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that nobody held when it began may be taken meanwhile."""
    monkeypatch.setattr("jobs.cli.doctor.open_to_write", lambda *_: None)
    monkeypatch.setattr("jobs.doctor.diagnose", lambda *_: ())
    with held_here(load_pipeline(spec)):
        held = CliRunner().invoke(main, ["doctor", str(spec)])
    free = CliRunner().invoke(main, ["doctor", str(spec)])
    named = f"process {os.getpid()} on "
    assert ["the lock is held by `" in held.stdout, named in held.stdout] == [True, True]
    assert "the lock is free" not in held.stdout
    assert ["the lock is free; last held by `" in free.stdout, named in free.stdout] == [True, True]


def test_a_lock_of_the_system_is_not_broken(tmp_path: Path) -> None:
    (tmp_path / "trips.yaml").write_text(SPEC)
    done = break_lock(tmp_path / "trips.yaml", "--yes")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is one of this machine's system, and is free as soon as its process" in done.stderr
