"""Ingests killed at any place and at any time: every record of every file is taken once."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.support.drop_folder import DropFolder
from tests.support.killed_process import light, patiently

SEED = 45
WAVES = 20
FILES = 10
"""How many files land before each ingest that is killed."""
PLACES = 5
"""How many places an ingest passes that takes one batch; one that finishes one passes more."""
BROKEN = 3
"""Every so many records one is broken."""


def land_files(drop: DropFolder, wave: int, rng: Random) -> tuple[set[str], set[str]]:
    """The records of ten files: those that are rows, and those that are broken."""
    rows: set[str] = set()
    broken: set[str] = set()
    for n in range(FILES):
        lines = []
        for record in range(rng.randint(0, 6)):
            key = f"{wave}-{n}-{record}"
            is_broken = rng.randrange(BROKEN) == 0
            lines.append(f"{key},{'x' if is_broken else record}")
            (broken if is_broken else rows).add(key)
        drop.land(f"{wave:02}/{n}.csv", "id,number\n" + "\n".join(lines) + "\n")
    return rows, broken


def killed(drop: DropFolder, rng: Random, whom: str) -> str:
    """What an ingest in a process of its own came to before it was killed; empty where it ended.

    Three of four are killed at a place, the others at some time.
    """
    at_place = rng.random() < 0.75
    nth = rng.randint(1, PLACES) if at_place else 10_000
    words = ["-m", "tests.support.killed_process", str(drop.root / "spec.json"), str(nth), whom]
    process = subprocess.Popen(
        [sys.executable, *words, "ingest"],
        env=light(drop.root / "settings"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=120 if at_place else rng.uniform(5, 14))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, _ = process.communicate()
        return printed.strip() or "some time"
    return printed.strip()


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_files_are_taken_once_by_ingests_that_are_killed(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = Random(SEED)
    drop = DropFolder(tmp_path)
    drop.pin(id="string", number="bigint")
    (tmp_path / "spec.json").write_text(json.dumps(drop.spec))
    rows: set[str] = set()
    broken: set[str] = set()
    met = []
    for wave in range(WAVES):
        landed = land_files(drop, wave, rng)
        rows |= landed[0]
        broken |= landed[1]
        met.append(killed(drop, rng, rng.choice(("python", "jvm", "group"))))
    print(met)
    patiently(lambda: drop.take(spark))
    assert [row[0] for row in drop.rows(spark, "id")] == sorted(rows)
    texts = [text.partition(",")[0] for _, text, _ in drop.quarantine(spark) if text]
    assert sorted(texts) == sorted(broken)
    assert len([row for row in drop.record() if row["file"]]) == WAVES * FILES
    assert len({place for place in met if place}) > 4
