"""Reads what a chunk of a backfill needs from the source, before the lock is taken.

Runs continue meanwhile, and what they change is noticed.

source at a version -> rows of the chunk, and of its panes and sessions that reach beyond it
-> kept until the chunk is swapped
"""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from jobs.foreign_errors.source_errors import source_errors_explained
from jobs.microbatch.context import RunContext, context_after
from jobs.recompute.accepted import count_erased_rows, source_rows_near
from jobs.recompute.refused import refused_after
from jobs.recompute.time_range import TimeRange, widen_to_read
from windowing.crash import crashpoint
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import LedgerExcerpt
from windowing.panes.rule import BACKFILLED
from windowing.panes.table import Stamp
from windowing.source.rule import has_changed_since, was_rewritten
from windowing.spec.pipeline import Pipeline
from windowing.storage.pinned_rows import pin_rows


@dataclass(frozen=True)
class Staged:
    """The rows that a chunk needs, with the event times `read`.

    They were read when `run` was the newest run and `seq` the ledger's next step. `arrival_us` is
    the arrival that they were admitted by, and the chunk keeps it. So many rows of the chunk are of
    `erased` keys and not among the `rows`.
    """

    chunk: TimeRange
    read: TimeRange
    arrival_us: int
    run: int
    seq: int
    rows: DataFrame
    erased: int


def context_of_chunk(
    spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt, arrival_us: int | None = None
) -> RunContext:
    """What the rows of a chunk are admitted by and stamped with."""
    # Arrival never goes back, even where the host clock does.
    clock_us = context_after(spark, pipeline, past).read_clock()
    stamp = Stamp(past.last_run, BACKFILLED, None)
    return RunContext(
        spark,
        pipeline,
        stamp,
        arrival_us or clock_us,
        past.state_may_be_expired,
        was_rewritten(past),
        versions_before=past.versions if past.open_backfill else None,
        erased=past.erasures,
    )


def stage_chunk(
    spark: SparkSession,
    pipeline: Pipeline,
    past: LedgerExcerpt,
    chunk: TimeRange,
    arrival_us: int | None = None,
) -> Staged:
    """Reads what `chunk` needs of the source; needs no lock.

    The rows are admitted by `arrival_us` or, where it is None, by the current clock.
    """
    batch = context_of_chunk(spark, pipeline, past, arrival_us)
    read = widen_to_read(batch, chunk)
    with source_errors_explained(spark, pipeline, past):
        rows = pin_rows(source_rows_near(batch, chunk, read))
        erased = count_erased_rows(batch, chunk)
    crashpoint("backfill.staged")
    return Staged(chunk, read, batch.arrival_us, past.last_run, past.next_seq, rows, erased)


def refresh_staged(
    spark: SparkSession, pipeline: Pipeline, past: LedgerHistory, staged: Staged
) -> Staged:
    """What was staged, if the source up to `past` still contains just that; else read again.

    Rows that are read again are admitted by the current clock.
    """
    newest = replace(staged.chunk, version=past.read_version or staged.chunk.version)
    if _is_still_current(spark, pipeline, past, staged):
        return replace(staged, chunk=newest)
    return stage_chunk(spark, pipeline, past, newest)


def _is_still_current(
    spark: SparkSession, pipeline: Pipeline, past: LedgerHistory, staged: Staged
) -> bool:
    """Whether no run since has read a row of these times, and no session has outgrown them."""
    if past.next_seq == staged.seq:
        return True
    batch = context_of_chunk(spark, pipeline, past)
    read = staged.read
    needed = widen_to_read(batch, staged.chunk)
    if read.times.cover(needed.times) != read.times:
        return False
    if past.touched_since(staged.seq, read.start_us, read.end_us):
        return False
    if has_changed_since(past, staged.seq, read.times):
        return False
    # A run may have refused every row of these times that it read, and the chunk may accept them.
    return not refused_after(batch, staged.run, read)
