"""Runs a pipeline once: reads everything that is new in the source, then stops.

A run is refused by commits that removed rows of the source; `follow_rewrites` follows these.

lock -> diagnosis -> stream (availableNow): intent, batch, done -> close: watermark
"""

from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from jobs.diagnosis.diagnose import prepare_run
from jobs.locking import lock
from jobs.microbatch.source_changes import Following
from jobs.microbatch.stream import Run
from jobs.recompute.plan import check_bounds
from jobs.recompute.resume import reprocess_source_changes, resume_from
from jobs.recompute.spec_evolution import pending_spec_changes
from jobs.sessions.exact_session import in_exact_session
from jobs.sessions.small_session import session_of_size
from jobs.shortcuts.run_size import estimate_run_size
from windowing.crash import crashpoint
from windowing.errors import UsageError
from windowing.grid.range import Range
from windowing.grid.zone import micros
from windowing.ledger.table import read_excerpt
from windowing.report.changed import describe_steps
from windowing.report.progress import Watch
from windowing.report.rule import RunReport, add_corrections
from windowing.source.rule import find_followed, pending_changes
from windowing.spec.pipeline import Pipeline


@in_exact_session
def run(
    spark: SparkSession,
    pipeline: Pipeline,
    arrival: datetime | None = None,
    watch: Watch = lambda progress: None,
) -> RunReport:
    """Reads everything new, corrects every output and advances the watermark once.

    The report counts the rows read by outcome, and the changed rows by window. `arrival` (aware)
    stands for the host clock; the arrival never goes back, whatever it is. A failed run is finished
    by the next one. Where there is more to read than one batch may, `watch` is called with how far
    the run has come. Raises SourceMissing, StateRefused, Busy and SpecError.
    """
    return _read_new_rows(spark, pipeline, arrival, None, watch)


@in_exact_session
def follow_rewrites(
    spark: SparkSession,
    pipeline: Pipeline,
    start: datetime | None = None,
    end: datetime | None = None,
) -> RunReport:
    """A run that also follows what was updated or deleted in the source after it had been read.

    What was appended is read as by `run`. The event times of updated and deleted rows, before and
    after the change, are then reprocessed as by a backfill of the newest version: those of
    [start, end), or all where there are no bounds. The source needs no change feed for it, only the
    files of the version that was read last. The report's `followed` names the ranges that were
    reprocessed and those that were left out; it is None where no row differs.

    Raises as `run` does, and UsageError where events happen when they arrive. Where those files are
    gone it raises StateRefused and has written nothing.
    """
    if pipeline.source.event_time.column is None:
        raise UsageError(
            f"{pipeline.name}: events happen when they arrive (event_time: arrival), so what was "
            "updated or deleted in the source has no event time to reprocess"
        )
    within = None
    if start is not None and end is not None:
        low_us, high_us = check_bounds(start, end)
        within = Range(low_us, high_us - 1)
    elif start is not None or end is not None:
        raise UsageError("a range has a start and an end; without both, all changes are followed")
    return _read_new_rows(spark, pipeline, None, Following(within))


def _read_new_rows(
    spark: SparkSession,
    pipeline: Pipeline,
    arrival: datetime | None,
    following: Following | None,
    watch: Watch = lambda progress: None,
) -> RunReport:
    with lock.writer(spark, pipeline):
        crashpoint("run.locked")
        before = read_excerpt(pipeline)
        schema = prepare_run(spark, pipeline, before)
        past = resume_from(spark, pipeline, before)
        crashpoint("run.prepared")
        clock_us = micros(arrival or datetime.now(UTC))
        arrival_us = max(clock_us, past.last_arrival or clock_us)
        # A run that was killed may have left ranges that this one reprocesses.
        left = {batch for batch, _, _ in pending_changes(past)} if following else set()
        size = None if following else estimate_run_size(pipeline, past)
        new_rows = None if size is None else size.new_rows
        of_size = session_of_size(spark, size)
        stream = Run(of_size, pipeline, past, arrival_us, schema, new_rows, following, watch)
        stream.drain()
        found = replace(
            stream.close(),
            evolved=pending_spec_changes(pipeline, before),
            followed=find_followed(stream.past, {*left, *_list_batches(stream)}),
        )
        # Rows that changed in the source are reprocessed afterwards, as backfills of their ranges.
        _, done_entries = reprocess_source_changes(spark, pipeline, stream.past)
        corrections = [done.counts for done in done_entries]
        closed = stream.past.closed
        own = [] if found.run is None or closed is None else [closed.counts]
        days = describe_steps([*own, *corrections], pipeline.windows)
        return replace(add_corrections(found, corrections), changed_days=days)


def _list_batches(stream: Run) -> list[int]:
    """The batches that the run has finished."""
    return [entry.batch for entry in stream.past.done(stream.number) if entry.batch is not None]
