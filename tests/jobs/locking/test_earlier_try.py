"""The next try of a task ends the try that its scheduler has lost, and nobody else."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.cli.main import main
from jobs.locking import running_process
from jobs.locking.attempt import VARIABLE, Attempt, parse_attempt
from jobs.locking.lock_file import held_here, lock_path, probe
from tests.support.hourly_trips import SPEC
from windowing.errors import Busy, UsageError
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline

HOLD = """
import signal
import sys
from jobs.locking.lock_file import held_here
from windowing.spec.load import load_pipeline
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with held_here(load_pipeline(sys.argv[1])):
    if "free" not in sys.argv:
        print("held", flush=True)
        input()
print("held", flush=True)
input()
"""
RUN = "trips/scheduled__2026-03-02T00:00:00+00:00/run"


@pytest.fixture
def trips(tmp_path: Path) -> Pipeline:
    """A pipeline whose directory is there."""
    (tmp_path / "trips.yaml").write_text(SPEC)
    pipeline = load_pipeline(tmp_path / "trips.yaml")
    lock_path(pipeline).parent.mkdir(parents=True)
    return pipeline


@contextmanager
def held_by(trips: Pipeline, attempt: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Inside, a process that is this attempt holds the lock."""
    command = [sys.executable, "-c", HOLD, str(trips.file), *words]
    environ = {**os.environ, VARIABLE: attempt}
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def note(trips: Pipeline, **differing: object) -> None:
    """The file says that of its holder and its holder's process."""
    path = lock_path(trips)
    named = json.loads(path.read_bytes())
    named["processes"] = [{**process, **differing} for process in named["processes"]]
    path.write_text(json.dumps(named))


def is_alive(process: "subprocess.Popen[str]") -> bool:
    return process.poll() is None


def test_the_next_try_ends_the_lost_one_and_gets_the_lock(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, f"{RUN}#3")
    with held_by(trips, f"{RUN}#1") as lost:
        ended = probe(trips)
        assert lost.wait(10) == -signal.SIGTERM
        assert ended is not None
        assert (ended.process, ended.attempt) == (lost.pid, Attempt(RUN, 1))
        with held_here(trips):
            pass


def test_it_is_ended_where_it_holds_the_lock_only_at_times(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a backfill does."""
    monkeypatch.setenv(VARIABLE, f"{RUN}#2")
    with held_by(trips, f"{RUN}#1", "free") as lost:
        assert probe(trips) is not None
        assert lost.wait(10) == -signal.SIGTERM


def test_one_that_has_ended_is_not_said_to_be(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, f"{RUN}#2")
    with held_by(trips, f"{RUN}#1") as failed:
        failed.communicate("\n\n")
    assert probe(trips) is None


def test_a_command_says_what_it_has_ended(trips: Pipeline) -> None:
    with held_by(trips, f"{RUN}#1") as lost:
        done = CliRunner().invoke(
            main, ["publish", str(trips.file), "--json"], env={VARIABLE: f"{RUN}#2"}
        )
        assert lost.wait(10) == -signal.SIGTERM
    assert done.exit_code == 0, done.stderr
    first = done.stderr.splitlines()[0]
    assert first.startswith(f"tidemark: trips: ended `-c`, process {lost.pid} on ")
    assert first.endswith(
        f", try 1 of {RUN}; this is the next try of the same task, and finishes what was left"
    )


OTHERS = {
    "the same try": f"{RUN}#2",
    "an earlier try": f"{RUN}#1",
    "another run": "trips/manual__1/run#3",
    "another task": f"{RUN}s#3",
    "nobody": "",
}


def test_nobody_else_ends_it(trips: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    with held_by(trips, f"{RUN}#2") as holder:
        for other, attempt in OTHERS.items():
            monkeypatch.setenv(VARIABLE, attempt)
            with pytest.raises(Busy, match=rf"try 2 of {re.escape(RUN)}; try again when"):
                probe(trips)
            assert is_alive(holder), other


def test_a_holder_that_is_no_try_is_not_ended(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, f"{RUN}#2")
    with held_by(trips, "") as by_hand:
        with pytest.raises(Busy):
            probe(trips)
        assert is_alive(by_hand)


def test_a_process_that_the_file_does_not_mean_is_not_ended(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, f"{RUN}#2")
    with held_by(trips, f"{RUN}#1") as holder:
        before = lock_path(trips).read_bytes()
        for differing in ({"started": 1}, {"system": "another machine pid:[1]"}):
            lock_path(trips).write_bytes(before)
            note(trips, **differing)
            with pytest.raises(Busy):
                probe(trips)
            assert is_alive(holder), differing


def test_a_process_that_has_not_locked_the_file_is_not_ended(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while a holder has not yet written its name over that of the one before it."""
    monkeypatch.setenv(VARIABLE, f"{RUN}#2")
    with (
        held_by(trips, f"{RUN}#1"),
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as before,
    ):
        found = running_process.find_process(before.pid)
        assert found is not None
        note(trips, **asdict(found))
        with pytest.raises(Busy):
            probe(trips)
        assert before.poll() is None
        before.communicate()


def test_one_that_does_not_end_by_itself_is_killed(
    trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(running_process.ENDING_SECONDS, signal.SIGTERM, 0.5)
    monkeypatch.setenv(VARIABLE, f"{RUN}#2")
    with held_by(trips, f"{RUN}#1", "deaf") as lost:
        assert probe(trips) is not None
        assert lost.wait(10) == -signal.SIGKILL


@pytest.mark.parametrize("text", ["run", "run#", "#1", "run#0", "run#-1", "run#1.5", "run#²"])
def test_a_variable_that_names_no_try_is_refused(
    text: str, trips: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parse_attempt(text) is None
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(UsageError, match=r"it names a task and which try of it this is"):
        probe(trips)
    with pytest.raises(UsageError), held_here(trips):
        pass


def test_of_two_processes_the_first_is_asked_and_both_have_ended() -> None:
    """As of a command and its JVM, which ends once its input is closed."""
    reads = "import sys; sys.stdin.read()"
    starts = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {reads!r}], "
    starts += "stdin=subprocess.PIPE); print(p.pid, flush=True); p.wait()"
    with subprocess.Popen([sys.executable, "-c", starts], stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        second = int(first.stdout.readline())
        watched = os.pidfd_open(second)
        both = [running_process.find_process(pid) for pid in (first.pid, second)]
        assert running_process.end_processes([process for process in both if process is not None])
        assert first.wait(10) == -signal.SIGTERM
        assert select.select([watched], [], [], 0)[0]
        os.close(watched)


def test_where_the_first_has_ended_the_others_go_on() -> None:
    """As the JVM of an engine does, which may serve another command by then."""
    waits = [sys.executable, "-c", "input()"]
    with (
        subprocess.Popen(waits, stdin=subprocess.PIPE) as first,
        subprocess.Popen(waits, stdin=subprocess.PIPE) as second,
    ):
        found = [running_process.find_process(each.pid) for each in (first, second)]
        both = [process for process in found if process is not None]
        assert len(both) == 2
        first.communicate()
        assert running_process.find_process(first.pid) is None
        assert not running_process.end_processes(both)
        assert second.poll() is None
        second.communicate()
