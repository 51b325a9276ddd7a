"""The first half of a micro-batch: rows -> rows with an event time -> rows with an outcome, counted before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.microbatch.context import Batch
from windowing import delta
from windowing.admit.digest import with_row_digest
from windowing.admit.frame import ACCEPTED, LATE, PARTIAL, QUARANTINED, Law, Memory, judged, plain
from windowing.admit.rule import cuts, suspicious_before
from windowing.columns import END, LAST, MISSED, OUTCOME, START, UNANSWERED, WHY
from windowing.columns import T as TIME
from windowing.errors import TidemarkError
from windowing.ledger.nulls import WHERE, name_null_count, read_null_counts
from windowing.merge.rule import complete
from windowing.panes import table as state
from windowing.panes.frame import Range
from windowing.source import frame as source
from windowing.source.table import earlier_types
from windowing.spec.duration import DAY
from windowing.spec.pipeline import Pipeline


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
    """One outcome for every event among the rows of a batch, counted before anything is written."""
    event_id = batch.pipeline.source.event_id
    wider = source.add_computed_columns(rows, batch.pipeline)
    told_apart = with_row_digest(wider, earlier_types(batch.spark, batch.pipeline))
    marked = timed(batch, source.mark_unanswered(told_apart, batch.pipeline))
    facts = _facts(marked, batch.pipeline)
    checked = marked.where(~F.col(UNANSWERED)).drop(UNANSWERED)
    lost = keep_null_counts(facts)
    late_before = suspicious_before(batch.pipeline, batch.stamp.judged_us)
    suspicious = late_before is not None and facts["low"] is not None and facts["low"] < late_before
    if not suspicious and event_id is None:
        counts = {
            "read": facts["n"],
            "accepted": facts["n"] - facts["bad"],
            "quarantined": facts["bad"],
            QUARANTINED: facts["bad"],
        }
        within = None if facts["low"] is None else Range(facts["low"], facts["high"])
        counts = {**counts, "late": 0, "duplicate": 0, **lost}
        return Admitted(plain(checked), wider.columns, wider.schema, counts, within)
    result = judged(
        checked, batch.pipeline, law(batch), memory(batch, checked, suspicious=suspicious)
    ).localCheckpoint(eager=True)
    counted = _counted(result, batch.pipeline)
    within = None if counted["low"] is None else Range(counted.pop("low"), counted.pop("high"))
    counts = {**{k: v for k, v in counted.items() if v is not None}, **lost}
    return Admitted(result, wider.columns, wider.schema, counts, within)


_FAR_US = 50 * 366 * DAY
"""How far ahead local times are placed exactly although no event may be; every year has clock changes, and each is a part of the query."""
_ENDS = ((F.min, "low"), (F.max, "high"))


def timed(batch: Batch, rows: DataFrame) -> DataFrame:
    """Rows with an event time or a reason: rows -> rows + [__t, __why]."""
    pipeline = batch.pipeline
    column = pipeline.source.event_time.column
    if column is None:
        return source.checked(
            source.arrived(rows, batch.arrival_us), pipeline, rows.schema, batch.arrival_us
        )
    read, ends = source.timed(rows, pipeline), None
    if pipeline.source.zone is not None and not isinstance(
        rows.schema[column].dataType, T.TimestampType
    ):
        ends = read.agg(F.min(source.NAIVE), F.max(source.NAIVE)).first()
    if ends is not None and ends[0] is not None:
        latest = max(
            ends[0],
            min(
                ends[1], batch.arrival_us + max(pipeline.watermark.max_future_us, _FAR_US) + 2 * DAY
            ),
        )
        read = source.placed(read, pipeline.source.zone, ends[0], latest)
    return source.checked(read, pipeline, rows.schema, batch.arrival_us)


def law(batch: Batch) -> Law:
    """What this batch's lateness is judged by."""
    watermark_us = batch.stamp.judged_us
    return Law(
        watermark_us,
        batch.pipeline.watermark.allowed_lateness_us,
        cuts(batch.pipeline, watermark_us),
    )


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


def count_lost_values(pipeline: Pipeline, among: Column) -> list[Column]:
    """By the ledger's names, of how many rows a computed column lost the value; to be aggregated.

    It is NULL there although its input has a value. Only rows for which `among` is true count.
    """
    return [
        F.count_if(among & lost).alias(name_null_count(name))
        for name, lost in source.find_lost_values(pipeline).items()
    ]


def keep_null_counts(row: Row) -> dict[str, int]:
    """Of what `count_lost_values` found in an aggregated row the counts that are not 0."""
    found = read_null_counts(row.asDict())
    return {name_null_count(column): n for column, n in found.items()}


def _facts(marked: DataFrame, pipeline: Pipeline) -> Row:
    """How many events there are, how many are bad, when the others are, what expressions lost."""
    event = ~F.col(UNANSWERED)
    events = [F.count_if(event).alias("n"), F.count(F.when(event, F.col(WHY))).alias("bad")]
    good = F.when(event & F.col(WHY).isNull(), F.col(TIME))
    ends = [f(good).alias(name) for f, name in _ENDS]
    lost = count_lost_values(pipeline, event)
    unanswered = F.count_if(F.col(UNANSWERED)).alias(name_null_count(WHERE))
    facts = marked.agg(*events, *ends, *lost, unanswered).first()
    if facts is None:
        raise TidemarkError("the batch could not be counted")
    return facts


def _counted(rows: DataFrame, pipeline: Pipeline) -> dict[str, int]:
    """Counts by outcome, partly late rows by window, and the range of accepted event times."""
    outcome, accepted = F.col(OUTCOME), F.col(OUTCOME) == ACCEPTED
    outcomes = [
        F.count_if(outcome == o).alias(o) for o in (ACCEPTED, LATE, "duplicate", QUARANTINED)
    ]
    partly = F.count_if(accepted & (F.size(MISSED) > 0)).alias(PARTIAL)
    missed = [
        F.count_if(accepted & F.array_contains(F.col(MISSED)["window"], w.name)).alias(
            f"partial.{w.name}"
        )
        for w in pipeline.windows
    ]
    ends = [f(F.when(accepted, F.col(TIME))).alias(n) for f, n in _ENDS]
    row = rows.agg(F.count("*").alias("read"), *outcomes, partly, *missed, *ends).first()
    if row is None or row["read"] != sum(
        row[o] for o in (ACCEPTED, LATE, "duplicate", QUARANTINED)
    ):
        raise TidemarkError(f"the batch does not add up, so nothing was written: {row}")
    return dict(row.asDict())
