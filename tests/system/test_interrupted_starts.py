"""Ctrl-C while a command starts its JVM: one sentence and 130, whatever was at work."""

import subprocess
import sys
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from tests.support.interrupted_start import MOMENTS
from tests.support.killed_process import light

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("jvm")]

ROOT = Path(__file__).parents[2]
SPEC = """
name: trips
lake: lake
source: {table: lake/bronze/trips, event_time: at, key: [place], event_id: id}
watermark: {delay: 0 seconds, allowed_lateness: 1 hour}
aggregates: {n: count()}
windows:
  hourly: {kind: tumbling, size: 1 hour}
"""
INTERRUPTED = (130, "", "\ntidemark: interrupted; run the same command again to finish it\n")
"""click ends the line that a terminal has begun with ^C."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A spec and its source."""
    (tmp_path / "trips.yaml").write_text(SPEC)
    schema = pa.schema(
        [("id", pa.string()), ("place", pa.string()), ("at", pa.timestamp("us", "UTC"))]
    )
    table = pa.table({"id": ["a"], "place": ["EWR"], "at": [0]}, schema=schema)
    deltalake.write_deltalake(str(tmp_path / "lake" / "bronze" / "trips"), table)
    return tmp_path


def begun(home: Path, *words: str) -> "subprocess.Popen[str]":
    """A process of a group of its own, as one in a terminal is."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home,
        env={**light(home), "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def list_group(process: "subprocess.Popen[str]") -> set[int]:
    """The processes of its group that are there still."""
    found = subprocess.run(
        ["pgrep", "-g", str(process.pid)], check=False, capture_output=True, text=True
    )
    return {int(line) for line in found.stdout.split()}


@retry(retry=retry_if_result(bool), wait=wait_fixed(0.2), stop=stop_after_delay(30))
def wait_for_java(process: "subprocess.Popen[str]") -> set[int]:
    """Waits until no process of its group is left, as the JVM ends when its input does."""
    return list_group(process)


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_during_the_start_of_a_session_is_an_interruption(moment: str, home: Path) -> None:
    process = begun(home, "tests.support.interrupted_start", moment, "run", "trips.yaml")
    assert ended(process) == INTERRUPTED
    assert not wait_for_java(process)
