"""Backfills [start, end): state and outputs become as if all events of the range had been on time.

lock -> interrupted steps finished -> plan: chunks -> each chunk: rows staged without the lock ->
lock -> intent, repair, done
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import SparkSession

from jobs.diagnosis.diagnose import prepare_run
from jobs.locking import lock
from jobs.microbatch.context import RunContext
from jobs.recompute.chunk import repair_chunk
from jobs.recompute.plan import (
    begun_before,
    chunks_of,
    must_be_the_same,
    read_version,
    select_chunks_of,
)
from jobs.recompute.refused import refused_after
from jobs.recompute.resume import finish_all, finish_open_run, resume_from
from jobs.recompute.spec_evolution import pending_spec_changes
from jobs.recompute.staging import context_of_chunk, refresh_staged, stage_chunk
from jobs.recompute.time_range import TimeRange
from jobs.sessions.exact_session import in_exact_session
from windowing.admit.outcomes import REFUSED
from windowing.grid.zone import moment
from windowing.ledger.counts import sum_entry_counts
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import EVOLVE_DONE, MAINTAIN_DONE, LedgerEntry
from windowing.ledger.table import read_history
from windowing.report.changed import describe_steps
from windowing.report.rule import RunReport, list_caught_up, run_report
from windowing.report.text import plain_fields
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta_log
from windowing.windows.reach import find_reach

Progress = Callable[[int, int], None]
"""Called with (chunks done, all chunks)."""


@dataclass(frozen=True)
class BackfillPlan:
    """What a backfill would do.

    `chunks` are ranges [from, to) of event time, and `source_version` is the version that is read.
    `windows` has the bounds of what may change by window.
    """

    chunks: tuple[tuple[datetime, datetime], ...]
    source_version: int
    windows: dict[str, tuple[datetime, datetime]]

    def as_json(self) -> dict[str, object]:
        """The plan as plain JSON values; times are ISO 8601 in UTC."""
        return plain_fields(self)


def plan(pipeline: Pipeline, start: datetime, end: datetime) -> BackfillPlan:
    """The plan of `backfill` with the same arguments; writes nothing and needs no JVM."""
    past = read_history(pipeline)
    chunks = chunks_of(pipeline, start, end, past)
    first, last = chunks[0][0], chunks[-1][1]
    reach = {w.name: find_reach(pipeline, w.name, first, last) for w in pipeline.windows}
    bounds = tuple((moment(low), moment(high)) for low, high in chunks)
    return BackfillPlan(bounds, read_version(pipeline, past), reach)


@in_exact_session
def backfill(
    spark: SparkSession,
    pipeline: Pipeline,
    start: datetime,
    end: datetime,
    progress: Progress = lambda done, total: None,
) -> RunReport:
    """Reprocesses every event of [start, end) and corrects state and outputs; W stays where it is.

    `start` is inside the range and `end` is not. Late and refused rows of the range are accepted if
    they are valid. The source is read at the version that the last run left; `versions_unread` of
    the report counts the newer ones. Runs go on while a chunk is read, and wait while its state and
    outputs are swapped.

    An interrupted run or backfill is finished first. Of an interrupted backfill of the same range,
    the chunks that are done are skipped, unless a row of theirs was refused since. `progress` is
    called with (chunks done, all chunks). Raises as `run` does, and UsageError for a range that
    can't be backfilled.
    """
    # A wrong range is refused before the lock is taken; the ledger isn't needed to see that.
    chunks_of(pipeline, start, end, LedgerHistory())
    with lock.writer(spark, pipeline):
        left = read_history(pipeline)
        prepare_run(spark, pipeline, left)
        began = finish_open_run(spark, pipeline, resume_from(spark, pipeline, left))
    past = began
    read_version(pipeline, past)
    bounds = chunks_of(pipeline, start, end, past)
    asked = (bounds[0][0], bounds[-1][1])
    resumed = began.entries[len(left.entries) :]
    done_entries = select_chunks_of(resumed, asked)
    # What was done by another spec is done again.
    before = began if any(entry.step == EVOLVE_DONE for entry in resumed) else left
    for n, (low, high) in enumerate(bounds):
        progress(n, len(bounds))
        chunk = TimeRange(low, high, read_version(pipeline, past), asked=asked)
        if not _was_done_before(context_of_chunk(spark, pipeline, past), before, chunk):
            past, done = _backfill_chunk(spark, pipeline, began, past, chunk)
            done_entries.append(done)
    progress(len(bounds), len(bounds))
    names = [w.name for w in pipeline.windows]
    counts = sum_entry_counts(done_entries)
    found = run_report(past.last_run, len(bounds), counts, past.watermark, names)
    newest = delta_log.version(spark, pipeline.source.table)
    unread = newest - read_version(pipeline, past)
    return replace(
        found,
        evolved=pending_spec_changes(pipeline, left),
        versions_unread=unread,
        changed_days=describe_steps([done.counts for done in done_entries], pipeline.windows),
        caught_up=list_caught_up(counts, names),
    )


def _backfill_chunk(
    spark: SparkSession,
    pipeline: Pipeline,
    began: LedgerHistory,
    past: LedgerHistory,
    chunk: TimeRange,
) -> tuple[LedgerHistory, LedgerEntry]:
    """The ledger after one more chunk, and its done entry; `began` is the ledger at the start."""
    staged = stage_chunk(spark, pipeline, past, chunk)
    with lock.waiting(spark, pipeline):
        # Runs may have written while the chunk was staged; `refresh_staged` reads it again then.
        must_be_the_same(pipeline, began, read_history(pipeline))
        past = finish_all(spark, pipeline)
        return repair_chunk(
            spark, pipeline, past, refresh_staged(spark, pipeline, past, staged), None
        )


def _was_done_before(batch: RunContext, left: LedgerHistory, chunk: TimeRange) -> bool:
    """Whether an interrupted backfill of the same range did this chunk, and nothing is new.

    Something is new once a row of the chunk was refused since, which this backfill may accept.
    """
    ended = begun_before(left, chunk)
    if ended is None:
        return False
    # Maintenance deletes expired refused rows, and how many were of this chunk is not recorded.
    refused_rows_expired = any(
        any(map(e.counts.get, REFUSED))
        for e in left.entries
        if e.step == MAINTAIN_DONE and e.seq > ended.seq
    )
    if refused_rows_expired:
        return False
    return not refused_after(batch, ended.run or 0, chunk)
