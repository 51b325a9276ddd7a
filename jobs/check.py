"""Reconciles a range: what a backfill of it would change, found on a copy; the pipeline itself is only read.

    lock -> shallow clones of every table -> unlocked: backfill of the copy -> its outputs beside the published ones -> copy deleted
"""

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs import lock
from jobs.backfill import Progress, chunks_of
from jobs.chunk import one
from jobs.prepare import difference, problems
from jobs.repair import Chunk
from jobs.staging import judge, stage
from jobs.tables import versions
from windowing import delta
from windowing.crash import crashpoint
from windowing.errors import UsageError
from windowing.ledger.rule import Entry, Story, summed
from windowing.ledger.table import story
from windowing.merge.rule import output
from windowing.report import difference as differences
from windowing.report.difference import Difference
from windowing.report.frame import records
from windowing.report.rule import Changed, report
from windowing.report.text import left_open
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline

COPY = "_check"
"""The directory of the copy, inside the pipeline's own."""
_SHOWN = 5


@dataclass(frozen=True)
class Checked:
    """What a backfill would do: events recounted, how many more would count, changes by window, and the first windows that differ."""

    read: int
    accepted: int
    windows: Mapping[str, Changed]
    examples: tuple[Difference, ...]

    @property
    def agrees(self) -> bool:
        """Whether the range is what its events say it is."""
        return not self.accepted and not any((c.inserted, c.updated, c.deleted) != (0, 0, 0) for c in self.windows.values())

    def as_json(self) -> dict[str, object]:
        """The same as plain JSON values."""
        changes = {name: {"inserted": c.inserted, "updated": c.updated, "deleted": c.deleted} for name, c in self.windows.items()}
        examples = [example.as_json() for example in self.examples]
        return {"agrees": self.agrees, "read": self.read, "accepted": self.accepted, "windows": changes, "examples": examples}


def check(
    spark: SparkSession, pipeline: Pipeline, start: datetime, end: datetime, progress: Progress = lambda done, total: None
) -> Checked:
    """Recomputes [start, end) from the source and compares; nothing that users or runs read is written.

    Late and refused rows count as `backfill` would count them. UsageError while a run is left half-way, or the spec has changed since.
    """
    chunks = chunks_of(start, end)
    with ExitStack() as held:
        with lock.writer(spark, pipeline):
            past = _whole(spark, pipeline)
            copy = _copy(pipeline)
            held.enter_context(lock.writer(spark, copy))
            held.callback(_delete, pipeline)
            _clone(spark, pipeline, copy)
        crashpoint("check.cloned")
        ends = _recounted(spark, copy, past, chunks, progress)
        found = report(past.last_run, len(ends), summed(ends), past.watermark, [w.name for w in pipeline.windows])
        examples = [_example(spark, pipeline, copy, w) for w in pipeline.windows if found.windows[w.name] != Changed()]
        return Checked(found.read, found.accepted, found.windows, tuple(e for e in examples if e is not None))


def sweep(spark: SparkSession, pipeline: Pipeline) -> None:
    """Deletes the copy that a killed check has left; Busy while a check is at work."""
    if delta.local_path(pipeline.table(COPY)).exists():
        with lock.writer(spark, _copy(pipeline)):
            _delete(pipeline)


def _delete(pipeline: Pipeline) -> None:
    shutil.rmtree(delta.local_path(pipeline.table(COPY)), ignore_errors=True)


def _copy(pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, lake=pipeline.table(COPY))


def _whole(spark: SparkSession, pipeline: Pipeline) -> Story:
    """The ledger's story, of a pipeline that is not half-way through anything. StateRefused as `run` would be."""
    past = story(spark, pipeline)
    for refused in problems(spark, pipeline, past):
        raise refused
    if past.read_version is None:
        raise UsageError(f"{pipeline.name}: nothing has been read yet, so there is nothing to check; `tidemark run` first")
    if past.is_open or difference(pipeline, past):
        why = "; ".join(left_open(past)) or "the spec has changed since the last run: the next run follows it"
        raise UsageError(f"{pipeline.name}: {why}; check after that")
    return past


def _clone(spark: SparkSession, pipeline: Pipeline, copy: Pipeline) -> None:
    """New tables over the same files; what is written to them goes to the copy."""
    for name in versions(spark, pipeline):
        shutil.rmtree(delta.local_path(copy.table(name)), ignore_errors=True)
        spark.sql(f"create table delta.`{copy.table(name)}` shallow clone delta.`{pipeline.table(name)}`")


def _recounted(
    spark: SparkSession, copy: Pipeline, past: Story, chunks: tuple[tuple[int, int], ...], progress: Progress
) -> list[Entry]:
    """The ends of the chunks, done to the copy."""
    ends: list[Entry] = []
    for n, (low, high) in enumerate(chunks):
        progress(n, len(chunks))
        chunk = Chunk(low, high, past.read_version or 0)
        past, done = one(spark, copy, past, stage(judge(spark, copy, past), past, chunk), None)
        ends.append(done)
    progress(len(chunks), len(chunks))
    return ends


def _example(spark: SparkSession, pipeline: Pipeline, copy: Pipeline, window: Window) -> Difference | None:
    """The first windows of an output that are not what they should be."""
    target, other = output(pipeline, window), output(copy, window)
    found, wanted = (delta.read(spark, t.path).select(*target.shown) for t in (target, other))
    differ = wanted.exceptAll(found).unionByName(found.exceptAll(wanted)).select(*target.identity).distinct()
    first = differ.orderBy(*target.identity).limit(_SHOWN).localCheckpoint(eager=True)
    rows = [records(_among(side, first, target.identity), 2 * _SHOWN) for side in (wanted, found)]
    return differences.difference(window.name, rows[0], rows[1], target.identity)


def _among(rows: DataFrame, some: DataFrame, identity: tuple[str, ...]) -> DataFrame:
    same = [F.col(f"r.`{c}`").eqNullSafe(F.col(f"s.`{c}`")) for c in identity]
    return rows.alias("r").join(some.alias("s"), reduce(lambda a, b: a & b, same), "left_semi")
