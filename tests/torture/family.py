"""The pipelines that are tortured, the events they get, and what must come of them.

Expected are plain loops over a sample of keys, sums over all.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from random import Random
from shutil import rmtree

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.oracle import (
    Admitted,
    Count,
    Cumulate,
    Event,
    Global,
    Oracle,
    Session,
    Sliding,
    Tumbling,
    Window,
)
from tests.support.pipeline_under_test import ARRIVAL, FEW, SECOND, Lab
from windowing.ledger.rule import COUNTS
from windowing.ledger.table import WATERMARKS, read_history
from windowing.location import Location
from windowing.storage import delta, delta_log

MINUTE = 60 * SECOND
BASE = 1_767_571_200 * SECOND
STEP = 10 * MINUTE
"""By how much the event times of a batch are later than those of the one before."""
DELAY = 10 * MINUTE
LIFE = 60
"""Batches after which a tortured lake is given up for a new one, so that comparing stays quick."""
KEYS = 200
SAMPLE = 6
EVERY = Global("all")
FAMILIES: dict[str, tuple[int, tuple[Window, ...]]] = {
    "clock": (
        8000,
        (
            Tumbling("hourly", 60 * MINUTE),
            Sliding("rolling", 60 * MINUTE, 20 * MINUTE, emit="changes"),
            EVERY,
        ),
    ),
    "steps": (8000, (Cumulate("daily", 1440 * MINUTE, step=360 * MINUTE, emit="on_close"), EVERY)),
    "chains": (
        8000,
        (Session("visits", 10 * MINUTE), Session("stays", 5 * MINUTE, emit="on_close"), EVERY),
    ),
    "ordered": (
        300,
        (Count("triples", 3), Session("short", 30 * MINUTE, max_duration=60 * MINUTE), EVERY),
    ),
}
"""By name: the events of a batch, and the windows."""
SOAK = {"soak": (200, (Tumbling("hourly", 60 * MINUTE), Session("visits", 10 * MINUTE), EVERY))}
"""The pipeline that is not killed, but lives for long."""
_ALL = {**FAMILIES, **SOAK}


def lake_of(home: Path, name: str) -> Path:
    """The directory of the family's newest lake: they are numbered from 1."""
    numbers = [int(folder.name) for folder in (home / name).glob("*") if folder.name.isdecimal()]
    return home / name / str(max(numbers, default=1))


@dataclass(frozen=True)
class Family:
    """One of them, in a directory of its own."""

    spark: SparkSession
    home: Path
    name: str
    seed: str

    @cached_property
    def lab(self) -> Lab:
        """The pipeline."""
        return Lab(self.spark, self._lake, _ALL[self.name][1], delay=DELAY, shows=FEW)

    @cached_property
    def _lake(self) -> Path:
        return lake_of(self.home, self.name)

    def renew(self) -> "Family":
        """The same family with a lake that has no batch yet; the old one is deleted."""
        old = self._lake
        (old.parent / str(int(old.name) + 1)).mkdir()
        rmtree(old)
        return replace(self)

    def batch(self, n: int) -> list[Event]:
        """The events of batch `n`: around the newest ones.

        Some are of them hours late, some that no run can read.
        """
        rng, size = Random(f"{self._words}:{n}"), _ALL[self.name][0]
        return [self._event(rng, n, i) for i in range(size)]

    def landed_with(self, n: int) -> list[Event]:
        """Batch `n` as it lands: with copies of events of the batch before."""
        copies = Random(f"{self._words}:{n}:copies").sample(self.batch(n - 1), 20) if n else []
        return [*self.batch(n), *copies]

    def _event(self, rng: Random, n: int, i: int) -> Event:
        middle = BASE + n * STEP
        t = middle + int(rng.triangular(-360, 5, 0) * MINUTE) // SECOND * SECOND
        return Event(
            f"k{int(KEYS * rng.random() ** 2)}",
            None if rng.random() < 0.005 else t,
            rng.randrange(100),
            f"{n}-{i}",
            i,
        )

    @property
    def _words(self) -> str:
        return f"{self.seed}:{self.name}:{self._lake.name}"

    @property
    def batches(self) -> int:
        """How many have landed: each is one commit of the source."""
        return delta_log.version(self.spark, Location(str(self.lab.root / "source"))) + 1

    def land(self) -> int:
        """One batch more; returns how many events it has."""
        return len(self.lab.land(self.landed_with(self.batches)))

    def check(self) -> int:
        """Ledger, watermark, sums over all keys, and every window of some keys.

        Returns how many events that was.
        """
        read = list(chain.from_iterable(self.landed_with(n) for n in range(self.batches)))
        valid = {e.id: e for e in read if e.t is not None}
        past = read_history(self.lab.pipeline)
        done = {(e.run, e.batch): e for e in past.entries if e.step == "done"}.values()
        refused = sum(e.t is None for e in read)
        found = {name: sum(e.counts.get(name, 0) for e in done) for name in COUNTS}
        wanted = dict(
            zip(
                COUNTS,
                (len(read), len(valid), 0, len(read) - refused - len(valid), refused, 0),
                strict=True,
            )
        )
        assert found == wanted, f"counts {found}, expected {wanted}"
        assert past.watermark == max(e.t or 0 for e in valid.values()) - DELAY
        marks = [
            row["run"]
            for row in delta.read(self.spark, self.lab.pipeline.table(WATERMARKS)).collect()
        ]
        assert sorted(marks) == list(range(1, past.last_run + 1))
        for what, n in self._totals():
            assert n == len(valid), f"{what} counts {n} events, expected {len(valid)}"
        self._sampled(list(valid.values()), past.watermark, past.next_seq)
        return len(read)

    def _totals(self) -> Iterator[tuple[str, int]]:
        """The events in windows that hold each event once."""
        for window in self.lab.windows:
            if window.emit == "on_change" and isinstance(window, Tumbling | Session | Global):
                rows = delta.read(self.spark, self.lab.pipeline.table(window.name))
                yield window.name, int(rows.agg(F.sum("n")).collect()[0][0])

    def _sampled(self, events: list[Event], watermark: int, turn: int) -> None:
        keys = Random(f"{self.seed}:{turn}").sample(sorted({str(e.key) for e in events}), SAMPLE)
        truth = Oracle(DELAY, None, 10**15, None, self.lab.windows, None)
        truth.accepted = [Admitted(e) for e in events if e.key in keys]
        truth.watermark, truth.arrival, self.lab.truth = watermark, ARRIVAL, truth
        for window in self.lab.windows:
            found, wanted = self.lab.table(window.name, keys), self.lab.expected(window)
            wrong = [place for place in {*found, *wanted} if found.get(place) != wanted.get(place)]
            assert not wrong, (
                f"{window.name} {wrong[0]}: {found.get(wrong[0])}, expected "
                f"{wanted.get(wrong[0])}; {len(wrong)} differ"
            )
