"""`tidemark status` on a lake on shared storage: the same lines, and a lock that is a file."""

from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.cli.main import main
from jobs.locking.lock_file import held_here
from tests.jobs.cli.test_status import SPEC, closed, record, status
from windowing.ledger.rule import OPEN, LedgerEntry
from windowing.ledger.table import create_ledger
from windowing.location import Location
from windowing.spec.load import load_pipeline


def test_a_pipeline_on_shared_storage_is_fresh_left_open_or_at_work(
    shared_home: Location, tmp_path: Path
) -> None:
    file = tmp_path / "trips.yaml"
    file.write_text(
        SPEC.format(name="trips").replace("lake: lake", f"lake: {shared_home}/lake")
        + "freshness: 30 minutes\n"
    )
    assert "there is no watermark yet" in status(file).stdout
    pipeline = load_pipeline(file)
    create_ledger(pipeline)
    record(pipeline, *closed(timedelta(minutes=5)))
    fresh = status(file)
    assert (fresh.exit_code, "5 min ago" in fresh.stdout) == (0, True)
    record(pipeline, LedgerEntry(OPEN, run=2))
    assert status(file).exit_code == 5
    with held_here(pipeline):
        worked = status(file)
    assert (worked.exit_code, "running" in worked.stdout) == (0, True)
    assert status(file).exit_code == 5, "the lock was given back"


@pytest.mark.usefixtures("s3_home")
@pytest.mark.parametrize("words", [["status"], ["publish", "--list"], ["report"]], ids=" ".join)
def test_a_bucket_that_is_not_there_is_no_damaged_ledger(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "trips.yaml"
    file.write_text(
        SPEC.format(name="trips").replace("lake: lake", "lake: s3://bucket-of-nobody/lake")
    )
    said = CliRunner().invoke(main, [*words, str(file)])
    assert said.exit_code == 1, said.output
    assert "there is no such bucket; check its name" in said.output
    assert "TABLE_CHANGED" not in said.output
