"""Applies a spec that has added or removed windows or aggregates, or an erasure of a value.

State and outputs become what the spec requires, from the events accepted so far that were not
erased.

spec, compared with the one that made the state, or an erasure -> intent -> columns
-> accepted events, each as it was admitted
-> panes, fragments, buffered events (overwritten whole) -> windows -> outputs -> done
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from json import dumps, loads

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.diagnosis import tables
from jobs.diagnosis.spec_changes import made_by, spec_difference, spec_refused
from jobs.foreign_errors.source_errors import source_errors_explained
from jobs.microbatch.context import Closing, RunContext
from jobs.recompute.accepted import all_accepted_rows
from jobs.recompute.erased_ids import delete_ids
from jobs.recompute.rebuild import rebuild_range
from jobs.recompute.rebuild_panes import check_limit_of_range
from jobs.recompute.staging import context_of_chunk
from jobs.recompute.time_range import TimeRange
from jobs.recompute.totals import count_accepted
from windowing.admit.rule import lateness_cuts
from windowing.columns import JUDGED, TIME, WHY
from windowing.crash import crashpoint
from windowing.grid.range import Range
from windowing.grid.zone import moment
from windowing.ledger.erased import Erasures, read_erased
from windowing.ledger.evolved import OF_ERASURE, read_evolved
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import EVOLVE_DONE, EVOLVE_INTENT, LedgerEntry, LedgerExcerpt
from windowing.ledger.table import Past, read_history, record_entries
from windowing.panes.rule import SEEN
from windowing.report.text import interval
from windowing.revisions.table import keep_revisions
from windowing.source import table as source
from windowing.source.rule import list_left_out
from windowing.spec.fingerprint import AGGREGATE, fingerprint
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import join_names
from windowing.storage.few_rows import span_of
from windowing.storage.pinned_rows import pin_rows

IDS_ERASED = f"{SEEN}.deleted"
"""Among the counts of a rebuild: how many event ids were deleted with the events of a value."""


def apply_spec_change(spark: SparkSession, pipeline: Pipeline, past: Past) -> Past:
    """The history once state and outputs are what the spec requires.

    An added window contains what was accepted so far, and the table of a removed window stays.
    Admissions stay what they were: rows refused as late stay refused, and no other window changes.
    The rebuild of an erasure that was interrupted is finished. StateRefused, with nothing written,
    where the new spec can't accept the events.
    """
    begun = past.open_evolution
    if begun is not None and not read_evolved(begun.note):
        return rebuild_without_values(spark, pipeline, past)
    if begun is None and not spec_difference(pipeline, past):
        return past
    if begun is None:
        _check_left_out(pipeline, past)
    batch = _context_of(spark, pipeline, past)
    _check_types(batch)
    events = _read_accepted_events(batch, past)
    if events is not None:
        _check_accepted(batch, events)
    if events is not None and begun is None:
        added = _select_windows(spec_difference(pipeline, past).added)
        whole = _find_whole_range(events, past.read_version or 0)
        check_limit_of_range(batch, whole, events, added)
    past, begun = _record_intent(batch, past)
    # The change feed of an output ends where its columns change.
    keep_revisions(spark, pipeline)
    crashpoint("evolve.kept")
    return _rebuild(batch, past, begun, events, {})


def rebuild_without_values(
    spark: SparkSession, pipeline: Pipeline, past: Past, erasing: LedgerEntry | None = None
) -> Past:
    """The history once state, event ids and outputs have nothing of the values being erased.

    All other events count as they were admitted. The intent of an erasure that begins now,
    `erasing`, is recorded together with that of the rebuild, so whatever comes next finishes it.
    The last entry counts what has changed. StateRefused where the source can't be read.
    """
    batch = _context_of(spark, pipeline, past)
    past, begun = _record_intent(batch, past, erasing)
    batch = replace(batch, erased=past.erasures)
    # Which events were accepted depends on the ids where the source may change, so these go first.
    of_ids = _delete_ids_of_values(batch, past)
    events = _read_accepted_events(batch, past)
    return _rebuild(batch, past, begun, events, of_ids)


def _context_of(spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt) -> RunContext:
    # All events are read, so no window lacks panes that have expired.
    return replace(context_of_chunk(spark, pipeline, past), state_may_be_expired=False)


def _rebuild(
    batch: RunContext,
    past: Past,
    begun: LedgerEntry,
    events: DataFrame | None,
    counts: Mapping[str, int],
) -> Past:
    """The history once state and outputs are those of the `events`; records `counts` and more."""
    spark, pipeline = batch.spark, batch.pipeline
    tables.ensure_tables(spark, pipeline)
    crashpoint("evolve.widened")
    if events is not None and past.read_version is not None:
        # The watermark does not move, so no window closes by this.
        closing = Closing(batch, past.watermark, past.watermark, None)
        rebuilt = rebuild_range(closing, _find_whole_range(events, past.read_version), events)
        recorded = read_history(pipeline)
        missed = _count_partly_late(batch, events, recorded, begun)
        accepted = count_accepted(batch) - recorded.total("accepted")
        counts = {**counts, **rebuilt, **missed, "accepted": accepted}
    crashpoint("evolve.filled")
    done = replace(
        begun,
        step=EVOLVE_DONE,
        at=batch.read_clock(),
        counts=counts,
        versions=tables.table_versions(pipeline),
        note=None if read_evolved(begun.note) else OF_ERASURE,
    )
    past = record_entries(pipeline, past, [done])
    crashpoint("evolve.done")
    return past


def _delete_ids_of_values(batch: RunContext, past: LedgerExcerpt) -> dict[str, int]:
    """Deletes the ids of events with values that are being erased; returns how many, as counts."""
    erasures = [read_erased(entry.note) for entry in past.open_erasures]
    of_values = frozenset(each for each in erasures if each is not None and each.column)
    if batch.pipeline.source.event_id is None:
        return {}
    due = Erasures(batch.erased.salt, of_values)
    with source_errors_explained(batch.spark, batch.pipeline, past):
        return {IDS_ERASED: delete_ids(batch, due, past.read_version)}


def pending_spec_changes(pipeline: Pipeline, past: LedgerExcerpt) -> tuple[str, ...]:
    """Windows and aggregates added or removed by the spec but not applied yet."""
    if past.open_evolution is not None:
        return read_evolved(past.open_evolution.note)
    found = spec_difference(pipeline, past)
    return (*found.added, *found.removed)


def _check_left_out(pipeline: Pipeline, past: LedgerExcerpt) -> None:
    """StateRefused where a rebuild would apply a change of the source that was left out."""
    left_out = [interval(moment(low), moment(high)) for low, high in list_left_out(past)]
    if left_out:
        ranges = " and ".join(left_out)
        problem = f"what the source changed in {ranges} was left out, and a rebuild would apply it"
        raise spec_refused(pipeline, f"{problem}; `tidemark backfill` these times first")


def _check_types(batch: RunContext) -> None:
    """StateRefused where the spec requires another type of a column that an output has."""
    retyped = tables.find_retyped_columns(batch.spark, batch.pipeline)
    if retyped:
        problem = f"{join_names(retyped)} had another type in an earlier spec; name it otherwise"
        raise spec_refused(batch.pipeline, problem)


def _read_accepted_events(batch: RunContext, past: LedgerExcerpt) -> DataFrame | None:
    """The events accepted so far; None while nothing has been read."""
    if past.read_version is None:
        return None
    with source_errors_explained(batch.spark, batch.pipeline, past):
        return pin_rows(all_accepted_rows(batch, past.read_version))


def _check_accepted(batch: RunContext, events: DataFrame) -> None:
    """StateRefused where the spec would refuse one of the events."""
    reasons = _list_reasons(events)
    if reasons:
        problem = f"events that were accepted would be refused now ({reasons[0]})"
        how = "leave out what needs that column"
        raise spec_refused(batch.pipeline, f"{problem}; {how}")


def _list_reasons(events: DataFrame) -> list[str]:
    """Why the spec would refuse events; the reason of most of them comes first."""
    counts = events.where(F.col(WHY).isNotNull()).groupBy(WHY).count()
    return [row[WHY] for row in counts.orderBy(F.desc("count"), WHY).collect()]


def _record_intent(
    batch: RunContext, past: Past, erasing: LedgerEntry | None = None
) -> tuple[Past, LedgerEntry]:
    """The history with the intent of this spec after that of an erasure, and the intent."""
    if past.open_evolution is not None:
        return past, past.open_evolution
    spark, pipeline = batch.spark, batch.pipeline
    found = spec_difference(pipeline, past)
    made = loads(made_by(pipeline, source.schema(spark, pipeline)))
    note = dumps(made | {"came": list(found.added), "went": list(found.removed)})
    intent = LedgerEntry(
        EVOLVE_INTENT,
        run=past.last_run,
        at=batch.arrival_us,
        arrival=batch.arrival_us,
        spec=fingerprint(pipeline),
        note=note,
    )
    past = record_entries(pipeline, past, [intent] if erasing is None else [erasing, intent])
    crashpoint("evolve.intended")
    return past, past.entries[-1]


def _select_windows(parts: Iterable[str]) -> list[str]:
    """The names of the windows among parts of a spec."""
    return [name.removeprefix("windows.") for name in parts if AGGREGATE not in name]


def _count_partly_late(
    batch: RunContext, events: DataFrame, recorded: LedgerHistory, begun: LedgerEntry
) -> dict[str, int]:
    """How many events each added window missed, less what the ledger records already.

    A window missed an event if it was final when the event was admitted.
    """
    added = _select_windows(loads(begun.note or "{}")["came"])
    late_for: dict[str, list[Column]] = {name: [] for name in added}
    for watermark_us in _list_watermarks(events):
        was_judged_by = F.unix_micros(JUDGED) == watermark_us
        for cut in lateness_cuts(batch.pipeline, watermark_us):
            if cut.window in late_for:
                late_for[cut.window].append(was_judged_by & (F.col(TIME) < cut.some_us))
    counts = {}
    for name, conditions in late_for.items():
        missed = 0
        if conditions:
            is_late = reduce(lambda left, right: left | right, conditions)
            missed = events.where(is_late).count()
        counts[f"partial.{name}"] = missed - recorded.total(f"partial.{name}")
    return counts


def _list_watermarks(events: DataFrame) -> list[int]:
    """Every watermark that one of the events was admitted by."""
    judged = events.where(F.col(JUDGED).isNotNull())
    rows = judged.select(F.unix_micros(JUDGED)).distinct().collect()
    return [row[0] for row in rows]


def _find_whole_range(events: DataFrame, version: int) -> TimeRange:
    """The range from the first event to the last; any range where there is no event."""
    span = span_of(events, F.col(TIME), F.col(TIME)) or Range(0, 0)
    return TimeRange(span.low_us, span.high_us + 1, version, is_everything=True)
