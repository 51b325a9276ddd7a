"""Reconciles a range: what a backfill of it would change, found on a copy; the pipeline itself is only read.

lock -> shallow clones of every table -> without the lock: backfill of the copy -> its outputs beside the cloned ones -> copy deleted
found, wanted -> joined by what tells one window from another -> those that differ -> counts, examples
"""

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.backfill import Progress
from jobs.preflight import lock
from jobs.preflight.diagnose import problems
from jobs.preflight.exact_session import in_exact_session
from jobs.preflight.spec_changes import difference
from jobs.preflight.tables import versions
from jobs.recompute.chunk import one
from jobs.recompute.plan import chunks_of
from jobs.recompute.staging import stage
from jobs.recompute.time_range import Chunk
from windowing import delta
from windowing.crash import crashpoint
from windowing.errors import UsageError
from windowing.ledger.rule import Entry, Story, summed
from windowing.ledger.table import story
from windowing.merge.rule import Target, output
from windowing.report import difference as differences
from windowing.report.difference import CLOSE, Difference
from windowing.report.frame import records
from windowing.report.rule import Changed, vars_of
from windowing.report.text import left_open
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline

COPY = "_check"
"""The directory of the copy, inside the pipeline's own."""
ESTIMATES = ("quantile", "top_k")
"""Aggregates that give another value, within their error, whenever they are made anew; a difference in them alone is none."""
_SHOWN = 5
_FOUND, _WANTED, _CHANGE = "__found", "__wanted", "__change"


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
        return not self.accepted and all(change == Changed() for change in self.windows.values())

    def as_json(self) -> dict[str, object]:
        """The same as plain JSON values."""
        changes = {name: vars_of(change) for name, change in self.windows.items()}
        examples = [example.as_json() for example in self.examples]
        return {
            "agrees": self.agrees,
            "read": self.read,
            "accepted": self.accepted,
            "windows": changes,
            "examples": examples,
        }


@in_exact_session
def check(
    spark: SparkSession,
    pipeline: Pipeline,
    start: datetime,
    end: datetime,
    progress: Progress = lambda done, total: None,
) -> Checked:
    """Recomputes [start, end) from the source and compares; nothing that users or runs read is written.

    Late and refused rows count as `backfill` would count them. UsageError while a run is left half-way, or the spec has changed since.
    """
    chunks_of(pipeline, start, end, Story())
    with ExitStack() as held:
        with lock.writer(spark, pipeline):
            past, copy = _whole(spark, pipeline), _copy(pipeline)
            chunks = chunks_of(pipeline, start, end, past)
            held.enter_context(lock.writer(spark, copy))
            held.callback(_delete, spark, pipeline)
            cloned = _clone(spark, pipeline, copy)
        crashpoint("check.cloned")
        counts = summed(_recounted(spark, copy, past, chunks, progress))
        found = {
            w.name: _compared(spark, pipeline, copy, w, cloned[w.name]) for w in pipeline.windows
        }
        changes, examples = (
            {name: c for name, (c, _) in found.items()},
            tuple(e for _, e in found.values() if e is not None),
        )
        return Checked(counts.get("read", 0), counts.get("accepted", 0), changes, examples)


def sweep(spark: SparkSession, pipeline: Pipeline) -> None:
    """Deletes the copy that a killed check has left; Busy while a check is at work."""
    if delta.local_path(pipeline.table(COPY)).exists():
        with lock.writer(spark, _copy(pipeline)):
            _delete(spark, pipeline)


def _delete(spark: SparkSession, pipeline: Pipeline) -> None:
    home = delta.local_path(pipeline.table(COPY))
    delta.forget(spark, home)
    shutil.rmtree(home, ignore_errors=True)


def _copy(pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, lake=pipeline.table(COPY))


def _whole(spark: SparkSession, pipeline: Pipeline) -> Story:
    """The ledger's story, of a pipeline that is not half-way through anything. StateRefused as `run` would be."""
    past = story(spark, pipeline)
    for refused in problems(spark, pipeline, past):
        raise refused
    if past.read_version is None:
        raise UsageError(
            f"{pipeline.name}: nothing has been read yet, so there is nothing to check; `tidemark run` first"
        )
    if (why := left_open(past)) or difference(pipeline, past):
        told = "; ".join(why) or "the spec has changed since the last run: the next run follows it"
        raise UsageError(f"{pipeline.name}: {told}; check after that")
    return past


