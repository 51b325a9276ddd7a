"""Processes that are killed, race each other or may not write.

The next run finishes what they left, and nothing is lost or doubled.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from random import Random

import pytest
from pyspark.sql import SparkSession

from jobs.run import run
from tests.support.killed_process import light, patiently
from tests.support.long_lived_pipeline import BASE, MINUTE, WINDOWS, Life
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from tests.support.unprivileged import as_anyone
from windowing.errors import Busy
from windowing.grid.zone import moment

pytestmark = pytest.mark.slow

SEED = 11
KILLS = (("group", "run"),)
"""Who is killed, and in what."""
RARE_KILLS = (
    ("jvm", "backfill"),
    ("python", "backfill"),
    ("jvm", "run"),
    ("group", "backfill"),
    ("python", "run"),
    ("python", "run"),
    ("jvm", "run"),
)
PASSED = {"run": 18, "backfill": 8}
"""How many places each step passes at least."""


@pytest.fixture(scope="module")
def life(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """A pipeline after one run, and its spec as a file."""
    lab = Lab(
        spark,
        tmp_path_factory.mktemp("kills"),
        WINDOWS[:2],
        lateness=240 * MINUTE,
        delay=10 * MINUTE,
        shows=FEW,
    )
    new = Life(lab, Random(SEED))
    (new.lab.root / "lab.json").write_text(json.dumps(new.lab.spec()))
    (new.lab.root / "lab.yaml").write_text(json.dumps(new.lab.spec()))
    new.run()
    return new


def started(life: Life, module: str, *words: str, **more: object) -> "subprocess.Popen[str]":
    """A process of its own group."""
    command = [sys.executable, "-m", module, *words]
    how = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        "env": light(life.lab.root),
        **more,
    }
    return subprocess.Popen(command, start_new_session=True, **how)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("whom", "step"),
    [*KILLS, *(pytest.param(*kill, marks=pytest.mark.deep) for kill in RARE_KILLS)],
)
def test_killed_anywhere_nothing_is_lost_and_nothing_doubled(
    whom: str, step: str, life: Life
) -> None:
    lab, rng = life.lab, life.rng
    nth = rng.randint(1, PASSED[step])
    start, new = BASE + rng.randrange(life.runs * 30) * MINUTE, life.batch()
    bounds = [str(start), str(start + 90 * MINUTE)] if step == "backfill" else []
    events = lab.land(new) if step == "run" else []
    process = started(
        life,
        "tests.support.killed_process",
        str(lab.root / "lab.json"),
        str(nth),
        whom,
        step,
        *bounds,
    )
    out, err = process.communicate(timeout=240)
    print(f"seed {SEED}: {whom} is killed at {nth} of {step}: {out.split()}")
    assert out and process.returncode != 0, err[-2000:]
    if step == "backfill":
        patiently(lambda: lab.backfill(start, start + 90 * MINUTE))
        events = lab.land(new)
    patiently(lab.go)
    lab.truth.run(events, ARRIVAL)
    life.check()


def test_a_run_that_is_interrupted_says_so_and_the_next_one_finishes_it(life: Life) -> None:
    lab, ledger = life.lab, life.root / "_ledger" / "_delta_log"
    events, before = lab.land(life.batch()), len(list(ledger.glob("*.json")))
    process = started(life, "jobs", "run", str(lab.root / "lab.yaml"))
    while len(list(ledger.glob("*.json"))) == before and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    # click ends the line that a terminal has begun with ^C.
    assert (process.returncode, err) == (
        130,
        "\ntidemark: interrupted; run the same command again to finish it\n",
    )
    patiently(lab.go)
    lab.truth.run(events, ARRIVAL)
    life.check()


RACES: dict[str, Callable[[Life], Callable[[], object]]] = {
    "run": lambda life: life.lab.go,
    "backfill": lambda life: lambda: life.lab.backfill(BASE, BASE + 60 * MINUTE),
}


@pytest.mark.parametrize("other", ["run", pytest.param("backfill", marks=pytest.mark.deep)])
def test_two_writers_at_once_are_one_after_the_other(other: str, life: Life) -> None:
    events = life.lab.land(life.batch())
    process = started(
        life,
        "jobs",
        "run",
        str(life.lab.root / "lab.yaml"),
        "--arrival",
        moment(ARRIVAL).isoformat(),
    )
    finished = 0
    while process.poll() is None:
        try:
            RACES[other](life)()
            finished += 1
        except Busy:
            time.sleep(0.05)
    _, err = process.communicate()
    assert process.returncode in (0, 75), err
    assert finished or process.returncode == 0
    patiently(life.lab.go)
    life.lab.truth.run(events, ARRIVAL)
    life.check()


@pytest.mark.deep
def test_of_two_processes_one_does_it(life: Life) -> None:
    events = life.lab.land(life.batch())
    words = ("run", str(life.lab.root / "lab.yaml"), "--arrival", moment(ARRIVAL).isoformat())
    both = [started(life, "jobs", *words) for _ in range(2)]
    said = [process.communicate(timeout=240)[1] for process in both]
    assert {0} <= {process.returncode for process in both} <= {0, 75}, said
    life.lab.truth.run(events, ARRIVAL)
    life.check()


def test_a_lake_that_can_not_be_written_to_is_one_sentence(life: Life) -> None:
    events = life.lab.land(life.batch())
    kept = {path: path.stat().st_mode for path in (life.root, *life.root.rglob("*"))}
    for path in kept:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        process = started(
            life,
            "jobs",
            "run",
            str(life.lab.root / "lab.yaml"),
            preexec_fn=as_anyone(),
        )
        out, err = process.communicate(timeout=240)
    finally:
        for path, mode in kept.items():
            path.chmod(mode)
    assert (process.returncode, out) == (2, "")
    assert err.count("\n") == 1 and "can't be written to" in err and "Traceback" not in err, err
    run(life.lab.spark, life.lab.pipeline, moment(ARRIVAL))
    life.lab.truth.run(events, ARRIVAL)
    life.check()
