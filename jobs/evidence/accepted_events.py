"""Which events a run or a backfill has accepted into a window, and how late they were.

A run: source at the version that it ended with - source at the version that it began with
       - rows that it refused -> accepted events
A backfill: refused rows that it has resolved -> accepted events
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.foreign_errors.source_errors import is_version_gone
from jobs.microbatch.admission import add_event_time
from jobs.microbatch.context import RunContext, context_after
from jobs.microbatch.source_changes import conform_rows, select_near
from windowing.admit.digest import digest_of, with_row_digest
from windowing.admit.erased import without_erased
from windowing.admit.outcomes import PARTIAL, REFUSED
from windowing.columns import DIGEST, TIME, kept_name, own_name
from windowing.grid.frame import instant
from windowing.grid.range import Range
from windowing.grid.zone import moment
from windowing.ledger.erased import Erasures
from windowing.ledger.history import LedgerHistory
from windowing.panes.rule import NO_BATCH
from windowing.panes.table import Stamp
from windowing.report.text import plain
from windowing.revisions.evidence import (
    Bounds,
    NothingRead,
    Resolved,
    RunRead,
    Untold,
    find_bounds,
    find_evidence,
)
from windowing.revisions.rule import Value
from windowing.rows import column_named, is_true
from windowing.source import frame
from windowing.source import table as source
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta, delta_log
from windowing.storage.pinned_rows import pin_rows
from windowing.storage.spark_internals import SPARK_ERRORS

ChooseKey = Callable[[DataFrame, Callable[[str], str]], DataFrame]
"""The rows of the window's key, given how the frame names a column of the source."""
_ID, _WEIGHT = "__id", "__weight"
_SECOND = 1_000_000


@dataclass(frozen=True)
class AcceptedEvents:
    """The `count` events of a window that a step has accepted, and the `first` of them.

    Each is (event_id, event time in microseconds), in order of time; without an id the first is
    None. `behind_us` is how far the latest of them lay behind W when the step began, and 0 where
    none did.
    """

    count: int
    behind_us: int
    first: tuple[tuple[str | None, int], ...]

    def as_json(self) -> dict[str, object]:
        """The events as plain JSON values."""
        ids = [{"event_id": name, "event_time": plain(moment(at))} for name, at in self.first]
        return {
            "count": self.count,
            "latest_behind_seconds": self.behind_us / _SECOND,
            "ids": ids,
        }


@dataclass(frozen=True)
class Subject:
    """Whose events are wanted, at most the `most` first ones of each value."""

    pipeline: Pipeline
    window: Window
    past: LedgerHistory
    choose_key: ChooseKey
    most: int


def find_events(
    spark: SparkSession, subject: Subject, identity: Mapping[str, Any], value: Value
) -> AcceptedEvents | Untold:
    """The events that the step which made a value of a window has accepted into that window.

    Events that other steps accepted are not among them, even if the value is the first to show
    them. It is Untold rather than wrong where the source does not have the versions any more that
    the run has read, where rows of it were changed in between, or where the bounds of a window do
    not decide which events it has.
    """
    evidence = find_evidence(subject.past, value.made_by)
    if isinstance(evidence, Untold):
        return evidence
    bounds = find_bounds(subject.window, identity, value.values)
    if isinstance(bounds, Untold):
        return bounds
    match evidence:
        case NothingRead():
            return AcceptedEvents(0, 0, ())
        case Resolved():
            return _find_resolved(spark, subject, bounds, evidence)
    why = _find_obstacle(spark, subject.pipeline, evidence)
    return why or _read_accepted(spark, subject, bounds, evidence)


def _find_obstacle(spark: SparkSession, pipeline: Pipeline, read: RunRead) -> Untold | None:
    """Why versions of the source do not tell what a run has read of it; None where they do."""
    run = read.run
    if delta_log.known_table_id(spark, pipeline.source.table) != read.source_id:
        return Untold(f"the source is another table than the one that run {run} read")
    if pipeline.source.event_time.column is None and len(read.arrivals) != 1:
        return Untold(f"event times are arrivals, and run {run} had several")
    for commit in source.commits(spark, pipeline, read.seen_at + 1, read.until):
        if commit is None:
            return Untold(f"commits of the source that run {run} read were deleted from its log")
        if commit.rewrites:
            return Untold(
                f"version {commit.version} of the source, which run {run} read, "
                "changed or removed rows that there were"
            )
    return None


def _read_accepted(
    spark: SparkSession, subject: Subject, bounds: Bounds, read: RunRead
) -> AcceptedEvents | Untold:
    pipeline = subject.pipeline
    stamp = Stamp(read.run, NO_BATCH, None)
    batch = RunContext(
        spark, pipeline, stamp, max(read.arrivals, default=0), erased=subject.past.erasures
    )
    try:
        after = delta.read(spark, pipeline.source.table, read.until)
        before = None
        if read.since is not None:
            before = delta.read(spark, pipeline.source.table, read.since)
        columns = _join_columns(after, delta.read(spark, pipeline.source.table))
        if before is not None and not set(before.columns) <= set(columns.names):
            return Untold(f"columns of the source were removed while run {read.run} read it")
        weighed = [_weigh(batch, subject, bounds, read.erased, after, columns, 1)]
        if before is not None:
            weighed.append(_weigh(batch, subject, bounds, read.erased, before, columns, -1))
        weighed += _weigh_refused(batch, subject.window, bounds)
        by_digest = reduce(DataFrame.unionByName, weighed).groupBy(DIGEST)
        counted = by_digest.agg(
            F.sum(_WEIGHT).alias(_WEIGHT), F.min(TIME).alias(TIME), F.min(_ID).alias(_ID)
        )
        return _describe(counted.where(F.col(_WEIGHT) > 0), read.watermark_us, subject.most)
    except SPARK_ERRORS as error:
        if not is_version_gone(error):
            raise
        return Untold(f"the source does not have the versions any more that run {read.run} read")


