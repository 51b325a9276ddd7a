"""Admission, the first half of a micro-batch: one outcome for every row, before any write.

rows -> rows with an event time or a reason -> rows with an outcome, and their counts
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.microbatch.context import RunContext
from windowing.admit.digest import with_row_digest
from windowing.admit.erased import only_erased, without_erased
from windowing.admit.frame import Law, Memory, accept_valid_rows, judge_rows
from windowing.admit.outcomes import ACCEPTED, DUPLICATE, ERASED, LATE, PARTIAL, QUARANTINED
from windowing.admit.rule import lateness_cuts, suspicious_before
from windowing.columns import END, LAST, MISSED, OUTCOME, START, TIME, UNANSWERED, WHY
from windowing.errors import TidemarkError
from windowing.grid.range import Range
from windowing.ledger.nulls import WHERE, name_null_count, read_null_counts
from windowing.location import Location
from windowing.panes import table as state
from windowing.source import frame as source
from windowing.source.clean_files import find_clean_batch, find_demands
from windowing.source.table import earlier_types
from windowing.spec.duration import DAY
from windowing.spec.pipeline import Pipeline
from windowing.storage.few_rows import span_of
from windowing.storage.pinned_rows import pin_rows

_FAR_US = 50 * 366 * DAY
"""How far ahead of the arrival local times are placed exactly, although no event may be there.

