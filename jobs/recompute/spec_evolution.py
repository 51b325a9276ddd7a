"""Applies a spec that has added or removed windows or aggregates.

State and outputs become what that spec requires, from the events accepted so far.

spec, compared with the one that made the state -> intent -> columns
-> accepted events, each as it was admitted
-> panes, fragments, buffered events (overwritten whole) -> windows -> outputs -> done
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from json import dumps, loads

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.diagnosis import tables
from jobs.diagnosis.spec_changes import made_by, spec_difference
from jobs.foreign_errors.source_errors import source_errors_explained
from jobs.microbatch.context import Closing, RunContext
from jobs.recompute.accepted import all_accepted_rows
from jobs.recompute.rebuild import rebuild_range
from jobs.recompute.rebuild_panes import check_limit_of_range
from jobs.recompute.time_range import TimeRange
from jobs.recompute.totals import count_accepted
from windowing.admit.rule import lateness_cuts
from windowing.columns import JUDGED, TIME, WHY
from windowing.crash import crashpoint
from windowing.doctor.rule import advice
from windowing.errors import StateRefused
from windowing.grid.zone import micros
from windowing.ledger.rule import (
    EVOLVE_DONE,
    EVOLVE_INTENT,
    GENERATION,
    LedgerEntry,
    LedgerExcerpt,
    LedgerHistory,
)
from windowing.ledger.table import Past, read_history, record_entries
from windowing.panes.rule import BACKFILLED
from windowing.panes.table import Stamp
from windowing.source import table as source
from windowing.source.rule import was_rewritten
from windowing.spec.fingerprint import AGGREGATE, fingerprint
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import join_names


def apply_spec_change(spark: SparkSession, pipeline: Pipeline, past: Past) -> Past:
    """The history once state and outputs are what the spec requires.

    An added window contains what was accepted so far, and the table of a removed window stays.
    Admissions stay what they were: rows refused as late stay refused, and no other window changes.
    StateRefused, with nothing written, where the new spec can't accept the events.
    """
    if past.open_evolution is None and not spec_difference(pipeline, past):
        return past
    arrival = max(micros(datetime.now(UTC)), past.last_arrival or 0)
    batch = RunContext(
        spark,
        pipeline,
        Stamp(past.last_run, BACKFILLED, GENERATION, None),
        arrival,
        source_was_rewritten=was_rewritten(past),
        erased=past.erased_keys,
    )
    events = _read_accepted_events(batch, past)
    if events is not None and past.open_evolution is None:
        added = _select_windows(spec_difference(pipeline, past).added)
        check_limit_of_new_windows(batch, events, past.read_version or 0, added)
    past, begun = _record_intent(batch, past)
    tables.ensure_tables(spark, pipeline)
    crashpoint("evolve.widened")
    counts: dict[str, int] = {}
    if events is not None and past.read_version is not None:
        # The watermark does not move, so no window closes by this.
        closing = Closing(batch, past.watermark, past.watermark, None)
        rebuilt = rebuild_everything(closing, events, past.read_version)
        recorded = read_history(pipeline)
        missed = _count_partly_late(batch, events, recorded, begun)
        accepted = count_accepted(batch) - recorded.total("accepted")
        counts = {**rebuilt, **missed, "accepted": accepted}
    crashpoint("evolve.filled")
    done = replace(
        begun,
        step=EVOLVE_DONE,
        counts=counts,
        versions=tables.table_versions(spark, pipeline),
        note=None,
    )
    past = record_entries(pipeline, past, [done])
    crashpoint("evolve.done")
    return past


def pending_spec_changes(pipeline: Pipeline, past: LedgerExcerpt) -> tuple[str, ...]:
    """Windows and aggregates added or removed by the spec but not applied yet."""
    if past.open_evolution is not None:
        begun = loads(past.open_evolution.note or "{}")
        return (*begun["came"], *begun["went"])
    found = spec_difference(pipeline, past)
    return (*found.added, *found.removed)


def _read_accepted_events(batch: RunContext, past: LedgerExcerpt) -> DataFrame | None:
    """The events accepted so far; None while nothing has been read.

    StateRefused where the spec would refuse one of them, or requires another type of a column.
    """
    pipeline = batch.pipeline
    retyped = tables.find_retyped_columns(batch.spark, pipeline)
    if retyped:
        problem = f"{join_names(retyped)} had another type in an earlier spec; name it otherwise"
        raise _spec_change_refused(pipeline, problem)
    if past.read_version is None:
        return None
    with source_errors_explained(batch.spark, pipeline, past):
        events = all_accepted_rows(batch, past.read_version).localCheckpoint(eager=True)
    reasons = _list_reasons(events)
    if reasons:
        problem = f"events that were accepted would be refused now ({reasons[0]})"
        raise _spec_change_refused(pipeline, f"{problem}; leave out what needs that column")
    return events


def _list_reasons(events: DataFrame) -> list[str]:
    """Why the spec would refuse events; the reason of most of them comes first."""
    counts = events.where(F.col(WHY).isNotNull()).groupBy(WHY).count()
    return [row[WHY] for row in counts.orderBy(F.desc("count"), WHY).collect()]


def _spec_change_refused(pipeline: Pipeline, problem: str) -> StateRefused:
    where = pipeline.file or pipeline.name
    return StateRefused("SPEC_CHANGED", f"{where}: {problem}, or {advice(pipeline)}")


def _record_intent(batch: RunContext, past: Past) -> tuple[Past, LedgerEntry]:
    """The history with the intent of this spec, and the intent."""
    if past.open_evolution is not None:
        return past, past.open_evolution
    spark, pipeline = batch.spark, batch.pipeline
    found = spec_difference(pipeline, past)
    made = loads(made_by(pipeline, source.schema(spark, pipeline)))
    note = dumps(made | {"came": list(found.added), "went": list(found.removed)})
    intent = LedgerEntry(
        EVOLVE_INTENT,
        generation=GENERATION,
        run=past.last_run,
        at=batch.arrival_us,
        arrival=batch.arrival_us,
        spec=fingerprint(pipeline),
        note=note,
    )
    past = record_entries(pipeline, past, [intent])
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


def rebuild_everything(closing: Closing, events: DataFrame, version: int) -> dict[str, int]:
    """Overwrites the state of `closing`'s pipeline and corrects its outputs.

    `events` are all accepted events of the source at `version`. Returns the counts of the outputs.
    """
    return rebuild_range(closing, _find_whole_range(events, version), events)


def check_limit_of_new_windows(
    batch: RunContext, events: DataFrame, version: int, came: Collection[str]
) -> None:
    """StateRefused if an added window would have more empty windows than its limit.

    `came` names the added windows. Nothing is written.
    """
    check_limit_of_range(batch, _find_whole_range(events, version), events, came)


def _find_whole_range(events: DataFrame, version: int) -> TimeRange:
    """The range from the first event to the last; any range where there is no event."""
    ends = events.agg(F.min(TIME), F.max(TIME)).first()
    if ends is None or ends[0] is None:
        return TimeRange(0, 1, version, is_everything=True)
    return TimeRange(ends[0], ends[1] + 1, version, is_everything=True)
