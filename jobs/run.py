"""Runs a pipeline once: reads everything that is new in the source, then stops.

lock -> diagnosis -> stream (availableNow): intent, batch, done -> close: watermark
"""

from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from jobs.microbatch.stream import Run
from jobs.preflight import lock
from jobs.preflight.diagnose import prepare_run
from jobs.preflight.exact_session import in_exact_session
from jobs.preflight.run_size import estimate_run_size
from jobs.preflight.small_session import session_of_size
from jobs.recompute.resume import reprocess_source_changes, resume_from
from jobs.recompute.spec_evolution import pending_spec_changes
from windowing.crash import crashpoint
from windowing.grid.zone import micros
from windowing.kept_open import tables_kept_open
from windowing.ledger.table import read_excerpt
from windowing.report.rule import RunReport, add_corrections
from windowing.spec.pipeline import Pipeline


@in_exact_session
def run(spark: SparkSession, pipeline: Pipeline, arrival: datetime | None = None) -> RunReport:
    """Reads everything new, corrects every output and advances the watermark once.

    The report counts the rows read by outcome, and the changed rows by window. `arrival` (aware)
    stands for the host clock; the arrival never goes back, whatever it is. A failed run is finished
    by the next one. Raises SourceMissing, StateRefused, Busy and SpecError.
    """
    with lock.writer(spark, pipeline), tables_kept_open():
        crashpoint("run.locked")
        before = read_excerpt(pipeline)
        schema = prepare_run(spark, pipeline, before)
        past = resume_from(spark, pipeline, before)
        crashpoint("run.prepared")
        clock_us = micros(arrival or datetime.now(UTC))
        arrival_us = max(clock_us, past.last_arrival or clock_us)
        size = estimate_run_size(pipeline, past)
        new_rows = None if size is None else size.new_rows
        of_size = session_of_size(spark, size)
        stream = Run(of_size, pipeline, past, arrival_us, schema, new_rows)
        stream.drain()
        found = replace(stream.close(), evolved=pending_spec_changes(pipeline, before))
        # Rows that changed in the source are reprocessed afterwards, as backfills of their ranges.
        _, done_entries = reprocess_source_changes(spark, pipeline, stream.story)
        return add_corrections(found, [done.counts for done in done_entries])
