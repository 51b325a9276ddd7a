"""The figures that a task tells, from what its command prints."""

from json import dumps
from typing import Any

import pytest

from dags.summary import leave_out_days, summarize

COUNTS = {"read": 1745, "accepted": 1733, "late": 12, "duplicate": 0, "quarantined": 0, "erased": 0}
CHANGED = {
    "hourly": {"inserted": 1240, "updated": 3, "deleted": 0},
    "visits": {"inserted": 0, "updated": 0, "deleted": 0},
}
TABLES = {
    "hourly": {"merged": 0, "expired": 40, "files": [12, 3]},
    "_panes": {"merged": 1203, "expired": 2, "files": [9, 1]},
}
FAILED = [{"accepted": None}, {"accepted": "the airport was closed"}, {"accepted": None}]


@pytest.mark.parametrize(
    ("command", "report", "figures"),
    [
        (
            "run",
            {"run": 7, **COUNTS, "windows": CHANGED},
            "1,745 read, 12 late; hourly 1,240 inserted, 3 updated",
        ),
        ("run", {"run": 8, **COUNTS, "late": 0, "windows": {}}, "1,745 read"),
        ("run", {"run": None, **COUNTS, "windows": CHANGED}, "nothing new"),
        ("backfill", {"run": 7, **COUNTS, "late": 0, "windows": {}}, "1,745 read"),
        ("ingest", {"files": 0}, "nothing new"),
        (
            "ingest",
            {"files": 3, "read": 1012, "appended": 1000, "quarantined": 12},
            "3 files, 1,012 read, 1,000 appended, 12 quarantined",
        ),
        (
            "validate",
            {"checked": 14, "failed": FAILED},
            "14 checked, 3 failed (1 accepted)",
        ),
        ("validate", {"checked": 14, "failed": []}, "14 checked, 0 failed"),
        (
            "publish",
            {"outputs": {"hourly": {"version": 5, "rows": 1240}}, "held": {"visits": ["x"]}},
            "hourly v5, 1,240 rows; visits held back",
        ),
        ("publish", {"outputs": {}, "held": {}}, "nothing is published"),
        (
            "maintain",
            {"tables": TABLES},
            "1,203 rows merged, 42 expired, 21 files became 4",
        ),
        ("maintain", {"tables": {}}, "0 rows merged, 0 expired, 0 files became 0"),
    ],
)
def test_figures(command: str, report: dict[str, Any], figures: str) -> None:
    assert summarize(command, dumps(report)) == figures


@pytest.mark.parametrize(
    ("command", "result"),
    [
        pytest.param("report", "/srv/lake/shop/_report.html", id="a command without figures"),
        pytest.param("backfill", dumps({"chunks": [], "windows": {}}), id="a plan"),
        pytest.param("backfill", dumps({"agrees": True, "read": 3, "windows": {}}), id="a check"),
        pytest.param("run", dumps({"batches": 1}), id="what another release counts"),
        pytest.param("run", "[]", id="no object"),
        pytest.param("run", "", id="nothing"),
    ],
)
def test_where_there_are_no_figures_none_are_told(command: str, result: str) -> None:
    assert summarize(command, result) is None


def test_airflow_does_not_store_days_that_may_be_many() -> None:
    days = {"hourly": {"days": None, "ranges": []}}
    assert leave_out_days(dumps({"run": 7, "changed_days": days})) == dumps({"run": 7})
    for line in ("", "{} {", "[1]", dumps({"run": 7, "late": 0}), '{"run":7}'):
        assert leave_out_days(line) == line
