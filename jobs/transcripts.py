"""Plays transcripts through the engine, each in its own lake, and compares tables with them."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from jobs.backfill import backfill
from jobs.diagnosis.diagnose import prepare_run
from jobs.erase import erase
from jobs.microbatch.stream import Run
from jobs.read import newest_by
from windowing.admit.outcomes import REFUSED
from windowing.admit.rule import advance_watermark, later_watermark
from windowing.errors import SpecError, TidemarkError
from windowing.grid.zone import micros
from windowing.ledger.rule import find_times
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.report.difference import Difference, find_difference
from windowing.report.frame import records
from windowing.report.text import moment_or_none, plain, plain_fields
from windowing.rows import column_named
from windowing.storage import delta, delta_log, own_tables
from windowing.storage.kept_open import has_commit
from windowing.storage.table_properties import CHANGE_FEED
from windowing.transcripts.document import WATERMARK, Step
from windowing.transcripts.load import FINALITY, Play

_WITH_FEED = {CHANGE_FEED: "true"}
"""The properties of the source, which a spec with `changes: feed` needs."""
AT_ONCE = 3
"""How many transcripts are played at the same time."""
_MAX_ROWS = 100_000
"""How many rows of a table are read at most."""


@dataclass(frozen=True)
class Missed:
    """A step whose tables differ from what it expects; steps are counted from 1."""

    step: int
    line: int
    differences: tuple[Difference, ...]

    def as_json(self) -> dict[str, object]:
        """The step as plain JSON values."""
        return {**plain_fields(self, "differences"), "tables": plain(self.differences)}


@dataclass(frozen=True)
class Verdict:
    """The result of one transcript: the steps that did not find what they expect."""

    name: str
    file: str
    seconds: float
    missed: tuple[Missed, ...]

    @property
    def agrees(self) -> bool:
        """Whether every step found what it expects."""
        return not self.missed

    def as_json(self) -> dict[str, object]:
        """The verdict as plain JSON values."""
        seconds = round(self.seconds, 1)
        return {**plain_fields(self), "agrees": self.agrees, "seconds": seconds}


def play_transcripts(spark: SparkSession, plays: Sequence[Play]) -> Iterator[Verdict]:
    """Plays transcripts, a few at the same time, and yields the verdict of each in their order.

    Each is played in a temporary lake that is deleted afterwards; the lake of its spec is not used.
    Raises SpecError, with file and step, where the engine refuses a step.
    """
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield from pool.map(partial(play_transcript, spark), plays)
    finally:
        pool.shutdown(cancel_futures=True)


def play_transcript(spark: SparkSession, play: Play) -> Verdict:
    """Plays all steps of one transcript, also those after one that failed."""
    begun = time.monotonic()
    script = play.transcript
    missed: list[Missed] = []
    with TemporaryDirectory(prefix="tidemark-test-") as directory:
        home = Location(directory)
        stage = Stage(spark, play, home)
        try:
            for n in range(len(script.steps)):
                differing = _play_step(stage, n)
                if differing is not None:
                    missed.append(differing)
        finally:
            # Delta caches the state of tables by path, and these tables are deleted.
            delta_log.forget(spark, home)
    return Verdict(script.name, script.file, time.monotonic() - begun, tuple(missed))


def _play_step(stage: "Stage", n: int) -> Missed | None:
    """Plays step `n`, counted from 0; returns the step if a table differs from what it expects."""
    script = stage.play.transcript
    step = script.steps[n]
    differences: list[Difference] = []
    try:
        stage.take(n)
        for table, expected in _expected_tables(step).items():
            found = stage.differs(table, expected)
            if found is not None:
                differences.append(found)
    except TidemarkError as error:
        raise SpecError(f"steps[{n}]", str(error), script.file) from error
    return Missed(n + 1, step.line, tuple(differences)) if differences else None


def _expected_tables(step: Step) -> dict[str, Any]:
    """What the step expects by table; a step that moves the watermark expects it where it says."""
    moved = {} if step.watermark is None else {WATERMARK: step.watermark}
    return {**moved, **step.expect}


class Stage:
    """The lake of one transcript: an empty source with its columns, and the pipeline over it."""

    def __init__(self, spark: SparkSession, play: Play, home: Location) -> None:
        self.spark = spark
        self.play = play
        # Each step is one batch, as a run of few rows is.
        source = replace(play.pipeline.source, table=home / "_source", batch=None)
        self.pipeline = replace(play.pipeline, lake=home, source=source)
        self.schema = ", ".join(f"`{name}` {kind}" for name, kind in play.columns.items())
        own_tables.create(spark, source.table, delta.parse_columns(self.schema), _WITH_FEED)

    def take(self, n: int) -> None:
        """Plays step `n`, counted from 0: one run, one backfill or one erasure."""
        step = self.play.transcript.steps[n]
        rows = self.play.rows[n]
        if step.backfill is not None:
            backfill(self.spark, self.pipeline, *step.backfill)
            return
        if step.erase is not None:
            erase(self.spark, self.pipeline, step.erase)
            return
        if rows:
            own_tables.append_values(self.spark, self.pipeline.source.table, rows, self.schema)
        past = read_history(self.pipeline)
        schema = prepare_run(self.spark, self.pipeline, past)
        arrival_us = micros(step.arrival)
        arrived_us = max(arrival_us, past.last_arrival or arrival_us)
        run = Run(self.spark, self.pipeline, past, arrived_us, schema, len(rows))
        if rows:
            run.drain()
        if step.watermark is None:
            run.close(None)
        else:
            run.close(self._watermark_after(run, micros(step.watermark)))

    def _watermark_after(self, run: Run, watermark_us: int) -> int:
        """The watermark at the end of a run in which other keys have moved it to `watermark_us`.

        The events of the run itself may have moved it further.
        """
        times = find_times(run.past.done(run.number))
        highest = None if times is None else times.high_us
        delay_us = self.pipeline.watermark.delay_us
        own = advance_watermark(run.past.watermark, highest, run.arrival_us, delay_us)
        return later_watermark(own, watermark_us)

    def differs(self, table: str, expected: Any) -> Difference | None:
        """How `table` differs from the rows expected of it; None where it doesn't."""
        if table == WATERMARK:
            return find_difference(table, [{table: expected}], [{table: self.watermark()}], ())
        closing = any(name in row for row in expected for name in FINALITY)
        found = self.rows(table, closing=closing)
        return find_difference(table, expected, found, self.play.tables[table].identity)

    def watermark(self) -> Any:
        """The watermark; None at minus infinity."""
        us = read_history(self.pipeline).watermark
        return None if us is None else moment_or_none(us)

    def rows(self, table: str, *, closing: bool) -> list[dict[str, Any]]:
        """All rows of a table, none where it does not exist yet.

        With `closing` they have `is_closed` and `is_final`. Naive timestamps are read as UTC.
        """
        path = self.pipeline.table(table)
        if table in REFUSED and not has_commit(path):
            return []
        # Spark would take jobs to load the log of each new version.
        reads = partial(own_tables.read, self.spark)
        if closing:
            found = newest_by(reads, self.pipeline, table, read_history(self.pipeline))
        else:
            found = reads(path)
        naive = [f.name for f in found.schema.fields if isinstance(f.dataType, T.TimestampNTZType)]
        aware = {name: column_named(name).cast("timestamp_ltz") for name in naive}
        return records(found.withColumns(aware), _MAX_ROWS)
