"""The ledger as a table: entries come back as they were recorded, and one writer excludes another.

Only the last test needs Spark, which reads the ledger as any Delta table.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.windowing.spec.specs import changed
from windowing.errors import Busy
from windowing.grid.zone import FIRST_US, LAST_US
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import CLOSE, INTENT, OPEN, LedgerEntry
from windowing.ledger.table import (
    create_ledger,
    read_history,
    record_entries,
    record_watermark,
)
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta

FULL = LedgerEntry(
    step=CLOSE,
    generation=1,
    run=1,
    batch=0,
    at=1,
    arrival=LAST_US,
    watermark_in=None,
    watermark_out=FIRST_US,
    offsets='v1\n{"index": -1}',
    source_id="id",
    source_version=7,
    spec="2:abc",
    counts={"read": 3, "accepted": 2},
    versions={"hourly": 4},
    note="ü",
)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """A pipeline whose lake is empty."""
    return load_pipeline(changed(lake=str(tmp_path)))


def steps(pipeline: Pipeline) -> list[tuple[int, str]]:
    """The number and the step of each entry."""
    return [(entry.seq, entry.step) for entry in read_history(pipeline).entries]


def test_before_the_first_run_the_story_is_empty(pipeline: Pipeline) -> None:
    assert read_history(pipeline) == LedgerHistory()
    create_ledger(pipeline)
    create_ledger(pipeline)
    assert read_history(pipeline) == LedgerHistory()


def test_entries_come_back_as_they_were_recorded(pipeline: Pipeline) -> None:
    told = record_entries(pipeline, LedgerHistory(), [LedgerEntry(OPEN, run=1), FULL])
    told = record_entries(pipeline, told, [replace(FULL, counts={}, versions={}, note=None)])
    assert read_history(pipeline) == told
    assert [entry.seq for entry in told.entries] == [0, 1, 2]
    assert told.entries[1] == replace(FULL, seq=1)


def test_a_writer_that_has_not_read_the_last_entry_is_refused(pipeline: Pipeline) -> None:
    """Its JVM has died, and with it the lock, and another writer has begun."""
    stale = record_entries(pipeline, LedgerHistory(), [LedgerEntry(OPEN, run=1)])
    record_entries(pipeline, read_history(pipeline), [LedgerEntry(INTENT, run=1, batch=0)])
    with pytest.raises(Busy, match="another writer has recorded a step"):
        record_entries(pipeline, stale, [LedgerEntry(CLOSE, run=1)])
    assert steps(pipeline) == [(0, OPEN), (1, INTENT)]


def test_a_version_without_an_entry_refuses_nobody(pipeline: Pipeline) -> None:
    """Maintenance makes such versions."""
    create_ledger(pipeline)
    told = record_entries(pipeline, LedgerHistory(), [LedgerEntry(OPEN, run=1)])
    told = record_entries(pipeline, replace(told, version=0), [LedgerEntry(CLOSE, run=1)])
    assert steps(pipeline) == [(0, OPEN), (1, CLOSE)]


def test_spark_reads_the_ledger_as_any_delta_table(pipeline: Pipeline, spark: SparkSession) -> None:
    record_entries(pipeline, LedgerHistory(), [FULL])
    record_watermark(pipeline, 1, FULL, 5)
    record_watermark(pipeline, 1, FULL, 6)
    record_watermark(pipeline, 1, FULL, 7)
    record_watermark(pipeline, 2, FULL, 8)
    [row] = (
        delta.read(spark, pipeline.table("_ledger"))
        .selectExpr("unix_micros(watermark_out)", "unix_micros(arrival)", "counts", "versions")
        .collect()
    )
    assert [*row] == [FIRST_US, LAST_US, FULL.counts, FULL.versions]
    rows = (
        delta.read(spark, pipeline.table("_watermarks"))
        .selectExpr("run", "unix_micros(watermark)", "unix_micros(max_event_time)", "read")
        .orderBy("run")
        .collect()
    )
    assert [[*row] for row in rows] == [[1, FIRST_US, 7, 3], [2, FIRST_US, 8, 3]]
