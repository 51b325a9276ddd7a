"""The lake of a release or of a stored form, kept as a file.

Later versions must go on with it.

python -m tests.support.release_lake tests/data/lake-0.1.tar.xz

It is run once for each release and each stored form, and never again for one that is out.
"""

import json
import sys
import tarfile
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from jobs.publish import publish
from jobs.session import spark_session
from jobs.validate import validate
from tests.oracle import (
    Count,
    Cumulate,
    Event,
    Global,
    RecordSliding,
    Session,
    Sliding,
    Tumbling,
    Window,
)
from tests.support.long_lived_pipeline import BASE, MINUTE, Life
from tests.support.pipeline_under_test import ARRIVAL, Lab

_WINDOWS_OF_0_1 = (
    Tumbling("hourly", 60 * MINUTE),
    Sliding("rolling", 60 * MINUTE, 20 * MINUTE, emit="changes"),
    Session("visits", 10 * MINUTE, emit="on_close"),
    Count("pairs", 2),
    Global("all"),
)
WINDOWS: dict[str, tuple[Window, ...]] = {
    "lake-0.1": _WINDOWS_OF_0_1,
    "lake-form-2": (
        *_WINDOWS_OF_0_1,
        Sliding("rolling_sums", 60 * MINUTE, 20 * MINUTE),
        Cumulate("so_far", size=120 * MINUTE, step=30 * MINUTE),
        Session("shifts", 10 * MINUTE, max_duration=30 * MINUTE),
        RecordSliding("each", 30 * MINUTE),
    ),
}
"""What each lake computes, by the name of its file."""
LATENESS = 60 * MINUTE
DELAY = 10 * MINUTE
RANGE = (BASE, BASE + 90 * MINUTE)
"""What is backfilled at the end."""
EVENTS = "events.json"


def lab(spark: SparkSession, file: Path, root: Path) -> Lab:
    """The pipeline of the lake that `file` keeps, under `root`."""
    windows = WINDOWS[file.name.removesuffix(".tar.xz")]
    return Lab(spark, root, windows, lateness=LATENESS, delay=DELAY)


def restored(spark: SparkSession, file: Path, root: Path) -> Life:
    """The lake of `file` under `root`, beside an oracle that has lived through the same."""
    with tarfile.open(file) as kept:
        kept.extractall(root, filter="data")
    life = Life(lab(spark, file, root))
    for batch in json.loads((root / EVENTS).read_text()):
        events = [Event(**event) for event in batch]
        life.lab.landed += events
        life.lab.truth.run(events, ARRIVAL)
        life.runs += 1
    life.lab.truth.backfill(life.lab.landed, *RANGE, ARRIVAL)
    return life


def main(file: str) -> None:
    """Makes the file."""
    with TemporaryDirectory() as home:
        root, batches = Path(home) / "lake", list[list[Event]]()
        root.mkdir()
        life = Life(lab(spark_session("golden"), Path(file), root))
        for _ in range(3):
            batches.append(life.lab.land(life.batch()))
            life.lab.go()
        life.lab.backfill(*RANGE)
        validate(life.lab.spark, life.lab.pipeline)
        publish(life.lab.pipeline)
        (root / EVENTS).write_text(
            json.dumps([[asdict(event) for event in batch] for batch in batches])
        )
        with tarfile.open(file, "w:xz") as kept:
            for path in sorted(p for p in root.iterdir()):
                kept.add(path, path.name, filter=_nobody)


def _nobody(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without owner; Data Docs are left out, they are pages."""
    if "/_docs" in member.name:
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main(*sys.argv[1:])
