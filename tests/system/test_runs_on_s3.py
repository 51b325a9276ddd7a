"""Runs in processes of their own on one lake on S3: two at once, and one that is shut out midway.

Nothing is lost and nothing doubled: all tables are the oracle's.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import pytest

from jobs.locking.broken_lock import break_lock, find_lock_to_break
from jobs.locking.lease_object import VARIABLE
from jobs.locking.lock import writer
from tests.support.faulty_proxy import CHANGES, READS, Fault, Planned, started_proxy
from tests.support.killed_process import light, patiently
from tests.support.long_lived_pipeline import Life
from tests.support.pipeline_under_test import ARRIVAL
from tests.support.s3_server import KEYS, S3Server
from tests.support.s3_session import session_on_s3
from tests.support.shared_storage import SharedStorage
from windowing.errors import Busy
from windowing.grid.zone import moment
from windowing.storage import delta_log
from windowing.storage.files import newest_version
from windowing.storage.spark_internals import FENCED, SPARK_ERRORS

SEED = 13
MIDWAY = (20, 60, 90)
"""After how many requests the credentials expire; a run of few rows makes some 110."""
_PATIENCE = 300


@pytest.fixture(scope="module")
def life(s3_server: S3Server, jvm: None) -> Iterator[Life]:
    """A pipeline on S3 after one run."""
    with session_on_s3(s3_server) as session:
        new = SharedStorage("s3", s3_server, session).make_life(Random(SEED))
        new.run()
        yield new


def start_run(life: Life, home: Path, environ: Mapping[str, str]) -> "subprocess.Popen[str]":
    """`tidemark run` in a process of its own; its spec and the settings of Spark lie in `home`."""
    spec = home / "lab.yaml"
    spec.write_text(json.dumps(life.lab.spec()))
    command = [sys.executable, "-m", "jobs", "run", str(spec)]
    return subprocess.Popen(
        [*command, "--arrival", moment(ARRIVAL).isoformat()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**light(home), **environ},
    )


@pytest.mark.deep
def test_of_two_runs_at_once_one_does_it(life: Life, tmp_path: Path) -> None:
    events = life.lab.land(life.batch())
    both = [start_run(life, tmp_path, os.environ) for _ in range(2)]
    said = [process.communicate(timeout=_PATIENCE)[1] for process in both]
    assert {0} <= {process.returncode for process in both} <= {0, 75}, said
    life.lab.truth.run(events, ARRIVAL)
    life.check()


@pytest.mark.parametrize(
    "asked", [pytest.param(n, marks=() if n == 60 else pytest.mark.deep) for n in MIDWAY]
)
def test_a_run_whose_credentials_expire_midway_is_finished_by_the_next(
    asked: int, life: Life, s3_server: S3Server, tmp_path: Path
) -> None:
    """Whichever of its libraries meets it first, the run says so without the secret."""
    events = life.lab.land(life.batch())
    with started_proxy(s3_server.endpoint) as proxy:
        proxy.plan(Planned(Fault.EXPIRED, READS | CHANGES, skipped=asked, times=None))
        process = start_run(life, tmp_path, proxy.environ)
        out, err = process.communicate(timeout=_PATIENCE)
        assert sum(proxy.counts.values()) > asked, "they expired before it was done"
    assert process.returncode in (1, 75), (out, err)
    assert err.count("tidemark: ") == 1, err
    assert "credentials" in err, err
    assert "Traceback" not in err
    assert KEYS.secret not in out + err
    patiently(life.lab.go)
    life.lab.truth.run(events, ARRIVAL)
    life.check()


def test_what_was_allowed_is_refused_once_the_lock_is_broken(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between permission and commit a job of Spark may take long, and a reset come first."""
    monkeypatch.setenv(VARIABLE, "2")
    spark, trips = life.lab.spark, life.lab.pipeline
    table = trips.table("made")
    with pytest.raises(Busy, match="because another process has broken it"), writer(spark, trips):
        found = find_lock_to_break(trips, [])
        assert found is not None
        with delta_log.committing(spark, table):
            break_lock(*found)
            time.sleep(2)
            with pytest.raises(SPARK_ERRORS, match=f"{FENCED}: nothing may be committed"):
                spark.range(3).write.format("delta").save(table.hadoop)
    assert newest_version(table) == -1
