"""Values on their way to a person or a program: windows, JSON, statistics of commits."""

import json
from datetime import UTC, datetime

from windowing.report.commits import commit, total
from windowing.report.text import interval, plain


def test_windows_print_half_open() -> None:
    five = datetime(2013, 1, 1, 23, tzinfo=UTC)
    assert interval(five, five.replace(minute=30)) == "[2013-01-01 23:00Z, 23:30Z)"
    assert interval(five, datetime(2013, 1, 2, tzinfo=UTC)) == "[2013-01-01 23:00Z, 2013-01-02 00:00Z)"


def test_json_has_no_value_that_json_lacks() -> None:
    values = plain({"nan": float("nan"), "far": float("-inf"), "at": datetime(2013, 1, 1, tzinfo=UTC), "raw": b"\x01"})
    assert json.loads(json.dumps(values, allow_nan=False)) == {"nan": "nan", "far": "-inf", "at": "2013-01-01T00:00:00+00:00", "raw": "01"}


def test_a_commit_is_read_from_its_statistics() -> None:
    stats = {"numRecords": 3, "minValues": {"at": "2013-01-01T05:00:00.000Z"}, "maxValues": {"at": "2013-01-01T06:00:00.000Z"}}
    lines = [
        {"commitInfo": {"operation": "WRITE"}},
        {"add": {"path": "a", "dataChange": True, "stats": json.dumps(stats)}},
        {"add": {"path": "b", "dataChange": False, "stats": json.dumps(stats)}},
    ]
    read = commit(7, "\n".join(json.dumps(line) for line in lines), "at")
    assert (read.version, read.operation, read.files, read.rows, read.rewrites) == (7, "WRITE", 1, 3, False)
    assert (read.low, read.high) == (datetime(2013, 1, 1, 5, tzinfo=UTC), datetime(2013, 1, 1, 6, tzinfo=UTC))


def test_a_commit_that_takes_rows_away_says_so_and_unknown_rows_stay_unknown() -> None:
    lines = [{"remove": {"path": "a", "dataChange": True}}, {"add": {"path": "b", "dataChange": True}}]
    read = commit(1, "\n".join(json.dumps(line) for line in lines), "at")
    assert (read.rewrites, read.rows, read.low) == (True, None, None)
    assert total([1, None]) is None
