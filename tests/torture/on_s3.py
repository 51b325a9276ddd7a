"""Rounds on S3: a run sleeps, is killed, or loses its server, and another one takes over.

    python -m tests.torture.on_s3 [--minutes 60] [--home build/torture-s3] [--seed 7]

Each round a run of a process with a JVM of its own is stopped at a random one of the places that it
passes. Then, by turns, it sleeps while another one finishes and maintains, and wakes up; or it is
killed with its JVM; or the server is killed, it goes on without, and the server comes back. After
each round all tables are those of plain loops. The first difference ends it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.oracle import Event
from tests.support.long_lived_pipeline import MINUTE, WINDOWS, Life
from tests.support.pipeline_under_test import FEW, Lab
from tests.support.s3_server import S3Server, started_s3_server
from tests.support.s3_session import session_on_s3
from tests.support.sleeping_process import started_sleeper
from tests.torture.rounds import ROOT
from windowing.location import Location
from windowing.storage.store import store_of

PLACES = 22
"""More than a run of few rows passes; one that is stopped nowhere just runs."""
AFTER_ALL = "run.closed"
PATIENCE = 300


@dataclass
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
        """It ends as a lost machine does."""
        os.kill(self.jvm, signal.SIGKILL)
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)

    def end(self) -> tuple[int, str]:
        """Its exit code, and what it said."""
        said, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said


@dataclass
class Torture:
    """A pipeline on a server, and what was done to it."""

    server: S3Server
    life: Life
    done: Counter[str] = field(default_factory=Counter)

    def finish(self, events: list[Event]) -> None:
        """Another run finishes, and all tables are what they must be."""
        self.life.lab.go()
        self.life.lab.truth.run(events, self.life.lab.truth.arrival)
        self.life.check()

    def sleep(self, sleeper: Sleeper, events: list[Event]) -> None:
        """It sleeps while another one finishes and maintains; then it changes nothing."""
        try:
            self.finish(events)
            self.life.lab.maintain()
            found = self.list_objects()
        finally:
            sleeper.wake()
        code, said = sleeper.end()
        expected = (0,) if sleeper.place == AFTER_ALL else (4, 75)
        assert code in expected, f"{sleeper.place}: {code} {said}"
        lost = found - self.list_objects()
        assert not lost, f"{sleeper.place}: {sorted(lost)} were deleted"
        assert not commits(self.list_objects() - found), f"{sleeper.place}: committed"
        self.done[f"exit code {code}"] += 1

    def kill(self, sleeper: Sleeper, events: list[Event]) -> None:
        """It is killed, and another one finishes."""
        sleeper.kill()
        self.finish(events)

    def lose_server(self, sleeper: Sleeper, events: list[Event]) -> None:
        """The server is killed; it ends without one, and another one finishes."""
        self.server.kill()
        sleeper.wake()
        code, said = sleeper.end()
        self.server.start()
        assert code != 0 or sleeper.place == AFTER_ALL, f"{sleeper.place}: {code} {said}"
        self.done[f"exit code {code} without a server"] += 1
        self.finish(events)

    def list_objects(self) -> set[str]:
        """All objects of the pipeline but its lock."""
        root = self.life.lab.pipeline.root
        return {name for name in store_of(root).list_files(root) if name != "_lock"}

    def play(self, n: int, rng: Random) -> None:
        """One round."""
        kinds: tuple[Callable[[Sleeper, list[Event]], None], ...] = (
            self.sleep,
            self.kill,
            self.lose_server,
        )
        play, nth = kinds[n % len(kinds)], rng.randint(1, PLACES)
        events = self.life.lab.land(self.life.batch())
        process = started_sleeper(self.life.lab.spec(), nth)
        assert process.stdout is not None
        stopped = process.stdout.readline().split()
        if len(stopped) != 2:
            assert process.wait(PATIENCE) == 0, stopped
            self.finish(events)
            self.done["not stopped"] += 1
            return
        os.waitpid(process.pid, os.WUNTRACED)
        play(Sleeper(process, stopped[0], int(stopped[1])), events)
        self.done[play.__name__] += 1
        self.life.run()


def commits(names: set[str]) -> set[str]:
    """Those that are versions of tables."""
    return {name for name in names if "/_delta_log/" in name and name.endswith(".json")}


def main() -> None:
    """Tortures until the time is up, or until a difference was found."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--home", type=Path, default=ROOT / "build" / "torture-s3")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    asked = parser.parse_args()
    home = asked.home / str(asked.seed)
    home.mkdir(parents=True)
    rng, until = Random(asked.seed), time.monotonic() + asked.minutes * 60
    with started_s3_server(home) as server, session_on_s3(server) as session:
        place = Location(f"s3://{server.make_bucket()}/lakes")
        lab = Lab(session, place, WINDOWS[:2], lateness=240 * MINUTE, delay=10 * MINUTE, shows=FEW)
        torture = Torture(server, Life(lab, rng))
        torture.life.run()
        rounds = 0
        while time.monotonic() < until:
            torture.play(rounds, rng)
            rounds += 1
            said = json.dumps(torture.done)
            print(f"seed {asked.seed}: {rounds} rounds, {said}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
