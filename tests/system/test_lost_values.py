"""What an expression loses in a run.

Counted by column, shown in every report, once after crashes.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.backfill import backfill
from jobs.diagnosis.diagnose import examine_tables
from jobs.validate import validate
from tests.support.long_lived_pipeline import Crasher, ends_at
from tests.support.report_page import read_page
from tests.system.test_bad_rows import Source
from windowing.columns import DIGEST
from windowing.ledger.nulls import read_null_counts
from windowing.ledger.rule import BACKFILL_DONE, CLOSE, DONE
from windowing.ledger.table import read_history
from windowing.report.facts import Lost
from windowing.report.page import render_page
from windowing.report.table import read_facts
from windowing.report.view import view_facts
from windowing.storage import delta

SCHEMA = "id string, key string, ts timestamp, value bigint, amount string, kind string"
COLUMNS = {"paid": "cast(amount as decimal(10, 2))", "share": "100 / value"}
ROWS = (
    "'whole', 'k', timestamp'2026-01-01 10:00', 4, '2.50', '1'",
    "'both lost', 'k', timestamp'2026-01-01 10:01', 0, '1.234,50', '1'",
    "'one lost', 'k', timestamp'2026-01-01 10:02', null, 'ten', '1'",
    "'no input', 'k', timestamp'2026-01-01 10:03', null, null, '1'",
    "'refused', null, timestamp'2026-01-01 10:04', 0, '1', '1'",
    "'no answer', 'k', timestamp'2026-01-01 10:05', 0, 'x', 'soon'",
    "'no event', 'k', timestamp'2026-01-01 10:06', 0, 'x', '0'",
    "'nothing to answer', 'k', timestamp'2026-01-01 10:07', 0, 'x', null",
    "'also whole', 'k', timestamp'2026-01-01 10:08', 5, '3', '1'",
    "'again', 'k', timestamp'2026-01-01 10:09', 5, '3,5', '1'",
)
RUN = {"paid": 3, "share": 2, "source.where": 1}
CHUNK = {"paid": 3, "share": 1}
"""What the backfill meets: events alone, so neither the refused row nor the one that is none."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "event_id", ["id", pytest.param(None, marks=pytest.mark.deep)], ids=["judged", "plain"]
)
def test_what_expressions_lose_is_counted_and_shown(
    spark: SparkSession, tmp_path: Path, event_id: str | None
) -> None:
    said: dict[str, Any] = {"columns": COLUMNS, "where": "cast(kind as bigint) > 0"}
    aggregates = {"n": "count()", "total": "sum(paid)", "shares": "sum(share)"}
    source = Source(spark, tmp_path, SCHEMA, {**said, "event_id": event_id}, aggregates)
    source.land(*ROWS)
    for place in ("batch.processed", "batch.done", "run.marked"):
        ends_at(Crasher(place), source.run)
    report = source.run()
    assert (report.read, report.accepted, report.quarantined) == (7, 6, 1)
    assert report.gave_null == RUN, "the crashes before it count nothing twice"
    assert source.hours("n", "double(total)", "shares") == [("k", 10, 6, 5.5, 65.0)]
    _no_helper_is_kept(source)
    _a_backfill_counts_the_events_of_its_range(source)
    _every_report_says_so(source)
    _what_loses_nothing_says_nothing(source)


def _no_helper_is_kept(source: Source) -> None:
    kept = delta.read(source.spark, source.pipeline.table("_quarantine"))
    # The digest of a refused row is stored on purpose.
    assert [name for name in kept.columns if name.startswith("__")] == [DIGEST]
    assert [(r["id"], r["paid"]) for r in kept.collect()] == [("refused", 1)]


def _a_backfill_counts_the_events_of_its_range(source: Source) -> None:
    start, end = (datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (10, 11))
    found = backfill(source.spark, source.pipeline, start, end)
    assert (found.read, found.accepted, found.gave_null) == (6, 0, CHUNK)


def _every_report_says_so(source: Source) -> None:
    spark, pipeline = source.spark, source.pipeline
    past = read_history(pipeline)
    told = [(e.step, read_null_counts(e.counts)) for e in past.entries]
    assert [(step, lost) for step, lost in told if lost] == [
        (DONE, RUN),
        (CLOSE, RUN),
        (BACKFILL_DONE, CHUNK),
    ]
    assert examine_tables(spark, pipeline, past) == ()
    assert validate(spark, pipeline).passed, "what must add up is not disturbed"
    shown = read_facts(pipeline, lambda: spark)
    range_of = "backfill of [2026-01-01 10:00Z, 11:00Z)"
    assert shown.lost == (
        *(Lost("run 1", column, rows) for column, rows in RUN.items()),
        *(Lost(range_of, column, rows) for column, rows in CHUNK.items()),
    )
    text = render_page(view_facts(shown, datetime(2026, 1, 2, tzinfo=UTC)))
    assert "source.where" in read_page(text).sections["lost"].text


def _what_loses_nothing_says_nothing(source: Source) -> None:
    source.land("'later', 'k', timestamp'2026-01-01 12:00', 5, '3', '1'")
    assert source.run().gave_null == {}
    done = read_history(source.pipeline).done(2)
    assert [name for e in done for name in e.counts if name.startswith("null")] == []
