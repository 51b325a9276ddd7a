"""`spark-submit tidemark-submit.py COMMAND`: its master and its settings count."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.life import draw_batches, make_lab
from tests.support.cluster import SPARK, Cluster
from tests.support.pipeline_under_test import ARRIVAL, Lab
from windowing.grid.zone import moment

pytestmark = pytest.mark.cluster
PROGRAM = Path(sys.executable).parent / "tidemark-submit.py"
GIVEN = {
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.codegen.wholeStage": "true",
    # What results depend on stays as it is.
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
}
EXECUTOR = "spark.executor.extraJavaOptions"


def submit(cluster: Cluster, events: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line as a program of spark-submit."""
    given = {**GIVEN, "spark.eventLog.dir": events.as_uri(), EXECUTOR: "-Dgiven=theirs"}
    options = [word for name, value in given.items() for word in ("--conf", f"{name}={value}")]
    variables = {**cluster.variables(), "PYSPARK_DRIVER_PYTHON": sys.executable}
    variables |= {"PYSPARK_PYTHON": str(cluster.python), "SPARK_MASTER": "spark://127.0.0.1:9"}
    return subprocess.run(
        [SPARK / "bin" / "spark-submit", "--master", cluster.url, *options, PROGRAM, *words],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def read_events(logs: Path) -> list[dict[str, Any]]:
    """What Spark says of the application."""
    files = [file for file in logs.rglob("events_*") if file.is_file()]
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def lab(tmp_path: Path, session: Any) -> Lab:
    """A pipeline whose source has rows that nobody has read."""
    lab = make_lab(session, tmp_path)
    lab.land(draw_batches()[0])
    (tmp_path / "lab.yaml").write_text(json.dumps(lab.spec()))
    return lab


def test_master_and_settings_are_those_of_spark_submit(lab: Lab, cluster: Cluster) -> None:
    events = lab.root / "events"
    events.mkdir()
    arrival = moment(ARRIVAL).isoformat()
    spec = str(lab.root / "lab.yaml")
    done = submit(cluster, events, "run", spec, "--arrival", arrival, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    lab.truth.run(lab.landed, ARRIVAL)
    lab.check()
    told = read_events(events)
    found = next(e for e in told if e["Event"].endswith("EnvironmentUpdate"))["Spark Properties"]
    assert found["spark.master"] == cluster.url
    assert {n: found[n] for n in GIVEN} == {**GIVEN, "spark.sql.session.timeZone": "UTC"}
    # Spark puts the options of modules before those that were given, and ours before both.
    assert found[EXECUTOR].endswith(" -Dgiven=theirs")
    assert found["spark.executor.defaultJavaOptions"] == "-Duser.timezone=UTC"
    assert any(e["Event"] == "SparkListenerExecutorAdded" for e in told)
    assert cluster.secret not in json.dumps(told) + done.stdout + done.stderr


def test_the_exit_code_is_that_of_the_command(cluster: Cluster, tmp_path: Path) -> None:
    done = submit(cluster, tmp_path, "run", str(tmp_path / "nowhere.yaml"))
    assert done.returncode == 2
    assert "nowhere.yaml" in done.stdout + done.stderr
