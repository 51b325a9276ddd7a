"""Backfill of [start, end): state and output become what they would be had every event of the range been on time.

lock -> finish what was left open -> plan: chunks -> each chunk: rows staged without the lock -> lock -> intent, repair, done
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import SparkSession

from jobs.microbatch.context import Batch
from jobs.preflight import lock
from jobs.preflight.diagnose import prepared
from jobs.preflight.exact_session import in_exact_session
from jobs.recompute.chunk import one
from jobs.recompute.plan import begun_before, chunks_of, must_be_the_same, read_version
from jobs.recompute.refused import refused_after
from jobs.recompute.resume import caught_up, finished, ready
from jobs.recompute.spec_evolution import unmet
from jobs.recompute.staging import current, judge, stage
from jobs.recompute.time_range import Chunk
from windowing.admit.table import REFUSED
from windowing.grid.zone import moment
from windowing.ledger.rule import MAINTAIN_DONE, Entry, Story, summed
from windowing.ledger.table import story
from windowing.report.rule import RunReport, report
from windowing.spec.pipeline import Pipeline
from windowing.windows.reach import reach_of

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class BackfillPlan:
    """What a backfill would do: chunks [from, to), the source version it reads, and by window the bounds of what may change."""

    chunks: tuple[tuple[datetime, datetime], ...]
    source_version: int
    windows: dict[str, tuple[datetime, datetime]]

    def as_json(self) -> dict[str, object]:
        """The plan as plain JSON values; times are ISO 8601 in UTC."""
        return {
            "chunks": [[a.isoformat(), b.isoformat()] for a, b in self.chunks],
            "source_version": self.source_version,
            "windows": {
                name: [a.isoformat(), b.isoformat()] for name, (a, b) in self.windows.items()
            },
        }


@in_exact_session
def plan(spark: SparkSession, pipeline: Pipeline, start: datetime, end: datetime) -> BackfillPlan:
    """The plan of `backfill` with the same arguments; writes nothing."""
    past = story(spark, pipeline)
    chunks = chunks_of(pipeline, start, end, past)
    reach = {
        w.name: reach_of(pipeline, w.name, chunks[0][0], chunks[-1][1]) for w in pipeline.windows
    }
    return BackfillPlan(
        tuple((moment(low), moment(high)) for low, high in chunks),
        read_version(pipeline, past),
        reach,
    )


@in_exact_session
def backfill(
    spark: SparkSession,
    pipeline: Pipeline,
    start: datetime,
    end: datetime,
    progress: Progress = lambda done, total: None,
) -> RunReport:
    """Recounts every event of [start, end), late and refused ones included, and corrects state and outputs; never moves the watermark.

    Reads the source as the last run left it. Runs go on while a chunk is read, and wait while its state and outputs are swapped. A run or
    backfill that was left open is finished first; of the same range asked for before, chunks that were done are not done again unless
    a row of theirs was refused since. `progress` hears (chunks done, all). Raises as `run` does.
    """
    chunks_of(pipeline, start, end, Story())
    with lock.writer(spark, pipeline):
        left = prepared(spark, pipeline)
        past = began = finished(spark, pipeline, caught_up(spark, pipeline, left))
    read_version(pipeline, past)
    bounds = chunks_of(pipeline, start, end, past)
    asked = (bounds[0][0], bounds[-1][1])
    ends: list[Entry] = []
    for n, (low, high) in enumerate(bounds):
        progress(n, len(bounds))
        chunk = Chunk(low, high, read_version(pipeline, past), asked=asked)
        if not _done_before(judge(spark, pipeline, past), left, chunk):
            past, end_of = _one(spark, pipeline, began, past, chunk)
            ends.append(end_of)
    progress(len(bounds), len(bounds))
    found = report(
        past.last_run, len(bounds), summed(ends), past.watermark, [w.name for w in pipeline.windows]
    )
    return replace(found, evolved=unmet(pipeline, left))


def _one(
    spark: SparkSession, pipeline: Pipeline, began: Story, past: Story, chunk: Chunk
) -> tuple[Story, Entry]:
    """The story with one chunk more, and the end of that; `began` is the story when the backfill did."""
    staged = stage(spark, pipeline, past, chunk)
    with lock.waiting(spark, pipeline):
        must_be_the_same(pipeline, began, story(spark, pipeline))
        past = finished(spark, pipeline, ready(spark, pipeline))
        return one(spark, pipeline, past, current(spark, pipeline, past, staged), None)


def _done_before(batch: Batch, left: Story, chunk: Chunk) -> bool:
    """Whether the same range was asked for before and not finished, and this chunk of it was, and no row of it was refused since."""
    ended = begun_before(left, chunk)
    if ended is None or any(
        e.seq > ended.seq and any(map(e.counts.get, REFUSED))
        for e in left.entries
        if e.step == MAINTAIN_DONE
    ):
        return False
    return not refused_after(batch, ended.run or 0, chunk)
