"""What a chunk of a backfill reads from the source, read before the lock is taken: runs go on meanwhile, and what they bring is noticed.

source at a version -> rows of the chunk, and of what its panes and sessions reach beyond it -> kept until the chunk is swapped
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from jobs.microbatch.context import Batch
from jobs.preflight.source_errors import told
from jobs.recompute.accepted import nearby
from jobs.recompute.refused import refused_after
from jobs.recompute.time_range import Chunk, extent
from windowing.crash import crashpoint
from windowing.grid.zone import micros
from windowing.ledger.rule import GENERATION, Story
from windowing.panes.rule import BACKFILLED
from windowing.panes.table import Stamp
from windowing.source.rule import fed
from windowing.spec.pipeline import Pipeline


@dataclass(frozen=True)
class Staged:
    """The rows with event times from `low_us` to before `high_us`, read when `run` was the newest and `seq` the ledger's next step.

    `arrival_us` is what they were judged by; it stays the chunk's.
    """

    chunk: Chunk
    low_us: int
    high_us: int
    arrival_us: int
    run: int
    seq: int
    rows: DataFrame


def judge(
    spark: SparkSession, pipeline: Pipeline, past: Story, arrival_us: int | None = None
) -> Batch:
    """What the rows of a chunk are judged by and stamped with."""
    clock = max(micros(datetime.now(UTC)), past.last_arrival or 0)
    return Batch(
        spark,
        pipeline,
        Stamp(past.last_run, BACKFILLED, GENERATION, None),
        arrival_us or clock,
        past.worn,
        fed(past),
    )


def stage(
    spark: SparkSession,
    pipeline: Pipeline,
    past: Story,
    chunk: Chunk,
    arrival_us: int | None = None,
) -> Staged:
    """Reads what `chunk` needs of the source, judged by `arrival_us` or the clock of now; needs no lock."""
    batch = judge(spark, pipeline, past, arrival_us)
    low, high = extent(batch, chunk)
    with told(spark, pipeline, past):
        rows = nearby(batch, chunk, low, high).localCheckpoint(eager=True)
    crashpoint("backfill.staged")
    return Staged(chunk, low, high, batch.arrival_us, past.last_run, past.next_seq, rows)


def current(spark: SparkSession, pipeline: Pipeline, past: Story, staged: Staged) -> Staged:
    """What was staged, if it still is what the source holds up to `past`; else it is read anew, and judged by the clock of now."""
    newest = replace(staged.chunk, version=past.read_version or staged.chunk.version)
    if past.next_seq == staged.seq or _same(judge(spark, pipeline, past), past, staged):
        return replace(staged, chunk=newest)
    return stage(spark, pipeline, past, newest)


def _same(batch: Batch, past: Story, staged: Staged) -> bool:
    """Whether no run since has read a row of these times, and no session has come to reach beyond them."""
    low, high = extent(batch, staged.chunk)
    if (
        low < staged.low_us
        or high > staged.high_us
        or past.touched_since(staged.seq, staged.low_us, staged.high_us)
    ):
        return False
    return not refused_after(
        batch, staged.run, Chunk(staged.low_us, staged.high_us, staged.chunk.version)
    )
