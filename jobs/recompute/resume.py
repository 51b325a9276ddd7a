"""What was left half-done is finished first: a chunk, a change of the spec, a run, and the ranges that the source has changed."""

from datetime import UTC, datetime

from pyspark.sql import SparkSession

from jobs.microbatch.stream import Run
from jobs.preflight.diagnose import prepared
from jobs.recompute.chunk import finish, one
from jobs.recompute.spec_evolution import evolved
from jobs.recompute.staging import stage
from jobs.recompute.time_range import Chunk
from windowing.grid.zone import micros
from windowing.ledger.rule import Entry, Story
from windowing.source.rule import pending
from windowing.spec.pipeline import Pipeline


def ready(spark: SparkSession, pipeline: Pipeline) -> Story:
    """The story once spec, source, ledger and tables fit together, and nothing but a run is left half-way. StateRefused otherwise."""
    return caught_up(spark, pipeline, prepared(spark, pipeline))


def caught_up(spark: SparkSession, pipeline: Pipeline, past: Story) -> Story:
    """The same from the story that `prepared` gave."""
    return finish(spark, pipeline, evolved(spark, pipeline, past))


def finished(spark: SparkSession, pipeline: Pipeline, past: Story) -> Story:
    """The story once a run that was left open is closed, and what the source has changed is counted again."""
    if past.open_run is not None:
        unfinished = Run(
            spark, pipeline, past, max(micros(datetime.now(UTC)), past.last_arrival or 0)
        )
        unfinished.drain()
        unfinished.close()
        past = unfinished.story
    return corrected(spark, pipeline, past)[0]


def corrected(
    spark: SparkSession, pipeline: Pipeline, past: Story
) -> tuple[Story, tuple[Entry, ...]]:
    """Counts every range again that the source's changes touched; the story since, and the ends of the backfills that did it."""
    ends: list[Entry] = []
    for batch, low, high in pending(past):
        staged = stage(spark, pipeline, past, Chunk(low, high, past.read_version or 0, batch))
        past, end = one(spark, pipeline, past, staged, None)
        ends.append(end)
    return past, tuple(ends)
