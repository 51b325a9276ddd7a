"""One micro-batch, every stage named once: rows -> admitted -> refused tables, ids, panes and fragments (state) -> windows -> outputs.

Each write is one commit and carries the batch in its transaction, so a replayed batch repeats nothing; outputs are recomputed from
state, so a repeated MERGE changes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.together import together
from windowing import delta
from windowing.admit import table as refused_rows
from windowing.admit.frame import ACCEPTED, LATE, PARTIAL, QUARANTINED, Law, Memory, admitted_to, judged, plain
from windowing.admit.rule import cuts, suspicious_before
from windowing.columns import DIGEST, END, LAST, MISSED, OUTCOME, START, TOUCHED, WHY
from windowing.columns import T as TIME
from windowing.errors import TidemarkError
from windowing.grid.zone import moment
from windowing.merge import frame as merges
from windowing.merge import table as outputs
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.algebra import Algebra, Part
from windowing.panes.frame import Range
from windowing.panes.rule import Family, families
from windowing.source import frame as source
from windowing.spec.pipeline import Pipeline, Session, Sliding, Tumbling, Window
from windowing.windows import aligned, session


@dataclass(frozen=True)
class Batch:
    """What one micro-batch is judged by and stamped with; the same on every replay."""

    spark: SparkSession
    pipeline: Pipeline
    stamp: state.Stamp
    arrival_us: int

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns."""
        return self.pipeline.source.key


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


def process(batch: Batch, rows: DataFrame) -> dict[str, int]:
    """Carries one micro-batch through every stage; returns its counts, among them `max_event_time` in microseconds."""
    admitted = admit(batch, rows)
    counts = dict(admitted.counts)
    if admitted.within is None:
        refuse(batch, admitted)
    else:
        counts["max_event_time"] = admitted.within.high_us
        parts = [partial_of(batch, admitted, subject) for subject in (*families(batch.pipeline), *batch.pipeline.sessions)]
        together([lambda: refuse(batch, admitted), lambda: remember(batch, admitted), *(p.store for p in parts)])
        for changed in together([output for part in parts for output in part.outputs()]):
            counts |= changed
        together([lambda p=p: p.fresh.unpersist() for p in parts])  # type: ignore[misc]
    admitted.rows.unpersist()
    return counts


def refuse(batch: Batch, admitted: Admitted) -> None:
    """Keeps the refused and the partly late rows."""
    rows = refused_rows.refused(admitted.rows, admitted.columns, batch.stamp)
    refused_rows.store(rows, batch.pipeline, admitted.counts, batch.stamp)


def admit(batch: Batch, rows: DataFrame) -> Admitted:
    """One outcome for every row, counted before anything is written."""
    checked = timed(batch, rows).persist()
    facts = checked.agg(
        F.count("*").alias("n"), F.count(WHY).alias("bad"), *(f(F.when(F.col(WHY).isNull(), F.col(TIME))).alias(n) for f, n in _ENDS)
    ).first()
    if facts is None:
        raise TidemarkError("the batch could not be counted")
    late_before = suspicious_before(batch.pipeline, batch.stamp.judged_us)
    suspicious = late_before is not None and facts["low"] is not None and facts["low"] < late_before
    if not suspicious and batch.pipeline.source.event_id is None:
        counts = {"read": facts["n"], "accepted": facts["n"] - facts["bad"], "quarantined": facts["bad"], QUARANTINED: facts["bad"]}
        within = None if facts["low"] is None else Range(facts["low"], facts["high"])
        return Admitted(plain(checked), rows.columns, rows.schema, {**counts, "late": 0, "duplicate": 0}, within)
    result = judged(checked, batch.pipeline, law(batch), memory(batch, checked, suspicious=suspicious)).persist()
    counted = _counted(result, batch.pipeline)
    checked.unpersist()
    within = None if counted["low"] is None else Range(counted.pop("low"), counted.pop("high"))
    return Admitted(result, rows.columns, rows.schema, {k: v for k, v in counted.items() if v is not None}, within)


