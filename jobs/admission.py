"""The first half of a micro-batch: rows -> rows with an event time -> rows with an outcome, counted before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing import delta
from windowing.admit.digest import with_row_digest
from windowing.admit.frame import ACCEPTED, LATE, PARTIAL, QUARANTINED, Law, Memory, judged, plain
from windowing.admit.rule import cuts, suspicious_before
from windowing.columns import END, LAST, MISSED, OUTCOME, START, WHY
from windowing.columns import T as TIME
from windowing.errors import TidemarkError
from windowing.merge.rule import complete
from windowing.panes import table as state
from windowing.panes.frame import Range
from windowing.source import frame as source
from windowing.source.table import earlier_types
from windowing.spec.duration import DAY
from windowing.spec.pipeline import Pipeline


@dataclass(frozen=True)
class Batch:
    """What one micro-batch is judged by and stamped with; the same on every replay."""

    spark: SparkSession
    pipeline: Pipeline
    stamp: state.Stamp
    arrival_us: int
    worn: bool = False
    """Whether panes of the past may be gone, so that what overlaps them comes from the source."""
    fed: bool = False
    """Whether the source was seen to change its past."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns."""
        return self.pipeline.source.key

    @property
    def changing(self) -> bool:
        """Whether the source may hold other rows than were read from it once."""
        return self.fed or self.pipeline.source.changes == "feed"


@dataclass(frozen=True)
class Admitted:
    """The batch with an outcome on every row, its counts, and the range of its accepted event times (None: nothing accepted)."""

    rows: DataFrame
    columns: list[str]
    schema: T.StructType
    counts: Mapping[str, int]
    within: Range | None

    @property
    def accepted(self) -> DataFrame:
        """The events that count."""
        return self.rows.where(F.col(OUTCOME) == ACCEPTED)


def admit(batch: Batch, rows: DataFrame) -> Admitted:
    """One outcome for every row, counted before anything is written."""
    event_id = batch.pipeline.source.event_id
    checked = timed(batch, with_row_digest(rows, earlier_types(batch.spark, batch.pipeline)))
    facts = checked.agg(
        F.count("*").alias("n"), F.count(WHY).alias("bad"), *(f(F.when(F.col(WHY).isNull(), F.col(TIME))).alias(n) for f, n in _ENDS)
    ).first()
    if facts is None:
        raise TidemarkError("the batch could not be counted")
    late_before = suspicious_before(batch.pipeline, batch.stamp.judged_us)
    suspicious = late_before is not None and facts["low"] is not None and facts["low"] < late_before
    if not suspicious and event_id is None:
        counts = {"read": facts["n"], "accepted": facts["n"] - facts["bad"], "quarantined": facts["bad"], QUARANTINED: facts["bad"]}
        within = None if facts["low"] is None else Range(facts["low"], facts["high"])
        return Admitted(plain(checked), rows.columns, rows.schema, {**counts, "late": 0, "duplicate": 0}, within)
    result = judged(checked, batch.pipeline, law(batch), memory(batch, checked, suspicious=suspicious)).localCheckpoint(eager=True)
    counted = _counted(result, batch.pipeline)
    within = None if counted["low"] is None else Range(counted.pop("low"), counted.pop("high"))
    return Admitted(result, rows.columns, rows.schema, {k: v for k, v in counted.items() if v is not None}, within)


_FAR_US = 50 * 366 * DAY
"""How far ahead local times are placed exactly although no event may be; every year has clock changes, and each is a part of the query."""
_ENDS = ((F.min, "low"), (F.max, "high"))


def timed(batch: Batch, rows: DataFrame) -> DataFrame:
    """Rows with an event time or a reason: rows -> rows + [__t, __why]."""
    pipeline = batch.pipeline
    column = pipeline.source.event_time.column
    if column is None:
        return source.checked(source.arrived(rows, batch.arrival_us), pipeline, rows.schema, batch.arrival_us)
    read, ends = source.timed(rows, pipeline), None
    if pipeline.source.zone is not None and not isinstance(rows.schema[column].dataType, T.TimestampType):
        ends = read.agg(F.min(source.NAIVE), F.max(source.NAIVE)).first()
    if ends is not None and ends[0] is not None:
        latest = max(ends[0], min(ends[1], batch.arrival_us + max(pipeline.watermark.max_future_us, _FAR_US) + 2 * DAY))
        read = source.placed(read, pipeline.source.zone, ends[0], latest)
    return source.checked(read, pipeline, rows.schema, batch.arrival_us)


def law(batch: Batch) -> Law:
    """What this batch's lateness is judged by."""
    watermark_us = batch.stamp.judged_us
    return Law(watermark_us, batch.pipeline.watermark.allowed_lateness_us, cuts(batch.pipeline, watermark_us))


def memory(batch: Batch, checked: DataFrame, *, suspicious: bool) -> Memory:
    """What earlier batches accepted, as far as this batch's outcomes depend on it."""
    event_id, ids = batch.pipeline.source.event_id, None
    if event_id is not None:
        named = checked.select(F.col(f"`{event_id}`").cast("string").alias("event_id")).distinct()
        ids = state.ids_before(batch.spark, batch.pipeline, batch.stamp, named)
    stored = {}
    if suspicious:
        for window in batch.pipeline.chained:
            kept = delta.read(batch.spark, complete(batch.pipeline, window).path)
            stored[window.name] = kept.select(*batch.keys, START, END, LAST)
    return Memory(ids, stored)


def _counted(rows: DataFrame, pipeline: Pipeline) -> dict[str, int]:
    """Counts by outcome, partly late rows by window, and the range of accepted event times."""
    outcome, accepted = F.col(OUTCOME), F.col(OUTCOME) == ACCEPTED
    outcomes = [F.count_if(outcome == o).alias(o) for o in (ACCEPTED, LATE, "duplicate", QUARANTINED)]
    partly = F.count_if(accepted & (F.size(MISSED) > 0)).alias(PARTIAL)
    missed = [
        F.count_if(accepted & F.array_contains(F.col(MISSED)["window"], w.name)).alias(f"partial.{w.name}") for w in pipeline.windows
    ]
    ends = [f(F.when(accepted, F.col(TIME))).alias(n) for f, n in _ENDS]
    row = rows.agg(F.count("*").alias("read"), *outcomes, partly, *missed, *ends).first()
    if row is None or row["read"] != sum(row[o] for o in (ACCEPTED, LATE, "duplicate", QUARANTINED)):
        raise TidemarkError(f"the batch does not add up, so nothing was written: {row}")
    return dict(row.asDict())
