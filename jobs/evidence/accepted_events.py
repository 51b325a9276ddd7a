"""Which events a run or a backfill has accepted into windows, and how late they were.

A run: source at the version that it ended with - source at the version that it began with
       - rows that it refused -> accepted events
A backfill: refused rows that it has resolved -> accepted events
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Window as Ranking
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.diagnosis.spec_changes import check_erased_columns
from jobs.foreign_errors.source_errors import is_version_gone
from jobs.microbatch.admission import add_event_time
from jobs.microbatch.context import RunContext, context_after
from jobs.microbatch.refused_rows import read_refused_tables, with_digest
from jobs.microbatch.source_changes import conform_rows, select_near
from windowing.admit.digest import with_row_digest
from windowing.admit.erased import without_erased
from windowing.admit.outcomes import PARTIAL
from windowing.columns import DIGEST, TIME, kept_name, own_name
from windowing.grid.range import Range
from windowing.grid.zone import moment
from windowing.ledger.erased import Erasures
from windowing.ledger.history import LedgerHistory
from windowing.panes.rule import NO_BATCH
from windowing.panes.table import Stamp
from windowing.report.text import plain
from windowing.revisions.evidence import (
    Bounds,
    Evidence,
    NothingRead,
    Resolved,
    RunRead,
    Untold,
    join_bounds,
)
from windowing.rows import column_named, is_true
from windowing.source import frame
from windowing.source import table as source
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta, delta_log
from windowing.storage.pinned_rows import pin_rows
from windowing.storage.spark_internals import SPARK_ERRORS

_ID, _WEIGHT = "__id", "__weight"
_PLACE, _FROM, _UNTIL, _KEY = "__place", "__from", "__until", "__key_"
_RANK = "__rank"
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


def tell_events(events: AcceptedEvents | Untold) -> dict[str, object]:
    """What is known of the events of a step, as plain JSON values."""
    if isinstance(events, Untold):
        return {"events": None, "events_unknown": events.reason}
    return {"events": events.as_json(), "events_unknown": None}


NO_EVENTS = AcceptedEvents(0, 0, ())


@dataclass(frozen=True)
class Place:
    """A row of a window: the values of its key, and the event times that are in it."""

    key: Mapping[str, Any]
    bounds: Bounds


@dataclass(frozen=True)
class Subject:
    """The rows of a window whose events are wanted, at most the `most` first ones of each."""

    pipeline: Pipeline
    window: Window
    past: LedgerHistory
    places: Sequence[Place]
    most: int


def find_events(
    spark: SparkSession, subject: Subject, evidence: Evidence
) -> Sequence[AcceptedEvents | Untold]:
    """By place the events that a step has accepted into that window.

    Events that other steps accepted are not among them. All are Untold rather than wrong where the
    evidence is, where the source does not have the versions any more that the run has read, or
    where rows of it were changed in between.

    Raises StateRefused where a changed spec lacks a column whose values are erased, because their
    events would be told.
    """
    if subject.past.erasures.columns:
        columns = source.schema(spark, subject.pipeline)
        check_erased_columns(subject.pipeline, columns, subject.past)
    found = _find_told(spark, subject, evidence)
    return [found] * len(subject.places) if isinstance(found, Untold) else found


def _find_told(
    spark: SparkSession, subject: Subject, evidence: Evidence
) -> Sequence[AcceptedEvents] | Untold:
    match evidence:
        case Untold():
            return evidence
        case NothingRead():
            return [NO_EVENTS] * len(subject.places)
        case Resolved():
            return _find_resolved(spark, subject, evidence)
    why = _find_obstacle(spark, subject.pipeline, evidence)
    return why or _read_accepted(spark, subject, evidence)


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
    spark: SparkSession, subject: Subject, read: RunRead
) -> Sequence[AcceptedEvents] | Untold:
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
        weighed = [_weigh(batch, subject, read.erased, after, columns, 1)]
        if before is not None:
            weighed.append(_weigh(batch, subject, read.erased, before, columns, -1))
        weighed += _weigh_refused(batch, subject)
        by_digest = reduce(DataFrame.unionByName, weighed).groupBy(_PLACE, DIGEST)
        counted = by_digest.agg(
            F.sum(_WEIGHT).alias(_WEIGHT), F.min(TIME).alias(TIME), F.min(_ID).alias(_ID)
        )
        return _describe(counted.where(F.col(_WEIGHT) > 0), subject, read.watermark_us)
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
    erased_then: Erasures,
    stored: DataFrame,
    columns: T.StructType,
    weight: int,
) -> DataFrame:
    """The events of the places at a version of the source, each with a weight.

    stored -> [__place, __digest, __t, __id, __weight]
    """
    pipeline = batch.pipeline
    near = stored
    times = join_bounds(place.bounds for place in subject.places)
    is_bounded = times.start_us is not None and times.end_us is not None
    if is_bounded and source.find_bounded_time(batch.spark, pipeline):
        near = select_near(stored, pipeline, Range(times.start_us or 0, (times.end_us or 0) - 1))
    events = frame.shape_rows(conform_rows(near, columns), pipeline)
    for erased in (batch.erased, erased_then):
        events = without_erased(events, batch.keys, erased)
    earlier = source.earlier_types(batch.spark, pipeline)
    digested = with_row_digest(events, earlier, pipeline.source.part_names)
    placed = _join_places(add_event_time(batch, digested), subject, own_name)
    inside = placed.where(_lies_inside(F.col(TIME)))
    event_id = _name_of_id(pipeline, own_name)
    return inside.select(_PLACE, DIGEST, TIME, event_id.alias(_ID), F.lit(weight).alias(_WEIGHT))


def _join_places(rows: DataFrame, subject: Subject, stored_as: Callable[[str], str]) -> DataFrame:
    """Each row once for each place whose key it has: rows + [__place, __from, __until]."""
    columns = [stored_as(name) for name in subject.pipeline.source.key]
    kinds = [rows.schema[column].dataType for column in columns]
    places = _list_places(rows.sparkSession, subject, kinds)
    near = rows
    is_its = []
    for n, (name, column) in enumerate(zip(subject.pipeline.source.key, columns, strict=True)):
        # Files without any of these keys are skipped.
        values = {str(place.key[name]) for place in subject.places}
        near = near.where(column_named(column).isin(*(_typed(v, kinds[n]) for v in values)))
        is_its.append(column_named(column) == F.col(f"{_KEY}{n}"))
    return near.join(F.broadcast(places), is_its).drop(*(f"{_KEY}{n}" for n in range(len(kinds))))


def _list_places(
    spark: SparkSession, subject: Subject, kinds: Sequence[T.DataType] = ()
) -> DataFrame:
    """The places: [__place, __from, __until] and their keys, where types of these are given."""
    rows = []
    for n, place in enumerate(subject.places):
        start, end = F.lit(place.bounds.start_us), F.lit(place.bounds.end_us)
        fields = [
            F.lit(n).alias(_PLACE),
            start.cast("bigint").alias(_FROM),
            end.cast("bigint").alias(_UNTIL),
        ]
        for k, (name, kind) in enumerate(zip(subject.pipeline.source.key, kinds, strict=False)):
            fields.append(_typed(str(place.key[name]), kind).alias(f"{_KEY}{k}"))
        rows.append(F.struct(*fields))
    return spark.range(1).select(F.inline(F.array(*rows)))


def _typed(value: str, kind: T.DataType) -> Column:
    return F.lit(value).try_cast(kind)


def _lies_inside(at: Column) -> Column:
    """True for event times inside of the bounds of the row's place, in microseconds."""
    is_begun = F.col(_FROM).isNull() | (at >= F.col(_FROM))
    return at.isNotNull() & is_begun & (F.col(_UNTIL).isNull() | (at < F.col(_UNTIL)))


