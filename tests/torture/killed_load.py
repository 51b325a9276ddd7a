"""A first load in bounded batches that is killed at many places, compared with one of one batch.

    python -m tests.torture.killed_load [--events 50000000] [--batch 1000000] [--kills 20]
        [--storage disk | s3] [--seed 1]

Both loads are commands, processes of their own, over one source that has a commit for each batch.
Kills are spread over the batches, each at a random time within one, and end the command with its
JVM. After each kill the ledger has begun at most one batch that it has not finished. In the end
both lakes have the same rows in every output, and every batch is finished once. There are no event
ids, so an event that counts twice or never is a difference. It prints, for each load, seconds, the
most memory that its processes had at once, and the bytes of its lake.
"""

import json
import os
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import psutil
import pyarrow as pa
from deltalake import write_deltalake

from bench.load import KEYS, describe_three_windows
from tests.support.published_readers import open_delta, options_of
from tests.support.s3_server import started_s3_server
from windowing.ledger.rule import DONE, INTENT
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.spec.reserved import PUBLISHED
from windowing.storage.store import store_of

_START_US = 1_767_225_600_000_000
_SPAN_US = 86_400_000_000
"""From when on, and in how much time the events happen."""
_POLL = 0.5
"""Seconds between two looks at a command."""


@dataclass
class Load:
    """A load, and what it has taken so far."""

    name: str
    spec: Path
    pipeline: Pipeline
    seconds: list[float] = field(default_factory=list)
    most_memory: int = 0

    @property
    def log(self) -> Path:
        """What its commands print."""
        return self.spec.with_suffix(".log")

    def start(self, command: str) -> "subprocess.Popen[bytes]":
        """Starts a command on the pipeline in a process group of its own."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [str(Path(sys.executable).with_name("tidemark")), command, str(self.spec)],
                env={**os.environ, "TIDEMARK_ENGINE": "off"},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def watch(self, process: "subprocess.Popen[bytes]") -> Iterator[None]:
        """Passes the time until the command has ended, and notes what it takes."""
        began = time.monotonic()
        while process.poll() is None:
            yield
            self.most_memory = max(self.most_memory, measure_memory(process.pid))
            time.sleep(_POLL)
        self.seconds.append(time.monotonic() - began)

    def count_steps(self) -> Counter[str]:
        """How many batches the ledger has begun, and how many it has finished."""
        entries = read_history(self.pipeline).entries
        return Counter(each.step for each in entries if each.batch is not None)

    def finish(self) -> None:
        """Lets the command go on to its end, and publishes."""
        process = self.start("run")
        for _ in self.watch(process):
            pass
        self.check_end(process)
        for command in ("validate", "publish"):
            self.check_end(self.start(command))

    def check_end(self, process: "subprocess.Popen[bytes]") -> None:
        """A command has ended, or ends now, without an error."""
        code = process.wait()
        assert code == 0, (self.name, process.args, code, self.log.read_text()[-2000:])

    def kill_after(self, batches: int, rng: Random) -> None:
        """Kills it within a batch, as soon as so many are finished."""
        process = self.start("run")
        moment = None
        for _ in self.watch(process):
            now = time.monotonic()
            if moment is None and self.count_steps()[DONE] >= batches:
                moment = now + rng.uniform(0, self.guess_seconds())
            if moment is not None and now >= moment:
                os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL, (batches, process.returncode)
        steps = self.count_steps()
        assert steps[INTENT] - steps[DONE] in (0, 1), steps
        print(f"killed with {steps[DONE]} of {steps[INTENT]} batches finished", flush=True)

    def guess_seconds(self) -> float:
        """About how long a batch takes, from the last ones."""
        times = [each.at for each in read_history(self.pipeline).entries if each.step == DONE][-5:]
        return float(np.mean([(b - a) / 1e6 for a, b in pairwise(times)] or [5.0]))

    def describe(self) -> str:
        """A line of what it took."""
        root = Location(self.pipeline.lake.text)
        size = sum(file.bytes for file in store_of(root).list_files(root).values())
        return (
            f"{self.name}: {sum(self.seconds):.0f} s in {len(self.seconds)} processes, at most "
            f"{self.most_memory / 2**30:.2f} GiB of memory, a lake of {size / 1e6:.0f} MB"
        )


def measure_memory(pid: int) -> int:
    """The bytes that a process and all that it has started have in memory.

    A process that a JVM has just forked has its command line, and seems to have all of its memory
    once more. So of processes with the same command line the largest counts.
    """
    largest: dict[tuple[str, ...], int] = {}
    try:
        this = psutil.Process(pid)
        for each in (this, *this.children(recursive=True)):
            command, size = tuple(each.cmdline()), each.memory_info().rss
            largest[command] = max(size, largest.get(command, 0))
    except psutil.NoSuchProcess:
        pass
    return sum(largest.values())


def land_events(source: str, events: int, batch: int) -> int:
    """Appends all events, a commit for each batch, the later ones happening later; the commits."""
    options = options_of(Location(source))
    span = _SPAN_US * batch // events
    commits = -(-events // batch)
    for n in range(commits):
        rng = np.random.default_rng(n)
        rows = min(batch, events - n * batch)
        at = np.sort(_START_US + n * span + rng.integers(0, span, rows))
        users = pa.array(rng.integers(0, KEYS, rows)).cast(pa.string())
        table = {
            "user": users,
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "amount": rng.integers(0, 1000, rows),
        }
        write_deltalake(source, pa.table(table), mode="append", storage_options=options)
    return commits


def make_load(name: str, home: str, source: str, batch: int | None, directory: Path) -> Load:
    """A pipeline with a lake of its own over the source."""
    described = describe_three_windows(f"{home}/{name}", source)
    if batch is not None:
        described["source"] |= {"batch": {"rows": batch}}
    spec = directory / f"{name}.yaml"
    # JSON is YAML.
    spec.write_text(json.dumps(described))
    return Load(name, spec, load_pipeline(described))


def compare_published(one: Load, other: Load) -> int:
    """How many rows all published tables have; AssertionError where two differ in one."""
    total = 0
    for window in one.pipeline.windows:
        with duckdb.connect() as connection:
            for load in (one, other):
                place = load.pipeline.table(PUBLISHED) / window.name
                connection.register(load.name, open_delta(place).to_pyarrow_dataset())
                columns = "user, window_start, window_end, n, total, most, p95"
                connection.sql(
                    f"create table {load.name}_rows as select {columns} from {load.name}"
                )
            counts = [
                connection.sql(f"select count(*) from {load.name}_rows").fetchall()[0][0]
                for load in (one, other)
            ]
            query = f"from {one.name}_rows except all from {other.name}_rows limit 3"
            different = connection.sql(query).fetchall()
        assert not different and counts[0] == counts[1] > 0, (window.name, counts, different)
        print(f"{window.name}: {counts[0]:,} rows, all equal", flush=True)
        total += counts[0]
    return total


@contextmanager
def served(storage: str, directory: Path) -> Iterator[str]:
    """The URL or path of a directory on that storage."""
    if storage == "disk":
        yield str(directory)
        return
    with started_s3_server(directory / "s3") as server:
        os.environ.update(server.environ)
        yield server.make_home()


def main() -> None:
    """Plays both loads, and prints what they took."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=50_000_000)
    parser.add_argument("--batch", type=int, default=1_000_000, help="rows of a commit")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--storage", choices=["disk", "s3"], default="disk")
    parser.add_argument("--seed", type=int, default=1, help="of the times of kills")
    asked = parser.parse_args()
    with (
        TemporaryDirectory(prefix="tidemark-load-") as directory,
        served(asked.storage, Path(directory)) as home,
    ):
        play(home, Path(directory), asked)


def play(home: str, directory: Path, asked: Namespace) -> None:
    """Lands the events, loads them in both ways, and compares."""
    source = f"{home}/events"
    commits = land_events(source, asked.events, asked.batch)
    print(f"landed {asked.events:,} events in {commits} commits", flush=True)
    whole = make_load("whole", home, source, asked.events, directory)
    whole.finish()
    print(whole.describe(), flush=True)
    killed = make_load("killed", home, source, asked.batch, directory)
    rng = Random(asked.seed)
    for n in range(asked.kills):
        killed.kill_after((n + 1) * commits // (asked.kills + 1), rng)
    killed.finish()
    print(killed.describe(), flush=True)
    steps = killed.count_steps()
    assert whole.count_steps()[DONE] == 1, "one batch"
    assert steps[DONE] == steps[INTENT] == commits, steps
    total = compare_published(whole, killed)
    print(f"{asked.kills} kills, {commits} batches, each finished once; {total:,} rows are equal")


if __name__ == "__main__":
    main()
