"""Commands that delete ask first, at a terminal of their own and without a JVM."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

SPEC = """
name: trips
lake: lake
source: {table: lake/bronze/trips, event_time: at, key: [place]}
aggregates: {n: count()}
windows: {hourly: {kind: tumbling, size: 1 hour}}
"""
QUESTION = "Delete 1 table (2 B) in "


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A pipeline's one file."""
    (tmp_path / "trips.yaml").write_text(SPEC)
    file = tmp_path / "lake" / "trips" / "_ledger" / "_delta_log" / "0"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    return file


def answered(cwd: Path, answer: bytes, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command in `cwd` whose terminal gives `answer`."""
    terminal, its_end = pty.openpty()
    try:
        os.write(terminal, answer)
        command = [sys.executable, "-m", "jobs", *words]
        ended = subprocess.run(
            command, cwd=cwd, stdin=its_end, capture_output=True, text=True, check=False, timeout=60
        )
    finally:
        os.close(terminal)
        os.close(its_end)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    "answer",
    [b"n\n", b"\n", b"maybe\nno\n", b"\x04"],
    ids=["no", "enter", "first unclear", "end of input"],
)
def test_whoever_does_not_say_yes_keeps_everything(
    answer: bytes, ledger: Path, tmp_path: Path
) -> None:
    code, out, err = answered(tmp_path, answer, "reset", "trips.yaml")
    assert (code, out) == (1, "") and QUESTION in err
    assert "Traceback" not in err and err.endswith("tidemark: nothing was deleted\n")
    assert ledger.exists()


def test_yes_deletes(ledger: Path, tmp_path: Path) -> None:
    code, out, err = answered(tmp_path, b"y\n", "reset", "trips.yaml")
    assert code == 0 and out.startswith("trips: 1 table (") and QUESTION in err
    assert not ledger.parents[2].exists()


def test_an_erasure_asks_before_it_starts_a_jvm(ledger: Path, tmp_path: Path) -> None:
    code, out, err = answered(tmp_path, b"n\n", "erase", "trips.yaml", "--key", "x")
    assert (code, out) == (1, "") and "Delete the key and all older versions?" in err
    assert err.endswith("tidemark: nothing was deleted\n")
    assert ledger.exists()