def _name_of_id(pipeline: Pipeline, stored_as: Callable[[str], str]) -> Column:
    event_id = pipeline.source.event_id
    column = F.lit(None) if event_id is None else column_named(stored_as(event_id))
    return column.cast("string")


def _weigh_refused(batch: RunContext, subject: Subject) -> Iterator[DataFrame]:
    """The rows that the run has refused, or accepted though they missed the window, as less.

    -> [__place, __digest, __t (null), __id (null), __weight]
    """
    for rows in read_refused_tables(batch).values():
        digested = with_digest(batch, rows.where(F.col("run") == batch.stamp.run))
        placed = digested.crossJoin(F.broadcast(_list_places(batch.spark, subject)))
        missed = placed.where((F.col("outcome") != PARTIAL) | _missed(placed, subject.window))
        yield missed.select(
            _PLACE,
            DIGEST,
            F.lit(None).cast("bigint").alias(TIME),
            F.lit(None).cast("string").alias(_ID),
            F.lit(-1).alias(_WEIGHT),
        )


def _missed(refused: DataFrame, window: Window) -> Column:
    """True for rows that were accepted, but were late for the window of their place."""
    if "missed" not in refused.columns:
        return F.lit(False)

    def names_window(missed: Column) -> Column:
        until = missed["until"]
        is_until = until.isNull() | (F.unix_micros(until) >= F.col(_UNTIL))
        return (missed["window"] == window.name) & is_until

    return is_true(F.exists("missed", names_window))


