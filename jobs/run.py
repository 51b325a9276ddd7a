"""One run: everything that is new in the source, then stop.

lock -> what the ledger says -> source checks -> stream (availableNow): intent, batch, done -> close: watermark
"""

from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from jobs.microbatch.stream import Run
from jobs.preflight import lock
from jobs.preflight.diagnose import prepared
from jobs.preflight.exact_session import in_exact_session
from jobs.recompute.resume import caught_up, corrected
from jobs.recompute.spec_evolution import unmet
from windowing.crash import crashpoint
from windowing.grid.zone import micros
from windowing.report.rule import RunReport, corrections
from windowing.spec.pipeline import Pipeline


@in_exact_session
def run(spark: SparkSession, pipeline: Pipeline, arrival: datetime | None = None) -> RunReport:
    """Reads everything new, corrects every output, advances the watermark once; the report says how many rows went where.

    `arrival` (aware) stands for the host clock. Raises SourceMissing, StateRefused, Busy, SpecError; a failed run is finished by the next.
    """
    with lock.writer(spark, pipeline):
        crashpoint("run.locked")
        before = prepared(spark, pipeline)
        story = caught_up(spark, pipeline, before)
        crashpoint("run.prepared")
        clock = micros(arrival or datetime.now(UTC))
        session = Run(spark, pipeline, story, max(clock, story.last_arrival or clock))
        session.drain()
        found = replace(session.close(), evolved=unmet(pipeline, before))
        return corrections(
            found, [end.counts for end in corrected(spark, pipeline, session.story)[1]]
        )