_ENDS = ((F.min, "low"), (F.max, "high"))


def timed(batch: Batch, rows: DataFrame) -> DataFrame:
    """Rows with an event time or a reason: rows -> rows + [__t, __why, __digest]."""
    pipeline = batch.pipeline
    marked = rows.withColumn(DIGEST, F.xxhash64(*(f"`{f.name}`" for f in rows.schema.fields if not isinstance(f.dataType, T.MapType))))
    read = source.timed(marked, pipeline)
    ends = None
    if pipeline.source.zone is not None and not isinstance(rows.schema[pipeline.source.event_time.column].dataType, T.TimestampType):
        ends = read.agg(F.min(source.NAIVE), F.max(source.NAIVE)).first()
    if ends is not None and ends[0] is not None:
        read = source.placed(read, pipeline.source.zone, ends[0], ends[1])
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
        for window in batch.pipeline.sessions:
            stored[window.name] = delta.read(batch.spark, batch.pipeline.table(window.name)).select(*batch.keys, START, END, LAST)
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


def remember(batch: Batch, admitted: Admitted) -> None:
    """Keeps the ids that were accepted."""
    event_id = batch.pipeline.source.event_id
    if event_id is not None:
        ids = admitted.accepted.where(F.col(f"`{event_id}`").isNotNull())
        kept = ids.select(F.col(f"`{event_id}`").cast("string").alias("event_id"), F.timestamp_micros(TIME).alias("event_time"), DIGEST)
        state.store(kept.withColumnRenamed(DIGEST, "digest"), batch.pipeline, state.SEEN, batch.stamp, "event_id")


@dataclass(frozen=True)
class Panes:
    """The panes a batch brings to one family, and the windows they touch."""

    batch: Batch
    family: Family
    within: Range
    algebras: Mapping[str, Algebra]
    fresh: DataFrame

    def store(self) -> None:
        """Appends the panes to state."""
        state.store(self.fresh, self.batch.pipeline, self.family.table, self.batch.stamp, "pane_start")

    def outputs(self) -> list[Callable[[], dict[str, int]]]:
        """One step for each output: every window that holds a fresh pane is recomputed and written if it changed."""
        span = max(aligned.reach_us(w) for w in self.family.windows)
        low, high = moment(self.within.low_us - span), moment(self.within.high_us + span)
        before = state.panes_before(self.batch.spark, self.batch.pipeline, self.family.table, self.batch.stamp, low, high)
        return [partial(self._output, window, before) for window in self.family.windows]

    def _output(self, window: Tumbling | Sliding, before: DataFrame | None) -> dict[str, int]:
        own = {a.name: self.algebras[a.name] for a in window.aggregates}
        new = aligned_windows(self.batch, window, self.fresh, before, self.within, partials.parts(own.values()))
        return publishable(self.batch, window, merges.values(new, window, self.batch.keys, own), self.within)


@dataclass(frozen=True)
class Fragments:
    """The fragments a batch brings to one session window, and the sessions they touch."""

    batch: Batch
    window: Session
    within: Range
    algebras: Mapping[str, Algebra]
    fresh: DataFrame

    def store(self) -> None:
        """Appends the fragments to state."""
        state.store(self.fresh, self.batch.pipeline, state.fragments_table(self.window), self.batch.stamp, "first_event")

    def outputs(self) -> list[Callable[[], dict[str, int]]]:
        """One step: the sessions that a fresh fragment is in, absorbed ones deleted."""
        return [self._output]

    def _output(self) -> dict[str, int]:
        batch, window = self.batch, self.window
        new, old = sessions(batch, window, self.fresh, partials.parts(self.algebras.values()), self.within)
        valued = merges.values(new, window, batch.keys, self.algebras)
        changed = merges.inserts(valued, window, batch.keys) if old is None else merges.replacements(valued, old, window, batch.keys)
        return named(window, outputs.write(batch.spark, batch.pipeline, window, changed, batch.stamp.run))


