"""The record of files, which this process reads and writes without a JVM."""

from pathlib import Path

import pytest

from windowing.errors import Busy
from windowing.ingest import table
from windowing.ingest.rule import FILES, LandedFile
from windowing.ingest.table import Record, TakenFile
from windowing.location import Location
from windowing.storage import control


def taken(name: str, size: int = 1) -> TakenFile:
    return TakenFile(LandedFile(name, size, 1_700_000_000_000_001), 3, 1)


def test_without_a_table_nothing_was_taken(tmp_path: Path) -> None:
    source = Location(str(tmp_path / "bronze"))
    assert table.read_record(source) == Record()
    assert table.find_committed(source) == 0
    assert not (tmp_path / "bronze").exists()


def test_a_record_has_files_as_they_were_taken_last(tmp_path: Path) -> None:
    source = Location(str(tmp_path / "bronze"))
    table.record_files(source, Record(), 1, [taken("a.csv"), taken("b.csv")], 1)
    table.record_files(source, table.read_record(source), 2, [taken("c.csv")], 2)
    # A changed file that counts as taken is recorded again, in the batch that is the last one.
    table.record_files(source, table.read_record(source), 2, [taken("a.csv", 9)], 3)
    found = table.read_record(source)
    assert (found.batch, found.is_void) == (2, False)
    assert {name: file.bytes for name, file in found.taken.items()} == {
        "a.csv": 9,
        "b.csv": 1,
        "c.csv": 1,
    }
    assert {name: file.bytes for name, file in found.before.items()} == {"a.csv": 1, "b.csv": 1}
    table.void_batch(source, 2, 4)
    voided = table.read_record(source)
    assert (voided.batch, voided.is_void, set(voided.taken)) == (2, True, {"a.csv", "b.csv"})
    table.record_files(source, voided, 2, [taken("b.csv", 9)], 5)
    kept = table.read_record(source)
    assert (kept.batch, kept.is_void, kept.taken["b.csv"].bytes) == (2, True, 9)


def test_a_record_that_another_has_written_to_is_not_followed(tmp_path: Path) -> None:
    source = Location(str(tmp_path / "bronze"))
    table.record_files(source, Record(), 1, [taken("a.csv")], 1)
    seen = table.read_record(source)
    table.record_files(source, seen, 2, [taken("b.csv")], 2)
    with pytest.raises(Busy):
        table.record_files(source, seen, 2, [taken("b.csv")], 2)


@pytest.mark.slow
def test_a_record_of_many_ingests_is_few_files(tmp_path: Path) -> None:
    source = Location(str(tmp_path / "bronze"))
    for batch in range(1, 53):
        record = table.read_record(source)
        table.record_files(source, record, batch, [taken(f"{batch}.csv")], batch)
    before = table.read_record(source)
    table.compact_record(source)
    after = table.read_record(source)
    assert (after.taken, after.batch) == (before.taken, 52)
    assert len(control.read_contents(table.home_of(source) / FILES).files) == 1
    table.record_files(source, after, 53, [taken("53.csv")], 53)
    assert table.read_record(source).version == after.version + 1
