"""Rounds on S3 or HDFS: a run sleeps, is killed, or loses its server, and another one takes over.

    python -m tests.torture.on_shared_storage s3|hdfs [--minutes 60] [--home build/torture]

In each round a run of a process with a JVM of its own is stopped at one of the places that it
passes. Then it sleeps while another one finishes and maintains, and wakes up; or it is killed with
its JVM; or the server is killed, it goes on without, and the server comes back. After each round
all tables are those of plain loops. The first difference ends it. In time every place meets each of
the three. What was done is kept, and the next torture goes on from there with a new lake.
"""

import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from jobs.session import spark_session
from tests.conftest import SETTINGS
from tests.oracle import Event
from tests.support.hdfs_server import started_hdfs_server
from tests.support.long_lived_pipeline import Life
from tests.support.s3_server import started_s3_server
from tests.support.s3_session import session_on_s3
from tests.support.shared_storage import LEASES, SharedStorage
from tests.support.sleepers import (
    AFTER_ALL,
    PLACES,
    Sleeper,
    finish_another,
    start_sleeper,
    wake_up_behind_another,
)
from tests.torture.rounds import ROOT
from tests.torture.tally import Tally, load_tally, show_tally

LIFE = 40
"""Rounds after which a lake is given up for a new one, so that comparing stays quick."""


@dataclass(frozen=True)
class Torture:
    """A pipeline on a storage, and what was done to it so far."""

    storage: SharedStorage
    life: Life
    tally: Tally

    def sleep(self, sleeper: Sleeper, events: list[Event]) -> None:
        """It sleeps while another one finishes and maintains; then it changes nothing."""
        code = wake_up_behind_another(self.life, sleeper, events)
        self.tally.done[f"slept, exit code {code}"] += 1

    def kill(self, sleeper: Sleeper, events: list[Event]) -> None:
        """It is killed with its JVM, and another one finishes."""
        sleeper.kill()
        finish_another(self.life, events)
        self.tally.done["killed"] += 1

    def lose_server(self, sleeper: Sleeper, events: list[Event]) -> None:
        """The server is killed; it ends without one, and another one finishes."""
        self.storage.server.kill()
        try:
            sleeper.wake()
            code, said = sleeper.end()
        finally:
            self.storage.server.start()
        print(f"without a server at {sleeper.place}: {code} {said}")
        assert code != 0 or sleeper.place in AFTER_ALL, (sleeper.place, code, said)
        finish_another(self.life, events)
        self.tally.done[f"without a server, exit code {code}"] += 1

    def play(self, deed: str, nth: int) -> None:
        """One round."""
        deeds: dict[str, Callable[[Sleeper, list[Event]], None]] = {
            "sleep": self.sleep,
            "kill": self.kill,
            "lose_server": self.lose_server,
        }
        events = self.life.lab.land(self.life.batch())
        sleeper = start_sleeper(self.life.lab, nth, self.storage.lease_seconds)
        if sleeper is None:
            finish_another(self.life, events)
            self.tally.done["passed fewer places"] += 1
            return
        try:
            deeds[deed](sleeper, events)
        except BaseException:
            # A run that is stopped would stay for ever.
            sleeper.kill()
            raise
        self.tally.kills[f"{deed} {sleeper.place}"] += 1


COMBINATIONS = list(product(("sleep", "kill", "lose_server"), PLACES))


def plan_round(n: int, seed: str) -> tuple[str, int]:
    """What is done in round `n`, and at which place: in time all of both."""
    order = Random(seed).sample(COMBINATIONS, len(COMBINATIONS))
    return order[n % len(order)]


def list_played(tally: Tally) -> set[tuple[str, int]]:
    """What its rounds have done, by deed and number of the place."""
    return {plan_round(n, tally.seed) for n in range(tally.rounds)}


@contextmanager
def started_storage(kind: str, home: Path) -> Iterator[SharedStorage]:
    """Inside, a server and a session."""
    if kind == "hdfs":
        with started_hdfs_server(home) as hdfs:
            session = spark_session("tortures", **SETTINGS)
            yield SharedStorage(kind, hdfs, session)
            session.stop()
        return
    with started_s3_server(home) as s3, session_on_s3(s3) as session:
        yield SharedStorage(kind, s3, session)


def play(storage: SharedStorage, tally: Tally, home: Path, until: float) -> None:
    """Rounds until that moment of the monotonic clock."""
    began, before, first = time.monotonic(), tally.seconds, tally.rounds
    torture: Torture | None = None
    while time.monotonic() < until:
        if torture is None or (tally.rounds - first) % LIFE == 0:
            rng = Random(f"{tally.seed}:{tally.rounds}")
            torture = Torture(storage, storage.make_life(rng), tally)
            torture.life.run()
        torture.play(*plan_round(tally.rounds, tally.seed))
        tally.rounds += 1
        tally.seconds = before + time.monotonic() - began
        tally.save(home)
        print(f"{tally.rounds} rounds, {dict(tally.done)}", file=sys.stderr, flush=True)


def main() -> None:
    """Tortures until the time is up, or until a difference was found."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("store", choices=LEASES)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--home", type=Path, default=ROOT / "build" / "torture")
    asked = parser.parse_args()
    # What it has started ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    home = asked.home / asked.store
    tally, until = load_tally(home), time.monotonic() + asked.minutes * 60
    with (
        TemporaryDirectory(prefix="tidemark-torture-") as files,
        started_storage(asked.store, Path(files)) as storage,
    ):
        try:
            play(storage, tally, home, until)
        finally:
            show_tally(tally, len(list_played(tally)), len(COMBINATIONS))


if __name__ == "__main__":
    main()
