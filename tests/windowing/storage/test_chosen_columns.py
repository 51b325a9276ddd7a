"""Some columns of a version, read without Spark from tables as delta-rs and Spark leave them."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from windowing.location import Location
from windowing.storage.chosen_columns import read_columns
from windowing.storage.control import TableError

AT = datetime(2600, 1, 1, 5, tzinfo=UTC)
AT_US = int(AT.timestamp()) * 1_000_000


def write(path: Path, **columns: list[object]) -> None:
    write_deltalake(str(path), pa.table(columns), mode="append", schema_mode="merge")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two commits, of which the second has a column more."""
    path = tmp_path / "a b"
    write(path, n=[1, 2], at=[AT, None])
    write(path, n=[3], at=[AT], late=["x"])
    return path


def test_columns_come_in_their_order_with_times_as_microseconds(table: Path) -> None:
    found = read_columns(Location(str(table)), 1, ("at", "n", "late"))
    assert found.column_names == ["at", "n", "late"]
    rows = sorted(found.to_pylist(), key=lambda row: row["n"])
    assert rows == [
        {"at": AT_US, "n": 1, "late": None},
        {"at": None, "n": 2, "late": None},
        {"at": AT_US, "n": 3, "late": "x"},
    ]


def test_an_older_version_has_its_own_rows_and_columns(table: Path) -> None:
    where = Location(str(table))
    assert read_columns(where, 0, ("n",)).column("n").to_pylist() == [1, 2]
    with pytest.raises(TableError, match="no column late"):
        read_columns(where, 0, ("late",))


def test_a_version_without_rows_has_the_columns(table: Path) -> None:
    DeltaTable(str(table)).delete()
    found = read_columns(Location(str(table)), 2, ("n", "at"))
    assert (found.num_rows, found.column_names) == (0, ["n", "at"])


def test_a_version_that_is_not_there_is_an_error_of_the_table(table: Path) -> None:
    with pytest.raises(TableError):
        read_columns(Location(str(table)), 9, ("n",))


def test_texts_are_plain_ones_after_a_merge_that_stores_views_of_them(table: Path) -> None:
    source = pa.table({"n": [3], "late": ["y"]})
    merger = DeltaTable(str(table)).merge(source, "t.n = s.n", source_alias="s", target_alias="t")
    merger.when_matched_update({"late": "s.late"}).execute()
    found = read_columns(Location(str(table)), 2, ("n", "late"))
    assert found.schema.field("late").type == pa.string()
    assert sorted(found.to_pylist(), key=lambda row: row["n"])[-1] == {"n": 3, "late": "y"}


@pytest.mark.parametrize("feature", ["columnMapping", "typeWidening"])
def test_a_feature_that_changes_what_files_contain_is_refused(table: Path, feature: str) -> None:
    log = table / "_delta_log" / f"{2:020}.json"
    log.write_text(
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,'
        f'"readerFeatures":["{feature}"],"writerFeatures":["{feature}"]}}}}\n'
    )
    with pytest.raises(TableError, match=feature):
        read_columns(Location(str(table)), 2, ("n",))
