"""What the log of a scheduler's task says in between; a person's terminal has the end alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.locking.attempt import VARIABLE
from tests.support.hourly_trips import SPEC


@pytest.mark.parametrize(("attempt", "before"), [("nightly/1/run#1", "starting Spark\n"), ("", "")])
def test_the_start_of_spark_is_told_to_a_scheduler(
    attempt: str, before: str, tmp_path: Path
) -> None:
    (tmp_path / "trips.yaml").write_text(SPEC)
    missing = tmp_path / "no-java"
    ended = subprocess.run(
        [sys.executable, "-m", "jobs", "run", str(tmp_path / "trips.yaml")],
        env={**os.environ, VARIABLE: attempt, "JAVA_HOME": str(missing)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"{before}tidemark: JAVA_HOME is {missing}")
