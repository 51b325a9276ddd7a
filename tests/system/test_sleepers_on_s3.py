"""Runs on S3 that sleep while another one takes over: they wake up and change nothing."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.support.long_lived_pipeline import MINUTE, WINDOWS, Life
from tests.support.pipeline_under_test import FEW, Lab
from tests.support.s3_server import S3Server
from tests.support.s3_session import session_on_s3
from windowing.location import Location
from windowing.storage.store import store_of

SEED = 7
QUICK, PLACES = (6, 13), range(1, 22)
"""At which of the places a run is stopped."""
AFTER_ALL = "run.closed"
LEASE_SECONDS = "6"
COMMIT = re.compile(r"/_delta_log/\d{20}\.json$")


@pytest.fixture(scope="module")
def s3_session(s3_server: S3Server) -> Iterator[SparkSession]:
    """A session in a JVM that has the variables of the server."""
    with session_on_s3(s3_server) as session:
        yield session


@pytest.fixture(scope="module")
def life(s3_server: S3Server, s3_session: SparkSession) -> Life:
    """A pipeline after one run."""
    home = Location(f"s3://{s3_server.make_bucket()}/lakes")
    lab = Lab(s3_session, home, WINDOWS[:2], lateness=240 * MINUTE, delay=10 * MINUTE, shows=FEW)
    new = Life(lab, Random(SEED))
    new.run()
    return new


@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize(
    "nth", [pytest.param(n, marks=() if n in QUICK else pytest.mark.deep) for n in PLACES]
)
def test_a_run_that_slept_while_another_took_over_changes_nothing(nth: int, life: Life) -> None:
    lab = life.lab
    events = lab.land(life.batch())
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.sleeping_process", json.dumps(lab.spec()), str(nth)],
        env={**os.environ, "TIDEMARK_LEASE_SECONDS": LEASE_SECONDS},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    place, jvm = process.stdout.readline().split()
    os.waitpid(process.pid, os.WUNTRACED)
    try:
        lab.go()
        lab.truth.run(events, lab.truth.arrival)
        life.check()
        lab.maintain()
        found = list_commits(life)
    finally:
        os.kill(int(jvm), signal.SIGCONT)
        os.kill(process.pid, signal.SIGCONT)
    said, _ = process.communicate(timeout=240)
    print(f"stopped at {place}: {process.returncode} {said}")
    # Behind its last commit there is nothing left to refuse.
    expected = (0,) if place == AFTER_ALL else (4, 75)
    assert process.returncode in expected, said
    assert list_commits(life) == found
    life.run()


def list_commits(life: Life) -> set[str]:
    """The commits of all tables of the pipeline."""
    root = life.lab.pipeline.root
    return {name for name in store_of(root).list_files(root) if COMMIT.search(name)}
