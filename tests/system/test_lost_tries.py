"""A scheduler loses a task while its command is at work: the next try ends it and finishes it."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from jobs.locking.attempt import VARIABLE, Attempt
from jobs.locking.holder import Holder, parse_holder
from jobs.locking.lock_file import lock_path
from tests.support.killed_process import light
from tests.support.long_lived_pipeline import MINUTE, WINDOWS, Life
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from tests.support.warm_pipeline import Engine
from windowing.grid.zone import moment

TASK = "lab/manual__1/run"
PATIENCE = 240.0

pytestmark = pytest.mark.deep


@pytest.fixture
def life(spark: SparkSession, tmp_path: Path) -> Life:
    """A pipeline before its first run, and its spec as a file."""
    lab = Lab(spark, tmp_path, WINDOWS[:2], lateness=240 * MINUTE, delay=10 * MINUTE, shows=FEW)
    (tmp_path / "lab.yaml").write_text(json.dumps(lab.spec()))
    return Life(lab, Random(5))


def start_try(life: Life, number: int, environ: dict[str, str]) -> "subprocess.Popen[str]":
    """A `tidemark run` that is this try of the task."""
    spec = str(life.lab.root / "lab.yaml")
    return subprocess.Popen(
        [sys.executable, "-m", "jobs", "run", spec, "--arrival", moment(ARRIVAL).isoformat()],
        env={**environ, VARIABLE: f"{TASK}#{number}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def await_holder(life: Life, process: "subprocess.Popen[str]") -> Holder:
    """Whom the lock's file names, once that is the first try of the task."""
    path = lock_path(life.lab.pipeline)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        holder = parse_holder(path.read_bytes()) if path.exists() else None
        if holder is not None and holder.attempt == Attempt(TASK, 1):
            return holder
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    raise AssertionError("the lock was never held")


def cold(home: Path) -> dict[str, str]:
    """Commands that start a JVM of their own."""
    return {**light(home), "TIDEMARK_ENGINE": "off"}


def warm(home: Path) -> dict[str, str]:
    """Commands that use an engine, which is up."""
    code, _, err = Engine(home).ask("engine", "start", "--json")
    assert code == 0, err
    return {**light(home), "TIDEMARK_ENGINE": "", "XDG_RUNTIME_DIR": str(home)}


@pytest.mark.parametrize("how", [cold, warm])
def test_the_next_try_ends_the_command_and_finishes_its_run(
    how: Callable[[Path], dict[str, str]], life: Life
) -> None:
    environ = how(life.lab.root)
    events = life.lab.land(life.batch())
    lost = start_try(life, 1, environ)
    holder = await_holder(life, lost)
    assert len(holder.processes) == 2
    watched = [os.pidfd_open(process.process) for process in holder.processes]
    again = start_try(life, 2, environ)
    _, told = again.communicate(timeout=PATIENCE)
    print(told)
    assert again.returncode == 0, told
    assert f"tidemark: lab: ended `tidemark run`, process {holder.process} on " in told
    # None of what has held the lock goes on.
    assert sorted(select.select(watched, [], [], 0)[0]) == sorted(watched)
    lost.communicate(timeout=PATIENCE)
    assert lost.returncode == (-signal.SIGTERM if how is cold else 1)
    life.lab.truth.run(events, ARRIVAL)
    life.check()
    if how is warm:
        assert Engine(life.lab.root).ask("engine", "stop")[0] == 0