def _join_columns(then: DataFrame, now: DataFrame) -> T.StructType:
    """The columns of the source at a version, and those that it has got since."""
    added = [field for field in now.schema.fields if field.name not in then.columns]
    return T.StructType([*then.schema.fields, *added])


def _weigh(
    batch: RunContext,
    subject: Subject,
    bounds: Bounds,
    erased_then: Erasures,
    stored: DataFrame,
    columns: T.StructType,
    weight: int,
) -> DataFrame:
    """The events of the window at a version of the source, each with a weight.

    stored -> [__digest, __t, __id, __weight]
    """
    pipeline = batch.pipeline
    near = stored
    is_bounded = bounds.start_us is not None and bounds.end_us is not None
    if is_bounded and source.find_bounded_time(batch.spark, pipeline):
        times = Range(bounds.start_us or 0, (bounds.end_us or 0) - 1)
        near = select_near(stored, pipeline, times)
    events = subject.choose_key(frame.shape_rows(conform_rows(near, columns), pipeline), own_name)
    for erased in (batch.erased, erased_then):
        events = without_erased(events, batch.keys, erased)
    earlier = source.earlier_types(batch.spark, pipeline)
    digested = with_row_digest(events, earlier, pipeline.source.part_names)
    timed = add_event_time(batch, digested).where(_lie_inside(F.col(TIME), bounds))
    event_id = _name_of_id(pipeline, own_name)
    return timed.select(DIGEST, TIME, event_id.alias(_ID), F.lit(weight).alias(_WEIGHT))


def _lie_inside(at: Column, bounds: Bounds) -> Column:
    """True for event times inside of the bounds, in microseconds."""
    inside = at.isNotNull()
    if bounds.start_us is not None:
        inside = inside & (at >= F.lit(bounds.start_us))
    if bounds.end_us is not None:
        inside = inside & (at < F.lit(bounds.end_us))
    return inside


def _name_of_id(pipeline: Pipeline, stored_as: Callable[[str], str]) -> Column:
    event_id = pipeline.source.event_id
    column = F.lit(None) if event_id is None else column_named(stored_as(event_id))
    return column.cast("string")


def _weigh_refused(batch: RunContext, window: Window, bounds: Bounds) -> Iterator[DataFrame]:
    """The rows that the run has refused, or accepted though they missed the window, as less.

    -> [__digest, __t (null), __id (null), __weight]
    """
    schema = source.schema(batch.spark, batch.pipeline)
    earlier = source.earlier_types(batch.spark, batch.pipeline)
    for _, rows in _read_refused(batch):
        of_run = rows.where(F.col("run") == batch.stamp.run)
        missed = of_run.where((F.col("outcome") != PARTIAL) | _missed(rows, window, bounds))
        yield missed.select(
            digest_of(missed, schema, earlier).alias(DIGEST),
            F.lit(None).cast("bigint").alias(TIME),
            F.lit(None).cast("string").alias(_ID),
            F.lit(-1).alias(_WEIGHT),
        )


def _read_refused(batch: RunContext) -> Iterator[tuple[str, DataFrame]]:
    for table in REFUSED:
        rows = batch.find_rows(table)
        if rows is not None:
            yield table, rows


def _missed(refused: DataFrame, window: Window, bounds: Bounds) -> Column:
    """True for rows that were accepted, but were late for the window with these bounds."""
    if "missed" not in refused.columns:
        return F.lit(False)

    def names_window(missed: Column) -> Column:
        until = missed["until"]
        is_until = until.isNull()
        if bounds.end_us is not None:
            is_until = is_until | (until >= instant(bounds.end_us))
        return (missed["window"] == window.name) & is_until

    return is_true(F.exists("missed", names_window))


def _find_resolved(
    spark: SparkSession, subject: Subject, bounds: Bounds, resolved: Resolved
) -> AcceptedEvents | Untold:
    """The refused and the partly late rows of the window that a backfill has resolved."""
    pipeline, past = subject.pipeline, subject.past
    if pipeline.source.changes == "feed":
        return Untold("the source may change rows, so not every row of a backfill was refused")
    batch = replace(context_after(spark, pipeline, past), erased=past.erasures)
    found = []
    for table, rows in _read_refused(batch):
        its = subject.choose_key(rows.where(F.col("resolved_by") == resolved.label), kept_name)
        if table == "_late":
            its = its.where((F.col("outcome") != PARTIAL) | _missed(rows, subject.window, bounds))
        at = F.unix_micros("event_time")
        inside = its.where(_lie_inside(at, bounds))
        event_id = _name_of_id(pipeline, kept_name).alias(_ID)
        found.append(inside.select(at.alias(TIME), event_id, F.lit(1).alias(_WEIGHT)))
    if not found:
        return AcceptedEvents(0, 0, ())
    rows = reduce(DataFrame.unionByName, found)
    return _describe(rows, resolved.watermark_us, subject.most)


def _describe(rows: DataFrame, watermark_us: int | None, most: int) -> AcceptedEvents:
    """What there is to tell of rows[__t, __id, __weight]."""
    events = pin_rows(rows)
    total = events.agg(F.sum(_WEIGHT).alias("n"), F.min(TIME).alias("earliest")).collect()[0]
    first = events.orderBy(TIME, _ID).limit(most).collect()
    named = [(row[_ID], row[TIME]) for row in first for _ in range(row[_WEIGHT])]
    behind_us = 0
    if watermark_us is not None and total["earliest"] is not None:
        behind_us = max(0, watermark_us - total["earliest"])
    return AcceptedEvents(total["n"] or 0, behind_us, tuple(named[:most]))
