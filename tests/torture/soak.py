"""One pipeline over thousands of batches: a run must not get slower, nor files more, as they pile up; stopped, it goes on where it was.

    python -m tests.torture.soak [--batches 2000] [--home build/torture]
"""

import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from statistics import median

from jobs.maintain import maintain
from jobs.play import TINY
from jobs.session import spark_session
from tests.torture.family import Family

ROOT = Path(__file__).parents[2]
TENDED = 50
"""Runs between two maintenances."""
MOST_DRIFT = 0.2
SETTLED = 100
"""Runs after which the JVM is warm and the tables have their size; also how many are compared with as many at the end."""


def main() -> None:
    """Runs until there are so many batches, then compares."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--home", type=Path, default=ROOT / "build" / "torture")
    asked = parser.parse_args()
    family = Family(spark_session("soak", **TINY), asked.home, "soak", "soak")
    kept = asked.home / "soak.txt"
    asked.home.mkdir(parents=True, exist_ok=True)
    while family.batches < asked.batches:
        family.land()
        began = time.monotonic()
        family.lab.go()
        _keep(kept, f"{family.batches} {time.monotonic() - began:.3f} {_files(family)}")
        if family.batches % TENDED == 0:
            maintain(family.spark, family.lab.pipeline)
    print(f"{family.check():,} events compared")
    sentence, drift = said(kept.read_text())
    print(sentence)
    if drift > MOST_DRIFT:
        sys.exit(f"runs must not get slower by more than {MOST_DRIFT:.0%}")


def _keep(file: Path, line: str) -> None:
    with file.open("a") as out:
        out.write(line + "\n")
    print(line, file=sys.stderr, flush=True)


def _files(family: Family) -> int:
    """How many files the pipeline has."""
    return sum(f.is_file() for f in (family.lab.root / "lake").rglob("*"))


def said(text: str) -> tuple[str, float]:
    """The medians of run times early and late, and the files early and late; and by how much the late runs are slower."""
    rows = [line.split() for line in text.splitlines()]
    early, late = rows[SETTLED : 2 * SETTLED], rows[-SETTLED:]
    first, last = (median(float(row[1]) for row in part) for part in (early, late))
    files = [max(int(row[2]) for row in part) for part in (early, late)]
    drift = last / first - 1
    return f"{len(rows)} runs: {first:.2f} s, then {last:.2f} s ({drift:+.0%}); at most {files[0]} files, then {files[1]}", drift


if __name__ == "__main__":
    main()
