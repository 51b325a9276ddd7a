"""One pipeline over thousands of batches.

A run must not get slower, nor files more, as they pile up; stopped, it goes on where it was.

An hour passes between two runs: all files are made older by it, so whatever goes by their age goes.
Machines get faster and slower meanwhile: a run's time counts in runs over a new lake, made at about
the same time.

    python -m tests.torture.soak [--batches 2000] [--home build/torture]
"""

import sys
import time
from argparse import ArgumentParser
from datetime import timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from jobs.maintain import maintain
from jobs.session import spark_session
from jobs.sessions.process import stay_on_utc
from jobs.sessions.profiles import TEST
from tests.support.pipeline_under_test import become_older
from tests.torture.family import Family

ROOT = Path(__file__).parents[2]
TENDED = 50
"""Runs between two maintenances."""
TIMED = 25
"""Runs between two looks at how fast the machine is."""
MOST_DRIFT = 0.2
SETTLED = 100
"""Runs after which the JVM is warm and the tables have their size.

Also how many are compared with as many at the end.
"""


def main() -> None:
    """Runs until there are so many batches, then compares."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--home", type=Path, default=ROOT / "build" / "torture")
    asked = parser.parse_args()
    stay_on_utc()
    family = Family(spark_session("soak", **TEST), asked.home, "soak", "soak")
    kept = asked.home / "soak.txt"
    asked.home.mkdir(parents=True, exist_ok=True)
    new = _new(family.spark)
    while family.batches < asked.batches:
        took = _run(family)
        _keep(kept, f"{family.batches} {took:.3f} {_files(family)} {new:.3f}")
        become_older(family.lab.root.rglob("*"), timedelta(hours=1))
        if family.batches % TENDED == 0:
            maintain(family.spark, family.lab.pipeline)
        if family.batches % TIMED == 0:
            new = _new(family.spark)
    print(f"{family.check():,} events compared")
    sentence, drift = said(kept.read_text())
    print(sentence)
    if drift > MOST_DRIFT:
        sys.exit(f"runs must not get slower by more than {MOST_DRIFT:.0%}")


def _run(family: Family) -> float:
    """How many seconds a run over one batch more takes."""
    family.land()
    began = time.monotonic()
    family.lab.go()
    return time.monotonic() - began


def _new(spark: SparkSession) -> float:
    """How many seconds the same run takes over a lake of three batches."""
    with TemporaryDirectory() as home:
        family = Family(spark, Path(home), "soak", "new")
        return median([_run(family) for _ in range(5)][2:])


def _keep(file: Path, line: str) -> None:
    with file.open("a") as out:
        out.write(line + "\n")
    print(line, file=sys.stderr, flush=True)


def _files(family: Family) -> int:
    """How many files the pipeline has."""
    return sum(f.is_file() for f in (family.lab.root / "lake").rglob("*"))


def said(text: str) -> tuple[str, float]:
    """Run times early and late, in seconds and in runs over a new lake (medians), and files.

    `drift` is by how much late runs are slower.
    """
    rows = [[float(cell) for cell in line.split()] for line in text.splitlines()]
    parts = rows[SETTLED : 2 * SETTLED], rows[-SETTLED:]
    first, last = (median(took for _, took, *_ in part) for part in parts)
    early, late = (median(took / new for _, took, _, new in part) for part in parts)
    drift = late / early - 1
    files = [int(max(files for _, _, files, _ in part)) for part in parts]
    times = (
        f"{first:.2f} s, then {last:.2f} s; {early:.2f} times a run over a new lake, then "
        f"{late:.2f} ({drift:+.0%})"
    )
    return f"{len(rows)} runs: {times}; at most {files[0]} files, then {files[1]}", drift


if __name__ == "__main__":
    main()
