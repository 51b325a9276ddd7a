"""The history of revised windows, from versions of a Delta table that are written by hand. No JVM.

Its values are told as other commands tell them, and columns that came later leave no hole in it.
"""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from tests.support.report_facts import FACTS, MADE, SAMPLES
from tests.support.report_page import read_page
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import CLOSE, LedgerEntry
from windowing.location import Location
from windowing.report.facts import Output, Revised
from windowing.report.kept_rows import Asked, read_revisions
from windowing.report.page import render_page
from windowing.report.view import view_facts
from windowing.spec.load import load_pipeline
from windowing.storage.chosen_columns import read_values

AT = datetime(2013, 4, 3, 10, tzinfo=UTC)
NAN = float("nan")
DOCUMENT = {
    "name": "orders",
    "source": {"table": "/lake/source", "event_time": "at", "key": ["opened"], "event_id": "id"},
    "watermark": {"delay": "30 minutes", "allowed_lateness": "2 hours"},
    "aggregates": {"last": "max(at)", "mean": "avg(price)", "seen": "collect(price, 2)"},
    "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
}
INSTANT = pa.timestamp("us", "UTC")
COLUMNS = pa.schema(
    [
        ("opened", INSTANT),
        ("window_start", INSTANT),
        ("window_end", INSTANT),
        ("last", INSTANT),
        ("mean", pa.float64()),
        ("revision", pa.int64()),
        ("run", pa.int64()),
    ]
)
NEWER = COLUMNS.append(pa.field("seen", pa.list_(pa.float64())))


def write_versions(path: Path) -> None:
    """A window of three revisions; its last column came with the third version."""
    row = {"opened": AT, "window_start": AT, "window_end": AT.replace(hour=11), "last": AT}
    rows = [
        (COLUMNS, {**row, "mean": 1.5, "revision": 0, "run": 1}),
        (COLUMNS, {**row, "mean": NAN, "revision": 1, "run": 2}),
        (NEWER, {**row, "mean": NAN, "revision": 1, "run": 2, "seen": None}),
        (NEWER, {**row, "mean": NAN, "revision": 2, "run": 3, "seen": [0.5, None]}),
    ]
    for schema, values in rows:
        table = pa.Table.from_pylist([values], schema=schema)
        write_deltalake(str(path), table, mode="overwrite", schema_mode="overwrite")


def read_revised(lake: Path) -> Revised:
    pipeline = load_pipeline({**DOCUMENT, "lake": str(lake)})
    write_versions(lake / "orders" / "hourly")
    assert pipeline.table("hourly") == Location(str(lake / "orders" / "hourly"))
    closes = [LedgerEntry(CLOSE, run=n, versions={"hourly": n - 1}) for n in (1, 2, 3, 4)]
    output = Output("hourly", "", 1, 3, None, ())
    past = LedgerHistory(tuple(closes))
    found = read_revisions(pipeline, pipeline.windows[0], output, past, read_values, Asked.VALUES)
    assert found is not None
    (revised,) = found.most
    return revised


def test_a_window_has_its_history_from_before_an_aggregate_was_added(tmp_path: Path) -> None:
    revised = read_revised(tmp_path)
    assert [(was.run, was.revision) for was in revised.history] == [(1, 0), (2, 1), (3, 2)]
    assert [was.values["seen"] for was in revised.history] == [None, None, [0.5, None]]


def test_values_of_a_window_are_told_as_other_commands_tell_them(tmp_path: Path) -> None:
    revised = read_revised(tmp_path)
    assert revised.key == {"opened": AT}
    assert {was.values["last"] for was in revised.history} == {AT}
    hourly = FACTS.outputs[0]
    shown = replace(hourly, revisions=replace(hourly.revisions, most=(revised,)))
    page = replace(FACTS, outputs=(shown,), samples=SAMPLES)
    (row,) = read_page(render_page(view_facts(page, MADE))).tables[
        "most revised windows of each output"
    ]
    assert row["key"] == "opened=2013-04-03 10:00Z"
    assert row["history"] == (
        "run 1, revision 0: last=2013-04-03 10:00Z, mean=1.5, seen=-; "
        "run 2, revision 1: last=2013-04-03 10:00Z, mean=nan, seen=-; "
        "run 3, revision 2: last=2013-04-03 10:00Z, mean=nan, seen=[0.5, null]"
    )
