"""`tidemark status` on ledgers of a disk: one line a pipeline, reasons, and an exit code."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tidemark
from jobs.cli.main import main
from jobs.locking.lock_file import find_writer, held_here
from windowing.grid.zone import micros
from windowing.ledger.period import Period
from windowing.ledger.rule import CLOSE, OPEN, PERIOD_CLOSED, LedgerEntry
from windowing.ledger.table import create_ledger, read_history, record_entries
from windowing.spec.pipeline import Pipeline

SPEC = """
name: {name}
lake: lake
source: {{table: lake/bronze/trips, event_time: at, key: [place]}}
aggregates: {{n: count()}}
windows: {{hourly: {{kind: tumbling, size: 1 hour}}}}
"""
HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
input()
"""


def write(home: Path, name: str, more: str = "") -> Pipeline:
    """A pipeline with a ledger, in a folder of specs."""
    (home / f"{name}.yaml").write_text(SPEC.format(name=name) + more)
    pipeline = tidemark.load_pipeline(home / f"{name}.yaml")
    create_ledger(pipeline)
    return pipeline


def record(pipeline: Pipeline, *entries: LedgerEntry) -> None:
    """Appends entries to the ledger."""
    record_entries(pipeline, read_history(pipeline), entries)


def closed(ago: timedelta) -> tuple[LedgerEntry, LedgerEntry]:
    """A run that ended so long ago, and has its watermark there."""
    us = micros(datetime.now(UTC) - ago)
    counts = {"read": 1_234, "accepted": 1_234}
    return LedgerEntry(OPEN, run=1), LedgerEntry(
        CLOSE, run=1, at=us, watermark_out=us, counts=counts, versions={"hourly": 1}
    )


def status(*words: object) -> Result:
    """What the command says."""
    return CliRunner().invoke(main, ["status", *map(str, words)], prog_name="tidemark")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a pipeline that is fresh, and one that is stale."""
    record(write(tmp_path, "fresh", "freshness: 30 minutes"), *closed(timedelta(minutes=5)))
    record(write(tmp_path, "stale", "freshness: 30 minutes"), *closed(timedelta(days=2, hours=3)))
    return tmp_path


def test_a_closed_period_has_a_line(home: Path) -> None:
    pipeline = tidemark.load_pipeline(home / "fresh.yaml")
    until_us = micros(datetime(2026, 3, 1, tzinfo=UTC))
    note = Period(until_us, "February is invoiced").as_note()
    record(pipeline, LedgerEntry(PERIOD_CLOSED, run=1, note=note))
    found = status(home / "fresh.yaml")
    assert found.exit_code == 0
    assert "fresh: closed until 2026-03-01 00:00Z: February is invoiced\n" in found.stdout
    (told,) = json.loads(status(home / "fresh.yaml", "--json").stdout)["pipelines"]
    assert told["closed_until"] == "2026-03-01T00:00:00+00:00"
    assert told["closed_reason"] == "February is invoiced"


def test_a_folder_is_a_line_for_each_pipeline_and_a_reason(home: Path) -> None:
    found = status(home)
    assert found.exit_code == 5
    assert found.stderr == "tidemark: 1 pipeline needs attention: stale\n"
    lines = found.stdout.splitlines()
    begins = [line.split()[:2] for line in lines]
    assert ["fresh", "fresh"] in begins and ["stale", "stale"] in begins
    assert max(map(len, lines)) <= 100
    assert "1,234" in found.stdout
    reason = "stale: stale: the watermark is 2 d 3 h behind; freshness is 30 minutes"
    assert reason in lines


def test_only_what_is_named_is_judged(home: Path) -> None:
    assert status(home / "fresh.yaml").exit_code == 0
    both = status(home / "fresh.yaml", home, "--json")
    assert both.exit_code == 5
    found = json.loads(both.stdout)
    assert [each["pipeline"] for each in found["pipelines"]] == ["fresh", "stale"]
    assert [each["stale"] for each in found["pipelines"]] == [False, True]
    assert found["needs_attention"] is True


def test_without_a_name_it_is_the_current_directory(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    assert "need" in status().stderr
    (home / "none").mkdir()
    monkeypatch.chdir(home / "none")
    empty = status()
    assert empty.exit_code == 2
    assert empty.stderr == ("tidemark: . has no *.yaml or *.yml file; name a spec, or its folder\n")


def test_a_ledger_that_is_damaged_hides_no_other_pipeline(home: Path) -> None:
    for file in (home / "lake" / "stale" / "_ledger").glob("*.parquet"):
        file.unlink()
    found = status(home, "--json")
    assert found.exit_code == 4
    told = json.loads(found.stdout)
    assert [each["pipeline"] for each in told["pipelines"]] == ["fresh"]
    assert told["refused"] == [{"pipeline": "stale", "code": "TABLE_CHANGED"}]
    assert "_ledger is damaged or has lost files" in found.stderr


def test_an_open_run_is_left_or_at_work(tmp_path: Path) -> None:
    pipeline = write(tmp_path, "open")
    record(pipeline, *closed(timedelta(minutes=5)), LedgerEntry(OPEN, run=2))
    left = status(tmp_path)
    assert (left.exit_code, "open: open: run 2: the next run finishes it" in left.stdout) == (
        5,
        True,
    )
    lock = tmp_path / "lake" / "open" / "_lock"
    lock.touch()
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        worked = status(tmp_path)
        other.communicate(b"\n")
    assert worked.exit_code == 0
    assert "running" in worked.stdout


def test_whoever_asks_takes_no_lock_from_its_own_process(tmp_path: Path) -> None:
    pipeline = write(tmp_path, "held")
    assert find_writer(pipeline) is None
    with held_here(pipeline):
        holder = find_writer(pipeline)
        assert holder is not None
        probe = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), 6)"
        lock = str(tmp_path / "lake" / "held" / "_lock")
        command = [sys.executable, "-c", probe, lock]
        tried = subprocess.run(command, capture_output=True, check=False)
        assert tried.returncode != 0, "the lock was freed by asking"
    assert find_writer(pipeline) is None


def test_from_python_the_time_is_a_value(home: Path) -> None:
    pipeline = tidemark.load_pipeline(home / "fresh.yaml")
    assert not tidemark.status(pipeline).is_stale
    later = datetime.now(UTC) + timedelta(hours=1)
    found = tidemark.status(pipeline, later)
    assert (found.at, found.is_stale, found.run) == (later, True, 1)


def test_a_folder_is_found_from_a_directory_that_is_gone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = home / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    said = status(home)
    assert said.exit_code == 5, said.stderr
    assert "stale" in said.stdout
