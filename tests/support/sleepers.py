"""Runs on shared storage that are stopped, and what they do when another one has taken over."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass

from tests.oracle import Event
from tests.support.long_lived_pipeline import Life
from tests.support.pipeline_under_test import Lab
from windowing.storage.store import store_of

AFTER_ALL = ("run.closed", "ledger.compacted")
"""Behind these places, the last of a run, there is nothing left to refuse."""
PLACES = range(1, 21)
"""Those that a run of few rows passes on shared storage, by number."""
COMMIT = re.compile(r"/_delta_log/\d{20}\.json$")
_PASSING = re.compile(r"^_lock|(^|/)\.[^/]+$")
_PATIENCE = 300.0


@dataclass(frozen=True)
class Sleeper:
    """A run that was stopped with its JVM at a place."""

    process: "subprocess.Popen[str]"
    place: str
    jvm: int

    def wake(self) -> None:
        """It goes on."""
        os.kill(self.jvm, signal.SIGCONT)
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """It ends as on a machine that is lost; nothing is done where it has ended before."""
        if self.process.poll() is not None:
            return
        os.kill(self.jvm, signal.SIGKILL)
        self.process.kill()
        self.process.communicate(timeout=_PATIENCE)

    def end(self) -> tuple[int, str]:
        """Its exit code, and what it has said, once it has ended by itself."""
        said, _ = self.process.communicate(timeout=_PATIENCE)
        return self.process.returncode, said


def start_sleeper(lab: Lab, nth: int, lease_seconds: float) -> Sleeper | None:
    """A run in a process of its own that was stopped at the nth place.

    None if it has passed fewer, and has ended well.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.sleeping_process", json.dumps(lab.spec()), str(nth)],
        env={**os.environ, "TIDEMARK_LEASE_SECONDS": f"{lease_seconds:g}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    stopped = process.stdout.readline().split()
    if not stopped:
        assert process.wait(_PATIENCE) == 0
        return None
    place, jvm = stopped
    os.waitpid(process.pid, os.WUNTRACED)
    return Sleeper(process, place, int(jvm))


def finish_another(life: Life, events: list[Event]) -> None:
    """Another run finishes what the sleeper began with the events; all tables are the oracle's."""
    life.lab.go()
    life.lab.truth.run(events, life.lab.truth.arrival)
    life.check()


def wake_up_behind_another(life: Life, sleeper: Sleeper, events: list[Event]) -> int:
    """Another run finishes and maintains, then the sleeper goes on, and changes nothing.

    It commits no version and deletes no file; its exit code.
    """
    try:
        finish_another(life, events)
        life.lab.maintain()
        found = list_files(life)
    finally:
        sleeper.wake()
    code, said = sleeper.end()
    print(f"stopped at {sleeper.place}: {code} {said}")
    assert code in ((0,) if sleeper.place in AFTER_ALL else (4, 75)), (sleeper.place, code, said)
    after = list_files(life)
    gone = found - after
    assert not gone, f"{sleeper.place}: {sorted(gone)} were deleted"
    new = {name for name in after - found if COMMIT.search(name)}
    assert not new, f"{sleeper.place}: {sorted(new)} were committed"
    life.check()
    return code


def list_files(life: Life) -> set[str]:
    """The files of the pipeline but its lock, which is renewed, and drafts of files."""
    root = life.lab.pipeline.root
    return {name for name in store_of(root).list_files(root) if not _PASSING.search(name)}
