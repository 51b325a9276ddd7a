"""A pipeline that is ended, damaged and repaired.

An oracle beside it lives on as if nothing had happened.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

import pytest

from tests.oracle import Count, Event, Session, Sliding
from tests.support.pipeline_under_test import ARRIVAL, SECOND, Lab, us
from tests.support.stored_rows import list_stored
from windowing.crash import armed
from windowing.grid.zone import micros
from windowing.ledger.rule import COUNTS
from windowing.ledger.table import WATERMARKS, read_history
from windowing.storage import delta, delta_log

MINUTE = 60 * SECOND
BASE = us("2026-01-05T00:00:00")
WINDOWS = (
    Sliding("rolling", 60 * MINUTE, 20 * MINUTE, emit="changes"),
    Session("visits", 10 * MINUTE, emit="on_close"),
    Count("pairs", 2),
)


class Crash(Exception):
    """What ends a step."""


@dataclass
class Crasher:
    """Ends the process, as far as the pipeline can tell.

    It ends when it comes to `place` for the `nth` time, in whatever thread.
    """

    place: str
    nth: int = 1
    seen: int = 0
    turn: Lock = field(default_factory=Lock)

    def __call__(self, name: str) -> None:
        if name != self.place:
            return
        with self.turn:
            self.seen += 1
            due = self.seen == self.nth
        if due:
            raise Crash(name)


def ends_at(crasher: Crasher, step: Callable[[], object]) -> None:
    """The step ends at the crasher's place."""
    with armed(crasher), pytest.raises(Crash, match=crasher.place):
        step()


@dataclass
class Life:
    """A pipeline whose runs crash, beside an oracle whose runs do not."""

    lab: Lab
    rng: Random = field(default_factory=lambda: Random(7))
    runs: int = 0
    batches: list[list[Event]] = field(default_factory=list)

    @property
    def root(self) -> Path:
        """Where state, outputs and ledger lie."""
        return self.lab.pipeline.root.local

    def batch(self) -> list[Event]:
        """Events around the newest one, early and late ones, a copy, one that no run can read."""
        self.runs += 1
        middle = BASE + self.runs * 30 * MINUTE
        new = [
            Event(
                self.rng.choice("ab"),
                middle + self.rng.randrange(-90, 30) * MINUTE,
                1,
                f"e{self.runs}-{n}",
                n,
            )
            for n in range(4)
        ]
        bad = Event("a", None, 1, f"bad{self.runs}")
        return [*new, bad, *([self.rng.choice(self.lab.landed)] if self.lab.landed else [])]

    def land(self) -> list[Event]:
        """A batch in the source and in the oracle, not yet run."""
        events = self.lab.land(self.batch())
        self.batches.append(events)
        self.lab.truth.run(events, ARRIVAL)
        return events

    def step(self) -> None:
        """One batch and its run; nothing is compared."""
        self.land()
        self.lab.go()

    def run(self, *crashers: Crasher) -> None:
        """One batch, whose run ends at each crasher in turn before it comes to its end."""
        events = self.lab.land(self.batch())
        for crasher in crashers:
            ends_at(crasher, self.lab.go)
        self.lab.go()
        self.lab.truth.run(events, ARRIVAL)
        self.check()

    def backfill(self, *crashers: Crasher) -> None:
        """A backfill that ends at each crasher in turn and is asked for again."""
        start = BASE + self.rng.randrange(self.runs * 30) * MINUTE
        for crasher in crashers:
            ends_at(crasher, lambda: self.lab.backfill(start, start + 90 * MINUTE))
        self.lab.backfill(start, start + 90 * MINUTE)
        self.check()

    def check(self) -> None:
        """Tables, refused rows, watermark and the sums of the ledger are the oracle's."""
        self.lab.check()
        check_records(self.lab)

    def leave_killed_write(self, table: str, text: str = "") -> Path:
        """What is left where a process was killed while Spark wrote `text` for a table."""
        staged = self.lab.pipeline.table(table).local / "staged-0"
        attempt = staged / "_temporary" / "0" / "_temporary" / "attempt_0"
        attempt.mkdir(parents=True)
        (attempt / "part-0.parquet").write_text(text)
        return staged

    def copy(self, name: str) -> Path:
        """A copy of all that lies there now."""
        return Path(shutil.copytree(self.root, self.lab.root / name))

    def put_back(self, kept: Path, *names: str) -> None:
        """Tables or the ledger as they were in a copy; without names everything.

        What was not there then goes.
        """
        for name in names or (".",):
            _replace(self.root / name, kept / name)
        self.forget()

    def forget(self) -> None:
        """The JVM looks at every table anew."""
        delta_log.forget_all(self.lab.spark)


def check_records(lab: Lab) -> None:
    """Refused rows, watermarks and the sums of the ledger are the oracle's."""
    truth, past = lab.truth, read_history(lab.pipeline)
    assert past.watermark == truth.watermark
    assert past.open_run is None
    outcomes = [outcome for _, outcome in truth.outcomes]
    done = {(e.run, e.batch): e for e in past.entries if e.step == "done"}.values()
    counts = {name: sum(e.counts.get(name, 0) for e in done) for name in COUNTS}
    assert counts == {"read": len(outcomes)} | {
        name: outcomes.count(name) for name in COUNTS if name != "read"
    }
    for table, outcome in (("_quarantine", "quarantined"), ("_duplicates", "duplicate")):
        assert len(_stored(lab, table)) == outcomes.count(outcome)
    marks = sorted(_stored(lab, WATERMARKS), key=lambda row: row["run"])
    assert [row["run"] for row in marks] == list(range(1, past.last_run + 1))
    last, closed = marks[-1], past.closed
    mark = last["watermark"]
    assert truth.watermark == (None if mark is None else micros(mark.replace(tzinfo=UTC)))
    assert closed is not None and {n: last[n] for n in COUNTS} == {
        n: closed.counts.get(n, 0) for n in COUNTS
    }


def _stored(lab: Lab, table: str) -> list[dict[str, Any]]:
    path = lab.pipeline.table(table)
    return list_stored(lab.spark, path) if delta.exists(lab.spark, path) else []


def _replace(path: Path, kept: Path) -> None:
    """A file or directory is what was kept of it; without that it goes."""
    if path.is_file():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)
    if kept.is_file():
        shutil.copy2(kept, path)
    elif kept.exists():
        shutil.copytree(kept, path)
