"""Whether a version of a table of restated rows has any is known by its log, without Spark."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from jobs.validate import _may_have_rows
from windowing.location import Location


def test_a_version_without_rows_needs_no_scan(tmp_path: Path) -> None:
    path = str(tmp_path / "_restated_hourly")
    rows = pa.table({"key": ["a", "b"], "n": pa.array([1, 2], pa.int64())})
    write_deltalake(path, rows.slice(0, 0))
    write_deltalake(path, rows, mode="append")
    DeltaTable(path).delete()
    found = [_may_have_rows(Location(path), version) for version in (0, 1, 2)]
    assert found == [False, True, False]


def test_a_version_that_the_log_does_not_tell_of_is_scanned(tmp_path: Path) -> None:
    path = str(tmp_path / "_restated_hourly")
    write_deltalake(path, pa.table({"n": pa.array([], pa.int64())}))
    assert _may_have_rows(Location(path), 7)
