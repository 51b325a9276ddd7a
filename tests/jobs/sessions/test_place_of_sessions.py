"""Where the session of a command works, when the environment names a cluster."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow
import pytest
from deltalake import write_deltalake

from jobs.sessions.profiles import (
    FULL,
    SHORT,
    TEST,
    TINY,
    Profile,
    choose_for_run,
    place_session,
)
from jobs.shortcuts.run_size import MANY_BYTES, MANY_ROWS, RunSize
from windowing.storage.master import is_local

CLUSTER = "spark://spark-master:7077"
NOBODY = "spark://127.0.0.1:9"
"""The address of a cluster that isn't there; a session would try it for a minute, and fail."""


@pytest.mark.parametrize("profile", [SHORT, TINY])
def test_a_session_that_reads_few_rows_works_here(profile: Profile) -> None:
    assert place_session(profile, CLUSTER) == {**profile, "spark.master": "local[*]"}


def test_a_session_of_any_length_works_on_the_cluster() -> None:
    assert place_session(FULL, CLUSTER) == FULL
    assert "spark.master" not in FULL


@pytest.mark.parametrize(
    ("size", "master"),
    [
        (RunSize(MANY_ROWS, MANY_BYTES), "local[*]"),
        (RunSize(MANY_ROWS + 1, 0), None),
        (RunSize(0, MANY_BYTES + 1), None),
        (None, None),
    ],
)
def test_the_size_of_a_run_decides(size: RunSize | None, master: str | None) -> None:
    assert place_session(choose_for_run(size), CLUSTER).get("spark.master") == master


@pytest.mark.parametrize("profile", [FULL, SHORT, TINY])
@pytest.mark.parametrize("named", [None, "local", "local[1]"])
def test_without_a_cluster_nothing_is_moved(profile: Profile, named: str | None) -> None:
    assert place_session(profile, named) == profile


def test_a_profile_that_names_a_place_keeps_it() -> None:
    assert place_session(TEST, CLUSTER)["spark.master"] == TEST["spark.master"] == "local[2]"


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4,2]"])
def test_a_local_master_is_a_jvm_of_this_machine(master: str) -> None:
    assert is_local(master)


@pytest.mark.parametrize(
    "master", ["local-cluster[2,1,1024]", CLUSTER, "yarn", "k8s://https://host:443"]
)
def test_any_other_master_has_executors(master: str) -> None:
    assert not is_local(master)


@pytest.mark.slow
@pytest.mark.usefixtures("jvm")
def test_a_command_on_few_rows_needs_no_cluster(tmp_path: Path) -> None:
    at = pyarrow.array([datetime(2026, 1, 1, tzinfo=UTC)], pyarrow.timestamp("us", tz="UTC"))
    write_deltalake(tmp_path / "source", pyarrow.table({"at": at, "key": ["a"]}))
    spec = {
        "name": "p",
        "lake": "lake",
        "source": {"table": "./source", "event_time": "at", "key": ["key"]},
        "watermark": {"delay": "0 seconds"},
        "aggregates": {"n": "count()"},
        "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
    }
    (tmp_path / "p.yaml").write_text(json.dumps(spec))
    done = subprocess.run(
        [sys.executable, "-m", "jobs", "explain", str(tmp_path / "p.yaml"), "--json"],
        env={**os.environ, "SPARK_MASTER": NOBODY, "TIDEMARK_ENGINE": "off"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["source"]["rows"] == 1