There is a limit because every year has clock changes, and each of them is a part of the query.
"""
_OUTCOMES = (ACCEPTED, LATE, DUPLICATE, QUARANTINED)


FindFiles = Callable[[], Sequence[Location] | None]
"""Finds the files that contain the rows of a batch and no others; None where there are no such."""


def find_no_files() -> None:
    """The files of a batch that is not simply files."""


@dataclass(frozen=True)
class _Facts:
    """What is known of a batch before admission.

    It has so many events, of which some are quarantined. The times of the others are `within` a
    range; None where there is none. `lost` counts the values that expressions lost.
    """

    read: int
    quarantined: int
    within: Range | None
    lost: Mapping[str, int]


@dataclass(frozen=True)
class Admitted:
    """The rows of a batch with their outcomes, and the counts of these.

    `schema` is that of the source with its computed columns. `within` is the range of accepted
    event times; None where nothing was accepted.
    """

    rows: DataFrame
    schema: T.StructType
    counts: Mapping[str, int]
    within: Range | None

    @property
    def read(self) -> int:
        """How many events there are, so there is no more state of them."""
        return self.counts["read"]

    @property
    def accepted(self) -> DataFrame:
        """The accepted events."""
        return self.rows.where(F.col(OUTCOME) == ACCEPTED)


def admit_rows(
    batch: RunContext, rows: DataFrame, find_files: FindFiles = find_no_files
) -> Admitted:
    """Gives every event of a batch one outcome, and counts the outcomes; nothing is written."""
    wider = source.add_computed_columns(rows, batch.pipeline)
    erased = _count_erased(batch, wider)
    if not erased:
        return _admit_others(batch, wider, find_files)
    others = without_erased(wider, batch.keys, batch.erased)
    # The files of the batch contain more than the rows that are left.
    admitted = _admit_others(batch, others, find_no_files)
    counts = {**admitted.counts, "read": admitted.read + erased, ERASED: erased}
    return replace(admitted, counts=counts)


def _count_erased(batch: RunContext, wider: DataFrame) -> int:
    """How many events of a batch have an erased key or value."""
    if not batch.erased.found:
        return 0
    events = source.mark_unanswered(wider, batch.pipeline).where(~F.col(UNANSWERED))
    return only_erased(events, batch.keys, batch.erased).count()


def _admit_others(batch: RunContext, wider: DataFrame, find_files: FindFiles) -> Admitted:
    """The same for events with computed columns, none of which is erased."""
    pipeline = batch.pipeline
    earlier = earlier_types(batch.spark, pipeline)
    with_digest = with_row_digest(wider, earlier, pipeline.source.part_names)
    marked = add_event_time(batch, source.mark_unanswered(with_digest, pipeline))
    checked = marked.where(~F.col(UNANSWERED)).drop(UNANSWERED)
    if _is_judged_at_once(pipeline):
        return _judge_all(batch, checked, wider, {}, suspicious=False)
    facts = _read_facts(batch, wider.schema, find_files) or _collect_facts(marked, pipeline)
    late_before = suspicious_before(pipeline, batch.stamp.judged_us)
    within = facts.within
    suspicious = late_before is not None and within is not None and within.low_us < late_before
    if not suspicious and pipeline.source.event_id is None:
        # Nothing can be late or a duplicate, so rows need no comparison with others or with state.
        counts = {**_count_without_judging(facts), **facts.lost}
        return Admitted(accept_valid_rows(checked), wider.schema, counts, within)
    return _judge_all(batch, checked, wider, facts.lost, suspicious=suspicious)


def _is_judged_at_once(pipeline: Pipeline) -> bool:
    """Whether nothing has to be known of a batch before its rows are compared with others.

    Rows with ids are always compared. Sessions are read only where a row may be late, and values
    that expressions lose are counted before rows are left out.
    """
    may_lose_values = source.find_lost_values(pipeline) or source.may_leave_unanswered(pipeline)
    has_ids = pipeline.source.event_id is not None
    return has_ids and not pipeline.chained and not may_lose_values


def _judge_all(
    batch: RunContext,
    checked: DataFrame,
    wider: DataFrame,
    lost: Mapping[str, int],
    *,
    suspicious: bool,
) -> Admitted:
    """The rows of a batch, each compared with others of the batch and with what is stored."""
    pipeline = batch.pipeline
    remembered = read_memory(batch, checked, suspicious=suspicious)
    judged = judge_rows(checked, pipeline, lateness_law(batch), remembered)
    # Counts, state and outputs all read these rows, so they are computed once.
    judged = pin_rows(judged)
    counts = _count_outcomes(judged, pipeline)
    within = _make_range(counts.pop("low"), counts.pop("high"))
    return Admitted(judged, wider.schema, {**counts, **lost}, within)


def _count_without_judging(facts: _Facts) -> dict[str, int]:
    """The counts of a batch in which every event is accepted or quarantined."""
    return {
        "read": facts.read,
        ACCEPTED: facts.read - facts.quarantined,
        QUARANTINED: facts.quarantined,
        LATE: 0,
        DUPLICATE: 0,
    }


def add_event_time(batch: RunContext, rows: DataFrame) -> DataFrame:
    """Rows with an event time, or the reason why they have none: rows -> rows + [__t, __why]."""
    pipeline = batch.pipeline
    column = pipeline.source.event_time.column
    if column is None:
        arrived = source.time_by_arrival(rows, batch.arrival_us)
        return source.check_rows(arrived, pipeline, rows.schema, batch.arrival_us)
    read = source.read_event_time(rows, pipeline)
    zone = pipeline.source.zone
    if zone is not None and not isinstance(rows.schema[column].dataType, T.TimestampType):
        read = _place_local_times(batch, read, zone)
    return source.check_rows(read, pipeline, rows.schema, batch.arrival_us)


def _place_local_times(batch: RunContext, read: DataFrame, zone: str) -> DataFrame:
    """Rows whose local times became instants by the clock of `zone`."""
    span = span_of(read, F.col(source.NAIVE), F.col(source.NAIVE))
    if span is None:
        return read
    ahead_us = max(batch.pipeline.watermark.max_future_us, _FAR_US) + 2 * DAY
    latest = max(span.low_us, min(span.high_us, batch.arrival_us + ahead_us))
    return source.place_local_times(read, zone, span.low_us, latest)


def lateness_law(batch: RunContext) -> Law:
    """The watermark and the allowed lateness by which this batch is admitted."""
    watermark_us = batch.stamp.judged_us
    lateness_us = batch.pipeline.watermark.allowed_lateness_us
    return Law(watermark_us, lateness_us, lateness_cuts(batch.pipeline, watermark_us))


def read_memory(batch: RunContext, checked: DataFrame, *, suspicious: bool) -> Memory:
    """What earlier batches accepted, as far as the outcomes of this batch depend on it.

    Sessions are read only if `suspicious`: if an event of the batch may be late.
    """
    pipeline = batch.pipeline
    event_id = pipeline.source.event_id
    ids = None
    if event_id is not None:
        id_text = F.col(f"`{event_id}`").cast("string").alias("event_id")
        of_batch = checked.select(id_text).distinct()
        ids = state.ids_before(batch.spark, pipeline, batch.stamp, of_batch)
    stored = {}
    if suspicious:
        for window in pipeline.chained:
            sessions = batch.read_complete_before(window)
            stored[window.name] = sessions.select(*batch.keys, START, END, LAST)
    return Memory(ids, stored)


def count_lost_values(pipeline: Pipeline, among: Column) -> list[Column]:
    """For each computed column the number of rows that lost its value, by its name in the ledger.

    The value is lost where it is NULL although its input has a value. Only rows for which `among`
    is true count. The columns are to be aggregated.
    """
    counts = []
    for name, lost in source.find_lost_values(pipeline).items():
        counts.append(F.count_if(among & lost).alias(name_null_count(name)))
    return counts


def keep_null_counts(row: Row) -> dict[str, int]:
    """The counts that are not 0 among those of `count_lost_values` in an aggregated row."""
    found = read_null_counts(row.asDict())
    return {name_null_count(column): n for column, n in found.items()}


def _read_facts(batch: RunContext, schema: T.StructType, find_files: FindFiles) -> _Facts | None:
    """What is known of a batch from its files alone, which is that nothing is wrong with any row.

    None where they do not show that. `schema` is that of the source with its computed columns.
    """
    demands = find_demands(batch.pipeline, schema, batch.arrival_us)
    files = None if demands is None else find_files()
    if demands is None or files is None:
        return None
    clean = find_clean_batch(files, demands)
    if clean is None:
        return None
    return _Facts(clean.rows, 0, _make_range(clean.low_us, clean.high_us), {})


def _collect_facts(marked: DataFrame, pipeline: Pipeline) -> _Facts:
    """What is known of a batch before admission, in one action."""
    event = ~F.col(UNANSWERED)
    is_good = event & F.col(WHY).isNull()
    good_time = F.when(is_good, F.col(TIME))
    events = F.count_if(event).alias("n")
    quarantined = F.count(F.when(event, F.col(WHY))).alias("bad")
    lost = count_lost_values(pipeline, event)
    unanswered = F.count_if(F.col(UNANSWERED)).alias(name_null_count(WHERE))
    row = marked.agg(events, quarantined, *_find_ends(good_time), *lost, unanswered).first()
    if row is None:
        raise TidemarkError("internal error: the rows of the batch could not be counted")
    return _Facts(row["n"], row["bad"], _make_range(row["low"], row["high"]), keep_null_counts(row))


def _make_range(low_us: int | None, high_us: int | None) -> Range | None:
    """The times between both; None where there are none."""
    return None if low_us is None or high_us is None else Range(low_us, high_us)


def _find_ends(time: Column) -> list[Column]:
    """The first and the last time, as `low` and `high`; both are null where there is none."""
    return [F.min(time).alias("low"), F.max(time).alias("high")]


def _count_outcomes(rows: DataFrame, pipeline: Pipeline) -> dict[str, int]:
    """Counts by outcome, of partly late rows by window, and the ends of accepted event times."""
    outcome = F.col(OUTCOME)
    accepted = outcome == ACCEPTED
    outcomes = [F.count_if(outcome == name).alias(name) for name in _OUTCOMES]
    partly_late = F.count_if(accepted & (F.size(MISSED) > 0)).alias(PARTIAL)
    missed = []
    for window in pipeline.windows:
        misses_window = F.array_contains(F.col(MISSED)["window"], window.name)
        missed.append(F.count_if(accepted & misses_window).alias(f"partial.{window.name}"))
    ends = _find_ends(F.when(accepted, F.col(TIME)))
    row = rows.agg(F.count("*").alias("read"), *outcomes, partly_late, *missed, *ends).first()
    if row is None or row["read"] != sum(row[name] for name in _OUTCOMES):
        raise TidemarkError(
            "internal error: outcome counts do not sum to the rows read; nothing was written; "
            f"counts are {row}"
        )
    return dict(row.asDict())