def _find_resolved(
    spark: SparkSession, subject: Subject, resolved: Resolved
) -> Sequence[AcceptedEvents] | Untold:
    """The refused and the partly late rows of the windows that a backfill has resolved."""
    pipeline, past = subject.pipeline, subject.past
    if pipeline.source.changes == "feed":
        return Untold("the source may change rows, so not every row of a backfill was refused")
    batch = replace(context_after(spark, pipeline, past), erased=past.erasures)
    found = []
    for table, rows in read_refused_tables(batch).items():
        of_backfill = rows.where(F.col("resolved_by") == resolved.label)
        its = _join_places(of_backfill, subject, kept_name)
        if table == "_late":
            its = its.where((F.col("outcome") != PARTIAL) | _missed(its, subject.window))
        at = F.unix_micros("event_time")
        event_id = _name_of_id(pipeline, kept_name).alias(_ID)
        inside = its.where(_lies_inside(at))
        found.append(inside.select(_PLACE, at.alias(TIME), event_id, F.lit(1).alias(_WEIGHT)))
    if not found:
        return [NO_EVENTS] * len(subject.places)
    return _describe(reduce(DataFrame.unionByName, found), subject, resolved.watermark_us)


def _describe(
    rows: DataFrame, subject: Subject, watermark_us: int | None
) -> Sequence[AcceptedEvents]:
    """By place what there is to tell of rows[__place, __t, __id, __weight]."""
    events = pin_rows(rows)
    totals = events.groupBy(_PLACE).agg(F.sum(_WEIGHT).alias("n"), F.min(TIME).alias("earliest"))
    order = Ranking.partitionBy(_PLACE).orderBy(TIME, _ID)
    ranked = events.withColumn(_RANK, F.row_number().over(order))
    first = ranked.where(F.col(_RANK) <= subject.most).orderBy(_PLACE, _RANK).collect()
    named: dict[int, list[tuple[str | None, int]]] = defaultdict(list)
    for row in first:
        named[row[_PLACE]] += [(row[_ID], row[TIME])] * row[_WEIGHT]
    found = [NO_EVENTS] * len(subject.places)
    for total in totals.collect():
        behind_us = 0 if watermark_us is None else max(0, watermark_us - total["earliest"])
        place = total[_PLACE]
        found[place] = AcceptedEvents(total["n"], behind_us, tuple(named[place][: subject.most]))
    return found