def _clone(spark: SparkSession, pipeline: Pipeline, copy: Pipeline) -> Mapping[str, int]:
    """New tables over the same files, what is written to them goes to the copy; the versions they are of."""
    delta.forget(spark, delta.local_path(copy.root))
    for left in (p for p in delta.local_path(copy.root).iterdir() if p.is_dir()):
        shutil.rmtree(left)
    found = versions(spark, pipeline)
    for name, version in found.items():
        source = f"delta.`{pipeline.table(name)}` version as of {version}"
        spark.sql(f"create table delta.`{copy.table(name)}` shallow clone {source}")
    return found


def _compared(
    spark: SparkSession, pipeline: Pipeline, copy: Pipeline, window: Window, version: int
) -> tuple[Changed, Difference | None]:
    """An output as it was cloned, beside the copy's."""
    target = output(pipeline, window)
    found, wanted = (
        delta.read(spark, target.path, version),
        delta.read(spark, output(copy, window).path),
    )
    return compare(found.select(*target.shown), wanted.select(*target.shown), window, target)


def _recounted(
    spark: SparkSession,
    copy: Pipeline,
    past: Story,
    chunks: tuple[tuple[int, int], ...],
    progress: Progress,
) -> list[Entry]:
    """The ends of the chunks, done to the copy."""
    ends: list[Entry] = []
    for n, (low, high) in enumerate(chunks):
        progress(n, len(chunks))
        chunk = Chunk(low, high, past.read_version or 0)
        past, done = one(spark, copy, past, stage(spark, copy, past, chunk), None)
        ends.append(done)
    progress(len(chunks), len(chunks))
    return ends


def compare(
    found: DataFrame, wanted: DataFrame, window: Window, target: Target
) -> tuple[Changed, Difference | None]:
    """What would make `found` into `wanted`, and the first windows that differ.

    Sums of doubles in another order are not the same to the last digit: fractions differ by more than one in a million.
    """
    estimated = {a.name for a in window.aggregates if a.function in ESTIMATES}
    compared = [
        f
        for f in wanted.schema.fields
        if f.name in target.shown and f.name not in (*target.identity, *estimated)
    ]
    f, w = (
        side.withColumn(name, F.lit(True)).alias(name)
        for side, name in ((found, _FOUND), (wanted, _WANTED))
    )
    same = [F.col(f"{_FOUND}.`{c}`").eqNullSafe(F.col(f"{_WANTED}.`{c}`")) for c in target.identity]
    change = _change(
        reduce(lambda a, b: a | b, (_differs(field) for field in compared), F.lit(False))
    )
    place = [F.coalesce(f"{_WANTED}.`{c}`", f"{_FOUND}.`{c}`").alias(c) for c in target.identity]
    both = f.join(w, same, "full_outer").select(*place, change.alias(_CHANGE))
    changed = both.where(F.col(_CHANGE).isNotNull()).localCheckpoint(eager=True)
    counts = {row[_CHANGE]: row["count"] for row in changed.groupBy(_CHANGE).count().collect()}
    if not counts:
        return Changed(), None
    first = (
        changed.orderBy(*target.identity)
        .limit(_SHOWN)
        .select(*target.identity)
        .localCheckpoint(eager=True)
    )
    shown = [c for c in target.shown if c not in estimated]
    rows = [
        records(_among(side, first, target.identity).select(*shown), _SHOWN)
        for side in (wanted, found)
    ]
    return Changed(**counts), differences.difference(window.name, rows[0], rows[1], target.identity)


def _change(differs: Column) -> Column:
    """What has to be done to a window; null where nothing has."""
    missing, extra = F.col(f"{_FOUND}.{_FOUND}").isNull(), F.col(f"{_WANTED}.{_WANTED}").isNull()
    return F.when(missing, "inserted").when(extra, "deleted").when(differs, "updated")


def _differs(field: T.StructField) -> Column:
    found, wanted = F.col(f"{_FOUND}.`{field.name}`"), F.col(f"{_WANTED}.`{field.name}`")
    if not isinstance(field.dataType, T.FractionalType) or isinstance(
        field.dataType, T.DecimalType
    ):
        return ~found.eqNullSafe(wanted)
    apart = F.abs(found - wanted) > F.lit(CLOSE) * F.greatest(F.abs(found), F.abs(wanted))
    return ~found.eqNullSafe(wanted) & F.coalesce(apart, F.lit(True))


def _among(rows: DataFrame, some: DataFrame, identity: tuple[str, ...]) -> DataFrame:
    same = [F.col(f"r.`{c}`").eqNullSafe(F.col(f"s.`{c}`")) for c in identity]
    return rows.alias("r").join(some.alias("s"), same, "left_semi")
