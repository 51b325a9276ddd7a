"""Finishes what was interrupted before a command begins its own work.

That may be a chunk, a change of the spec, a run, or the ranges that the source has changed.
"""

from dataclasses import replace

from pyspark.sql import SparkSession

from jobs.diagnosis.diagnose import prepare_run
from jobs.diagnosis.tables import table_versions
from jobs.microbatch.context import context_after
from jobs.microbatch.stream import Run
from jobs.recompute.chunk import finish_open_chunk, repair_chunk
from jobs.recompute.periods import finish_open_period
from jobs.recompute.spec_evolution import apply_spec_change
from jobs.recompute.staging import stage_chunk
from jobs.recompute.time_range import TimeRange
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import MAINTAIN_DONE, LedgerEntry
from windowing.ledger.table import Past, read_history, record_entries
from windowing.source import table as source
from windowing.source.rule import pending_changes
from windowing.spec.pipeline import Pipeline


def finish_all(spark: SparkSession, pipeline: Pipeline) -> LedgerHistory:
    """The history once the pipeline is consistent and nothing is left open.

    Spec, source, ledger and tables are consistent then; StateRefused where they are not.
    """
    past = read_history(pipeline)
    prepare_run(spark, pipeline, past)
    return finish_open_run(spark, pipeline, resume_from(spark, pipeline, past))


def resume_from(spark: SparkSession, pipeline: Pipeline, past: Past) -> Past:
    """The history once nothing but a run is left open, from one that `prepare_run` has found good.

    Good is one with which spec, source and tables are consistent.
    """
    past = _end_open_maintenance(pipeline, past)
    past = finish_open_period(spark, pipeline, past)
    past = apply_spec_change(spark, pipeline, past)
    return finish_open_chunk(spark, pipeline, past)


def _end_open_maintenance(pipeline: Pipeline, past: Past) -> Past:
    """The history in which what an interrupted maintenance has committed is its own.

    All that it has left undone is for the next one. How many rows it has expired is not known.
    """
    begun = past.open_maintenance
    if begun is None:
        return past
    done = replace(begun, step=MAINTAIN_DONE, versions=table_versions(pipeline))
    return record_entries(pipeline, past, [done])


def finish_open_run(spark: SparkSession, pipeline: Pipeline, past: LedgerHistory) -> LedgerHistory:
    """The history once an open run is closed and the source's changes are reprocessed."""
    if past.open_run is not None:
        arrival = context_after(spark, pipeline, past).read_clock()
        schema = source.schema(spark, pipeline)
        unfinished = Run(spark, pipeline, past, arrival, schema)
        unfinished.drain()
        unfinished.close()
        past = read_history(pipeline)
    past, _ = reprocess_source_changes(spark, pipeline, past)
    return past


def reprocess_source_changes(
    spark: SparkSession, pipeline: Pipeline, past: Past
) -> tuple[Past, tuple[LedgerEntry, ...]]:
    """Reprocesses every range that the source's changes touched.

    Returns the history since, and the done entries of the backfills that did it.
    """
    done_entries: list[LedgerEntry] = []
    for batch, low, high in pending_changes(past):
        chunk = TimeRange(low, high, past.read_version or 0, batch)
        staged = stage_chunk(spark, pipeline, past, chunk)
        past, done = repair_chunk(spark, pipeline, past, staged, None)
        done_entries.append(done)
    return past, tuple(done_entries)
