"""An output says by a property until when it is closed; without it no other table is opened."""

import json
from pathlib import Path

import pytest
from pyspark.sql import types as T

from windowing.closed.rule import CLOSED_UNTIL, REOPENED
from windowing.closed.table import find_closed, locate_restated
from windowing.columns import END, START
from windowing.location import Location
from windowing.storage import own_tables, plain_table

COLUMNS = T.StructType(
    [
        T.StructField("key", T.StringType()),
        T.StructField(START, T.TimestampType()),
        T.StructField(END, T.TimestampType()),
    ]
)
IDENTITY = ("key", START, END)


def create(home: Path, setting: str | None) -> Location:
    """An output with this property, and the table of its restated rows."""
    path = Location(str(home / "hourly"))
    plain_table.create(path, COLUMNS.json(), {})
    plain_table.create(locate_restated(path), COLUMNS.json(), {})
    if setting is not None:
        # As Spark sets it; delta-rs does not.
        log = path.local / "_delta_log"
        actions = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
        (changed,) = (each for each in actions if "metaData" in each)
        changed["metaData"]["configuration"][CLOSED_UNTIL] = setting
        (log / f"{1:020}.json").write_text(json.dumps(changed) + "\n")
    return path


def test_a_closed_output_is_still_plain_and_says_until_when(tmp_path: Path) -> None:
    snapshot = own_tables.open_snapshot(create(tmp_path, "5"))
    assert snapshot.plain is not None
    assert own_tables.find_setting(snapshot, CLOSED_UNTIL) == "5"
    assert own_tables.find_setting(snapshot, "tidemark.other") is None
    found = find_closed(snapshot, IDENTITY, IDENTITY, None)
    assert found is not None
    assert (found.rows.until_us, found.restated.path.name) == (5, "_restated_hourly")
    assert [found.reaches(low_us) for low_us in (None, 5, 6)] == [True, True, False]


@pytest.mark.parametrize("setting", [None, REOPENED])
def test_where_nothing_is_closed_no_other_table_is_opened(
    setting: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = own_tables.open_snapshot(create(tmp_path, setting))
    monkeypatch.setattr(own_tables, "open_snapshot", lambda _: pytest.fail("opened"))
    assert find_closed(snapshot, IDENTITY, IDENTITY, None) is None


def test_a_table_that_is_not_there_is_not_closed(tmp_path: Path) -> None:
    snapshot = own_tables.open_snapshot(Location(str(tmp_path / "hourly")))
    assert find_closed(snapshot, IDENTITY, IDENTITY, None) is None
