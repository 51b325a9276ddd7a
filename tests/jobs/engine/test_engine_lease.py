"""A command of the engine that could not give its lease back is no holder at work any more."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.locking.lease_note import State
from jobs.locking.lease_object import VARIABLE
from jobs.locking.lock_file import held_here, probe
from tests.support.engine_lab import PATIENCE, Lab, eventually, is_alive, started_lab
from tests.support.faulty_proxy import Fault, FaultyProxy, Planned
from tests.support.leased_process import describe_trips, note_of
from windowing.errors import Busy
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline


@pytest.fixture
def trips(s3_home: Location, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """A pipeline whose lease is valid for longer than the test takes."""
    monkeypatch.setenv(VARIABLE, "60")
    return load_pipeline(describe_trips(s3_home))


@pytest.fixture
def lab(trips: Pipeline, tmp_path: Path) -> Iterator[Lab]:
    with started_lab(tmp_path) as lab:
        yield lab


def hold(lab: Lab, trips: Pipeline) -> "tuple[Path, subprocess.Popen[str]]":
    """A file, until whose end a command has the lease, and its client."""
    mark = lab.home / "mark"
    client = lab.start("ask", "run", "lease", json.dumps(describe_trips(trips.lake)), str(mark))
    eventually(lambda: mark.exists() and mark.read_text() != "")
    with pytest.raises(Busy):
        probe(trips)
    return mark, client


def test_what_the_engine_keeps_ends_with_a_command_that_keeps_its_lease(
    lab: Lab, trips: Pipeline, s3_proxy: FaultyProxy
) -> None:
    lab.engine()
    before = lab.kept()
    mark, client = hold(lab, trips)
    s3_proxy.plan(Planned(Fault.LOST, times=None))
    mark.unlink()
    assert client.wait(PATIENCE) == 0
    s3_proxy.plan()
    assert note_of(trips).state is State.HELD
    assert not is_alive(before)
    began = time.monotonic()
    assert probe(trips) is None
    with held_here(trips):
        assert (note_of(trips).epoch, note_of(trips).state) == (2, State.HELD)
    assert time.monotonic() - began < PATIENCE


def test_what_the_engine_keeps_stays_after_a_command_that_gives_its_lease_back(
    lab: Lab, trips: Pipeline
) -> None:
    lab.engine()
    before = lab.kept()
    mark, client = hold(lab, trips)
    mark.unlink()
    assert client.wait(PATIENCE) == 0
    assert note_of(trips).state is State.FREE
    assert lab.kept() == before
