"""The `_ledger` and `_watermarks` tables: read whole, appended to one step at a time."""

from collections.abc import Iterable
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing import delta
from windowing.grid.zone import moment
from windowing.ledger.rule import COUNTS, LedgerEntry, LedgerHistory
from windowing.spec.pipeline import Pipeline

LEDGER, WATERMARKS = "_ledger", "_watermarks"
SCHEMA = """
    seq bigint, generation int, run bigint, batch bigint, step string,
    at timestamp_ltz, arrival timestamp_ltz,
    watermark_in timestamp_ltz, watermark_out timestamp_ltz,
    offsets string, source_id string, source_version bigint, spec string,
    counts map<string,bigint>, versions map<string,bigint>, note string
"""
_COUNT_COLUMNS = ", ".join([f"{name} bigint" for name in COUNTS])
_WATERMARKS = f"""
    run bigint, watermark timestamp_ltz, arrival timestamp_ltz, max_event_time timestamp_ltz,
    {_COUNT_COLUMNS}
"""
_TIMES = ("at", "arrival", "watermark_in", "watermark_out")


def ledger_schema() -> T.StructType:
    """The columns of `_ledger`."""
    parsed = T.DataType.fromDDL(SCHEMA)
    # A list of columns is always a struct, which the type of `fromDDL` does not say.
    return parsed if isinstance(parsed, T.StructType) else T.StructType()


def read_history(spark: SparkSession, pipeline: Pipeline) -> LedgerHistory:
    """All entries of the ledger; an empty story before the first run."""
    path = pipeline.table(LEDGER)
    if not delta.exists(spark, path):
        return LedgerHistory()
    columns = []
    for name in ledger_schema().names:
        # Times are read as numbers, because PySpark would convert them to the clock of this
        # process, whatever the session's is.
        columns.append(F.unix_micros(name).alias(name) if name in _TIMES else F.col(name))
    rows = delta.read(spark, path).select(*columns).collect()
    entries = [_to_entry(row) for row in rows]
    return LedgerHistory(tuple(sorted(entries, key=lambda entry: entry.seq)))


def record_entries(
    spark: SparkSession, pipeline: Pipeline, before: LedgerHistory, entries: Iterable[LedgerEntry]
) -> LedgerHistory:
    """Appends `entries` in one commit, numbered from the end of `before`.

    Returns the longer story.
    """
    numbered = []
    for seq, entry in enumerate(entries, start=before.next_seq):
        numbered.append(replace(entry, seq=seq))
    rows = [_to_row(entry) for entry in numbered]
    delta.append(delta.rows(spark, rows, SCHEMA), pipeline.table(LEDGER))
    return LedgerHistory((*before.entries, *numbered))


def record_watermark(
    spark: SparkSession, pipeline: Pipeline, run: int, closed: LedgerEntry, max_event_us: int | None
) -> None:
    """Appends the run's row to `_watermarks`; idempotent for the same run."""
    frame = _watermark_row(spark, run, closed, max_event_us)
    transaction = (f"{pipeline.name}:watermarks:{closed.generation}", run)
    delta.append(frame, pipeline.table(WATERMARKS), transaction)


def correct_watermark(
    spark: SparkSession, pipeline: Pipeline, run: int, closed: LedgerEntry, max_event_us: int | None
) -> None:
    """Replaces the row that a run may have appended before it was interrupted, in one commit."""
    path = pipeline.table(WATERMARKS)
    if not delta.exists(spark, path):
        record_watermark(spark, pipeline, run, closed, max_event_us)
        return
    frame = _watermark_row(spark, run, closed, max_event_us)
    frame.write.format("delta").mode("overwrite").option("replaceWhere", f"run = {run}").save(path)


def _watermark_row(
    spark: SparkSession, run: int, closed: LedgerEntry, max_event_us: int | None
) -> DataFrame:
    row = {
        "run": run,
        "watermark": _to_time(closed.watermark_out),
        "arrival": _to_time(closed.arrival),
        "max_event_time": _to_time(max_event_us),
    }
    for name in COUNTS:
        row[name] = closed.counts.get(name, 0)
    return delta.rows(spark, [row], _WATERMARKS)


def _to_row(entry: LedgerEntry) -> dict[str, Any]:
    row = {field.name: getattr(entry, field.name) for field in fields(entry)}
    for name in _TIMES:
        row[name] = _to_time(row[name])
    row["counts"] = dict(entry.counts)
    row["versions"] = dict(entry.versions)
    return row


def _to_entry(row: Row) -> LedgerEntry:
    return LedgerEntry(**row.asDict())


def _to_time(us: int | None) -> datetime | None:
    return None if us is None else moment(us)