def partial_of(batch: Batch, admitted: Admitted, subject: Family | Session) -> Panes | Fragments:
    """The batch's accepted events as partials of one family or one session window."""
    within = admitted.within or Range(0, 0)
    algebras = partials.algebras(batch.pipeline, subject.aggregates, admitted.schema)
    kept = partials.parts(algebras.values())
    if isinstance(subject, Family):
        return Panes(batch, subject, within, algebras, partials.panes(admitted.accepted, batch.keys, subject, kept, within).persist())
    events = admitted_to(admitted.accepted, subject.name)
    return Fragments(batch, subject, within, algebras, partials.fragments(events, batch.keys, subject.gap_us, kept).persist())


def aligned_windows(
    batch: Batch, window: Tumbling | Sliding, fresh: DataFrame, before: DataFrame | None, within: Range, kept: list[Part]
) -> DataFrame:
    """Every window of `window` that a pane of this batch is in: [keys, start, end, rows, parts]."""
    touched = batch.stamp.on(fresh).withColumn(TOUCHED, F.lit(1).cast("bigint"))
    columns = [*batch.keys, "pane_start", "judged_by", *(p.name for p in kept)]
    near = touched.select(*columns, TOUCHED)
    if before is not None:
        others = aligned.beside(before, fresh, window, batch.keys, within).select(*columns, F.lit(0).cast("bigint").alias(TOUCHED))
        near = near.unionByName(others)
    lateness = batch.pipeline.watermark.allowed_lateness_us
    found = aligned.windows(near, window, batch.keys, kept, lateness, aligned.reach(window, within))
    return found.where(F.col(TOUCHED) > 0)


def publishable(batch: Batch, window: Tumbling | Sliding, new: DataFrame, within: Range) -> dict[str, int]:
    """Writes what changed in an aligned output."""
    path = batch.pipeline.table(window.name)
    if delta.is_new(batch.spark, path):
        changed = merges.inserts(new, window, batch.keys)
    else:
        span = timedelta(microseconds=aligned.reach_us(window))
        stored = outputs.stored(batch.spark, batch.pipeline, window, moment(within.low_us) - span, moment(within.high_us) + span)
        changed = merges.corrections(new, stored, window, batch.keys)
    return named(window, outputs.write(batch.spark, batch.pipeline, window, changed, batch.stamp.run))


def sessions(
    batch: Batch, window: Session, fresh: DataFrame, kept: list[Part], within: Range
) -> tuple[DataFrame, DataFrame | None]:
    """The sessions that the fragments `fresh` make, and the stored sessions they replace (None: there are none)."""
    marked = fresh.withColumn(TOUCHED, F.lit(1).cast("bigint"))
    if delta.is_new(batch.spark, batch.pipeline.table(window.name)):
        return session.windows(marked, batch.keys, window.gap_us, kept), None
    early, late = F.lit(moment(within.low_us)), F.lit(moment(within.high_us + window.gap_us))
    stored = delta.read(batch.spark, batch.pipeline.table(window.name)).where((F.col(END) >= early) & (F.col(START) <= late))
    old = session.touched(stored, fresh, batch.keys, window.gap_us).localCheckpoint(eager=True)
    extent = old.agg(F.min(START), F.max(LAST)).first()
    if extent is not None and extent[0] is not None:
        low, high = (value.replace(tzinfo=moment(0).tzinfo) for value in extent)
        before = state.fragments_before(batch.spark, batch.pipeline, window, batch.stamp, low, high)
        others = session.members(before, old, batch.keys).withColumn(TOUCHED, F.lit(0).cast("bigint"))
        marked = marked.unionByName(others.select(*marked.columns))
    return session.windows(marked, batch.keys, window.gap_us, kept), old


def named(window: Window, written: outputs.Changes) -> dict[str, int]:
    """The changes of one output as ledger counts."""
    counts = {"inserted": written.inserted, "updated": written.updated, "deleted": written.deleted, "overflow": written.overflow}
    return {f"{window.name}.{kind}": n for kind, n in counts.items()}
