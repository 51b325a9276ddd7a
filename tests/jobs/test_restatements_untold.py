"""The steps that have brought events of restated rows, where they can't be known. No JVM."""

from pathlib import Path
from typing import Any

from jobs.restatements import Restatement, _find_brought
from tests.support.published_lake import PublishedLake
from windowing.grid.zone import moment
from windowing.ledger.period import Period
from windowing.ledger.rule import PERIOD_CLOSED, LedgerEntry
from windowing.ledger.table import read_history, record_entries


def test_no_step_is_not_an_unknown_one(tmp_path: Path) -> None:
    lake = PublishedLake(tmp_path)
    closed = LedgerEntry(PERIOD_CLOSED, run=0, at=1, note=Period(1, "invoiced").as_note())
    past = record_entries(lake.pipeline, read_history(lake.pipeline), [closed])
    spark: Any = None
    rows = []
    for start, end in (
        (moment(0), moment(1)),
        ("+10001-01-01T00:00:00Z", "+10001-01-02T00:00:00Z"),
    ):
        row = Restatement({"place": "EWR"}, start, end, "insert", 1, None, {"n": 1}, {"n": 1})
        rows.append((row, moment(1)))
    pipeline = lake.pipeline
    window = pipeline.window("hourly")
    found = _find_brought(spark, pipeline, past, window, rows, 5)
    assert found == {0: ()}
