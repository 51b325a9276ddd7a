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
from windowing.ledger.rule import COUNTS, Entry, Story
from windowing.spec.pipeline import Pipeline

LEDGER, WATERMARKS = "_ledger", "_watermarks"
SCHEMA = """
    seq bigint, generation int, run bigint, batch bigint, step string,
    at timestamp_ltz, arrival timestamp_ltz, watermark_in timestamp_ltz, watermark_out timestamp_ltz,
    offsets string, source_id string, source_version bigint, spec string,
    counts map<string,bigint>, versions map<string,bigint>, note string
"""
_WATERMARKS = ", ".join(
    [
        "run bigint, watermark timestamp_ltz, arrival timestamp_ltz, max_event_time timestamp_ltz",
        *(f"{c} bigint" for c in COUNTS),
    ]
)
_TIMES = ("at", "arrival", "watermark_in", "watermark_out")


def ledger_schema() -> T.StructType:
    """The columns of `_ledger`."""
    parsed = T.DataType.fromDDL(SCHEMA)
    return parsed if isinstance(parsed, T.StructType) else T.StructType()


def story(spark: SparkSession, pipeline: Pipeline) -> Story:
    """Everything the ledger holds; an empty story before the first run."""
    path = pipeline.table(LEDGER)
    if not delta.exists(spark, path):
        return Story()
    # As numbers: PySpark would hand out times on the clock of this process, whatever the session's.
    columns = [
        F.unix_micros(c).alias(c) if c in _TIMES else F.col(c) for c in ledger_schema().names
    ]
    rows = delta.read(spark, path).select(*columns).collect()
    return Story(tuple(sorted((_entry(row) for row in rows), key=lambda e: e.seq)))


def record(
    spark: SparkSession, pipeline: Pipeline, before: Story, entries: Iterable[Entry]
) -> Story:
    """Appends `entries` in one commit, numbered on from `before`; returns the longer story."""
    numbered = [replace(entry, seq=before.next_seq + n) for n, entry in enumerate(entries)]
    frame = delta.rows(spark, [_row(entry) for entry in numbered], SCHEMA)
    delta.append(frame, pipeline.table(LEDGER))
    return Story((*before.entries, *numbered))


def record_watermark(
    spark: SparkSession, pipeline: Pipeline, run: int, closed: Entry, max_event_us: int | None
) -> None:
    """Appends the run's row to `_watermarks`; a repetition for the same run writes nothing."""
    frame = _marked(spark, run, closed, max_event_us)
    delta.append(
        frame, pipeline.table(WATERMARKS), (f"{pipeline.name}:watermarks:{closed.generation}", run)
    )


def correct_watermark(
    spark: SparkSession, pipeline: Pipeline, run: int, closed: Entry, max_event_us: int | None
) -> None:
    """The same for a run that was ended before its close: the row that it may have left goes, in one commit."""
    path = pipeline.table(WATERMARKS)
    if not delta.exists(spark, path):
        record_watermark(spark, pipeline, run, closed, max_event_us)
        return
    frame = _marked(spark, run, closed, max_event_us)
    frame.write.format("delta").mode("overwrite").option("replaceWhere", f"run = {run}").save(path)


def _marked(spark: SparkSession, run: int, closed: Entry, max_event_us: int | None) -> DataFrame:
    times = {
        "watermark": closed.watermark_out,
        "arrival": closed.arrival,
        "max_event_time": max_event_us,
    }
    counts = {name: closed.counts.get(name, 0) for name in COUNTS}
    return delta.rows(
        spark,
        [{"run": run, **{name: _time(us) for name, us in times.items()}, **counts}],
        _WATERMARKS,
    )


def _row(entry: Entry) -> dict[str, Any]:
    values = {f.name: getattr(entry, f.name) for f in fields(entry)}
    times = {name: _time(values[name]) for name in _TIMES}
    return {**values, **times, "counts": dict(entry.counts), "versions": dict(entry.versions)}


def _entry(row: Row) -> Entry:
    return Entry(**row.asDict())


def _time(us: int | None) -> datetime | None:
    return None if us is None else moment(us)
