"""Lakes whose last run an earlier version has left open, kept as one file.

Where the source was read to was then in the lake twice: in the ledger, and in Spark's files.

python -m tests.support.open_lakes tests/data/open-lakes-form-2.tar.xz

It was run once, by the last version that kept Spark's files in the lake.
"""

import json
import sys
import tarfile
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from jobs.run import follow_rewrites
from jobs.session import spark_session
from tests.oracle import Event, Session, Tumbling
from tests.support.changing_source import Changing
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, Life, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab

WINDOWS = (Tumbling("hourly", 60 * MINUTE), Session("visits", 10 * MINUTE))
PLACES = ("batch.begun", "state.stored", "batch.done")
"""Where a run of each of these lakes was ended."""
FOLLOWED = ("rewrites.passed", "followed")
"""Lakes that have followed a DELETE: killed before Spark's files said so, and finished."""
EVENTS = "events.json"


def make_open(spark: SparkSession, root: Path) -> Lab:
    """The pipeline of a lake that was left open."""
    return Lab(spark, root, WINDOWS, lateness=240 * MINUTE, delay=10 * MINUTE, shows=FEW)


def unpack(file: Path, name: str, root: Path) -> Path:
    """One of the lakes, under `root`."""
    with tarfile.open(file) as kept:
        members = [m for m in kept.getmembers() if m.name.partition("/")[0] == name]
        kept.extractall(root, members, filter="data")
    return root / name


def restore_open(
    spark: SparkSession, file: Path, place: str, root: Path
) -> tuple[Life, list[Event]]:
    """A lake that was left open, beside an oracle that has lived through what was finished.

    The events are those of the open run.
    """
    home = unpack(file, place, root)
    life = Life(make_open(spark, home))
    *finished, left = [
        [Event(**event) for event in batch] for batch in json.loads((home / EVENTS).read_text())
    ]
    for events in finished:
        life.lab.truth.run(events, ARRIVAL)
    life.lab.landed += [event for events in (*finished, left) for event in events]
    life.runs = len(finished) + 1
    return life, left


def _leave_open(spark: SparkSession, root: Path, place: str) -> None:
    life, batches = Life(make_open(spark, root)), list[list[Event]]()
    for _ in range(2):
        batches.append(life.lab.land(life.batch()))
        life.lab.go()
    batches.append(life.lab.land(life.batch()))
    ends_at(Crasher(place), life.lab.go)
    (root / EVENTS).write_text(json.dumps([[asdict(e) for e in batch] for batch in batches]))


def make_followed(spark: SparkSession, root: Path) -> Changing:
    """The pipeline of a lake whose source has lost a row."""
    return Changing(spark, root, WINDOWS, delay=10 * MINUTE, shows=FEW, feed=False)


def _follow(spark: SparkSession, root: Path, name: str) -> None:
    lab = make_followed(spark, root)
    lab.land(Event("ab"[n % 2], BASE + n * 60 * MINUTE, n, f"e{n}", n) for n in range(9))
    lab.go()
    lab.sql("delete from {} where id = 'e3'")
    if name == "followed":
        follow_rewrites(spark, lab.pipeline)
    else:
        ends_at(Crasher(name), lambda: follow_rewrites(spark, lab.pipeline))


def main(file: str) -> None:
    """Makes the file."""
    with TemporaryDirectory() as home:
        spark = spark_session("open")
        for place in PLACES:
            (Path(home) / place).mkdir()
            _leave_open(spark, Path(home) / place, place)
        for name in FOLLOWED:
            (Path(home) / name).mkdir()
            _follow(spark, Path(home) / name, name)
        with tarfile.open(file, "w:xz") as kept:
            for path in sorted(Path(home).iterdir()):
                kept.add(path, path.name, filter=_nobody)


def _nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without owner."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main(*sys.argv[1:])
