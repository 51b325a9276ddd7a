"""Plays a transcript through the engine: its rows, watermarks and backfills in a lake of its own, its expectations against the tables."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.backfill import backfill
from jobs.microbatch.stream import Run
from jobs.preflight.diagnose import prepared
from jobs.read import read
from jobs.session import LIGHT
from windowing import delta
from windowing.admit.rule import advanced, later
from windowing.admit.table import REFUSED
from windowing.errors import SpecError, TidemarkError
from windowing.grid.zone import micros
from windowing.ledger.rule import MAX_TIME
from windowing.ledger.table import story
from windowing.report.difference import Difference, difference
from windowing.report.frame import records
from windowing.report.text import moment_or_none
from windowing.transcripts.document import WATERMARK, Step
from windowing.transcripts.load import FINALITY, Play

TINY = {
    **LIGHT,
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.adaptive.enabled": "false",
    "spark.buffer.pageSize": "1m",
    "spark.sql.constraintPropagation.enabled": "false",
}
"""A session for tables of a few rows, where compiling and re-planning each query costs more than running it."""
AT_ONCE = 3
_MOST = 100_000
"""Rows of a table that are looked at."""


@dataclass(frozen=True)
class Missed:
    """A step, counted from 1, whose tables are not what it expects, and the line it begins on."""

    step: int
    line: int
    differences: tuple[Difference, ...]

    def as_json(self) -> dict[str, object]:
        """The step as plain JSON values."""
        return {
            "step": self.step,
            "line": self.line,
            "tables": [d.as_json() for d in self.differences],
        }


@dataclass(frozen=True)
class Verdict:
    """Whether one transcript agrees, and where it does not."""

    name: str
    file: str
    seconds: float
    missed: tuple[Missed, ...]

    @property
    def agrees(self) -> bool:
        """Every step found what it expects."""
        return not self.missed

    def as_json(self) -> dict[str, object]:
        """The verdict as plain JSON values."""
        known = {
            "name": self.name,
            "file": self.file,
            "agrees": self.agrees,
            "seconds": round(self.seconds, 1),
        }
        return {**known, "missed": [m.as_json() for m in self.missed]}


def played(spark: SparkSession, plays: Sequence[Play]) -> Iterator[Verdict]:
    """Plays transcripts, a few at once, and tells of each in turn; nothing is left behind, and no lake of a spec is touched.

    SpecError, with file and step, where the engine refuses a step.
    """
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield from pool.map(partial(one, spark), plays)
    finally:
        pool.shutdown(cancel_futures=True)


def one(spark: SparkSession, play: Play) -> Verdict:
    """Plays every step of one transcript, also after one that failed."""
    begun, script = time.monotonic(), play.transcript
    with TemporaryDirectory(prefix="tidemark-test-") as home:
        stage = Stage(spark, play, Path(home))
        try:
            missed = [_step(stage, n) for n in range(len(script.steps))]
        finally:
            delta.forget(spark, Path(home))
    return Verdict(
        script.name,
        script.file,
        time.monotonic() - begun,
        tuple(m for m in missed if m is not None),
    )


def _step(stage: "Stage", n: int) -> Missed | None:
    script = stage.play.transcript
    step = script.steps[n]
    try:
        stage.take(n)
        wrong = [stage.differs(table, expected) for table, expected in _expected(step).items()]
    except TidemarkError as error:
        raise SpecError(f"steps[{n}]", str(error), script.file) from error
    differences = tuple(d for d in wrong if d is not None)
    return Missed(n + 1, step.line, differences) if differences else None


def _expected(step: Step) -> dict[str, Any]:
    """What the step expects; one that moves the watermark also that it stands there."""
    moved = {} if step.watermark is None else {WATERMARK: step.watermark}
    return {**moved, **step.expect}


class Stage:
    """The lake of one transcript: an empty source with its columns, and the pipeline over it."""

    def __init__(self, spark: SparkSession, play: Play, home: Path) -> None:
        self.spark, self.play, given = spark, play, play.pipeline
        self.pipeline = replace(
            given, lake=str(home), source=replace(given.source, table=str(home / "_source"))
        )
        self.schema = ", ".join(f"`{name}` {kind}" for name, kind in play.columns.items())
        delta.append(delta.rows(spark, [], self.schema), self.pipeline.source.table)

    def take(self, n: int) -> None:
        """Does what step `n` says: one run, or one backfill."""
        step, rows = self.play.transcript.steps[n], self.play.rows[n]
        if step.backfill is not None:
            backfill(self.spark, self.pipeline, *step.backfill)
            return
        if rows:
            delta.append(delta.rows(self.spark, rows, self.schema), self.pipeline.source.table)
        past = prepared(self.spark, self.pipeline)
        run = Run(
            self.spark,
            self.pipeline,
            past,
            max(micros(step.arrival), past.last_arrival or micros(step.arrival)),
        )
        if rows:
            run.drain()
        run.close(None if step.watermark is None else self._told(run, micros(step.watermark)))

    def _told(self, run: Run, watermark_us: int) -> int:
        """Where the watermark goes when other keys have moved it to `watermark_us`: its own events may have moved it further."""
        highest = max(
            (e.counts[MAX_TIME] for e in run.story.done(run.number) if MAX_TIME in e.counts),
            default=None,
        )
        own = advanced(
            run.story.watermark, highest, run.arrival_us, self.pipeline.watermark.delay_us
        )
        return later(own, watermark_us)

    def differs(self, table: str, expected: Any) -> Difference | None:
        """How `table` differs from the rows expected of it."""
        if table == WATERMARK:
            return difference(table, [{table: expected}], [{table: self.watermark()}], ())
        closing = any(name in row for row in expected for name in FINALITY)
        return difference(
            table, expected, self.rows(table, closing=closing), self.play.tables[table].identity
        )

    def watermark(self) -> Any:
        """Where the watermark stands; None at minus infinity."""
        us = story(self.spark, self.pipeline).watermark
        return None if us is None else moment_or_none(us)

    def rows(self, table: str, *, closing: bool) -> list[dict[str, Any]]:
        """All rows of a table, none where there is no such table yet; with `closing` also whether they are closed and final."""
        path = self.pipeline.table(table)
        if table in REFUSED and not delta.exists(self.spark, path):
            return []
        found = (
            read(self.spark, self.pipeline, table, published=False)
            if closing
            else delta.read(self.spark, path)
        )
        naive = [f.name for f in found.schema.fields if isinstance(f.dataType, T.TimestampNTZType)]
        return records(
            found.withColumns({name: F.col(f"`{name}`").cast("timestamp_ltz") for name in naive}),
            _MOST,
        )
