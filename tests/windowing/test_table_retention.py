"""Whether a table has files that VACUUM could delete is known without asking Spark."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from windowing import table_retention

NOW = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("file", "age", "expected"),
    [
        ("part-0.parquet", timedelta(days=31), "old"),
        ("part-0.parquet", timedelta(days=30), "none"),
        ("_change_data/cdc-0.parquet", timedelta(days=31), "old"),
        ("deletion_vector.bin", timedelta(days=31), "old"),
        ("_delta_log/0.json", timedelta(days=31), "none"),
    ],
)
def test_files_older_than_is_asked_for(
    tmp_path: Path, file: str, age: timedelta, expected: str
) -> None:
    written = tmp_path / "_delta_log" / "table" / file
    written.parent.mkdir(parents=True)
    written.touch()
    os.utime(written, times=((NOW - age).timestamp(),) * 2)
    table = f"file://{written.parents[len(Path(file).parts) - 1]}"
    assert table_retention.has_older_files(table, NOW - timedelta(days=30)) is (expected == "old")
