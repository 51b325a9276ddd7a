"""The stream of one run: its micro-batches, each between its intent and its done, and the close that advances the watermark.

stream (availableNow): intent, batch, done -> close: watermark
"""

from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from jobs.microbatch.context import Batch, Closing
from jobs.microbatch.emission import emit
from jobs.microbatch.process import process
from jobs.microbatch.source_changes import note_of
from jobs.preflight import checkpoint
from jobs.preflight.source_errors import refusal
from jobs.preflight.spec_changes import made_by
from jobs.preflight.tables import known_versions
from windowing import delta
from windowing.admit.rule import Quiet, advanced, idled, later
from windowing.crash import crashpoint
from windowing.grid.zone import micros
from windowing.ledger.rule import (
    CLOSE,
    DONE,
    GENERATION,
    INTENT,
    MAX_TIME,
    MIN_TIME,
    OPEN,
    SKIP,
    Entry,
    Story,
    summed,
    total,
)
from windowing.ledger.table import correct_watermark, record, record_watermark
from windowing.panes.frame import Range
from windowing.panes.rule import NO_BATCH
from windowing.panes.table import Stamp
from windowing.report.rule import RunReport, report
from windowing.source import table as source
from windowing.source.frame import inserted
from windowing.spec.fingerprint import fingerprint
from windowing.spec.pipeline import Pipeline

Failures = list[BaseException]


class Run:
    """The state of one run between its batches: the story so far grows by each batch's intent and done."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, story: Story, arrival_us: int
    ) -> None:
        self.spark, self.pipeline, self.story, self.arrival_us = spark, pipeline, story, arrival_us
        self.source_id = delta.table_id(spark, pipeline.source.table)
        self.number = (
            story.open_run.run if story.open_run and story.open_run.run else story.last_run + 1
        )
        self.mark = correct_watermark if story.open_run else record_watermark

    def drain(self) -> None:
        """Streams what is new through `batch`; the first error of a batch is raised as it was."""
        failures: Failures = []
        home = self.pipeline.table(checkpoint.CHECKPOINT)
        writer = source.stream(self.spark, self.pipeline).writeStream.option(
            "checkpointLocation", home
        )
        query = (
            writer.trigger(availableNow=True).foreachBatch(_caught(self.batch, failures)).start()
        )
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            raise refusal(
                self.spark, self.pipeline, self.story, failures[0] if failures else error
            ) from error
        except BaseException:
            with suppress(Exception):
                query.stop()
            raise
        crashpoint("run.drained")

    def batch(self, rows: DataFrame, number: int) -> None:
        """One micro-batch between its intent and its done; a batch that was done before is passed over."""
        if number <= self.story.last_batch:
            return
        if self.story.intent(number) is None and rows.isEmpty():
            self._note(self._entry(SKIP, number, run=None, **self._position(number)))
            return
        crashpoint("batch.begun")
        intent = self.story.intent(number) or self._intend(number)
        crashpoint("batch.intended")
        stamp = Stamp(self.number, number, GENERATION, intent.watermark_in)
        batch = Batch(self.spark, self.pipeline, stamp, intent.arrival or self.arrival_us)
        counts, note = process(batch, inserted(rows)), note_of(batch, rows, self.story)
        crashpoint("batch.processed")
        self._note(replace(intent, step=DONE, counts=counts, versions=self._versions(), note=note))
        crashpoint("batch.done")

    def close(self, told_us: int | None = None) -> RunReport:
        """Ends the run: the watermark advances by everything it accepted, or by `told_us`, and windows close by it.

        A run that read nothing and moves no watermark leaves no trace.
        """
        done, names = self.story.done(self.number), [w.name for w in self.pipeline.windows]
        after = self._watermark(done, told_us)
        if self.story.open_run is None:
            if after == self.story.watermark:
                return report(None, 0, {}, after, names)
            self._note(self._entry(OPEN, None, note=self._made_by()))
        arrival = max((e.arrival for e in done if e.arrival is not None), default=self.arrival_us)
        counts = {name: n for name, n in summed(done).items() if name not in (MIN_TIME, MAX_TIME)}
        counts = total([counts, emit(self._closing(done, after))])
        crashpoint("run.emitted")
        closed = self._entry(
            CLOSE,
            None,
            counts=counts,
            watermark_out=after,
            versions=self._versions(),
            arrival=arrival,
        )
        self.mark(self.spark, self.pipeline, self.number, closed, _highest(done))
        crashpoint("run.marked")
        self._note(closed)
        crashpoint("run.closed")
        return report(self.number, len(done), counts, after, names)

    def _watermark(self, done: tuple[Entry, ...], told_us: int | None) -> int | None:
        """W at the end of the run."""
        before, highest = self.story.watermark, _highest(done)
        if told_us is not None:
            return later(before, told_us)
        if highest is None:
            quiet = None if self.story.quiet_since is None else Quiet(*self.story.quiet_since)
            return idled(before, quiet, self.arrival_us, self.pipeline.watermark)
        arrival = max((e.arrival for e in done if e.arrival is not None), default=self.arrival_us)
        return advanced(before, highest, arrival, self.pipeline.watermark.delay_us)

    def _closing(self, done: tuple[Entry, ...], after: int | None) -> Closing:
        lows = [e.counts[MIN_TIME] for e in done if MIN_TIME in e.counts]
        within = Range(min(lows), _highest(done) or 0) if lows else None
        stamp = Stamp(self.number, NO_BATCH, GENERATION, self.story.watermark)
        return Closing(
            Batch(self.spark, self.pipeline, stamp, self.arrival_us),
            self.story.watermark,
            after,
            within,
        )

    def _intend(self, number: int) -> Entry:
        """Records what the batch will be judged by, before anything else is written; opens the run with its first batch."""
        intent = self._entry(INTENT, number, **self._position(number))
        opening = [] if self.story.open_run else [self._entry(OPEN, None, note=self._made_by())]
        self._note(*opening, intent)
        return self.story.entries[-1]

    def _position(self, number: int) -> dict[str, str | None]:
        """Where the stream stands at the end of a batch, and which stream it is."""
        return {
            "offsets": checkpoint.offsets(self.pipeline, number),
            "note": checkpoint.query(self.pipeline),
        }

    def _made_by(self) -> str:
        return made_by(self.pipeline, source.schema(self.spark, self.pipeline))

    def _entry(self, step: str, batch: int | None, **more: object) -> Entry:
        entry = Entry(
            step=step,
            generation=GENERATION,
            run=self.number,
            batch=batch,
            at=micros(datetime.now(UTC)),
            arrival=self.arrival_us,
            watermark_in=self.story.watermark,
            source_id=self.source_id,
            source_version=delta.known_version(self.spark, self.pipeline.source.table),
            spec=fingerprint(self.pipeline),
        )
        return replace(entry, **more)  # type: ignore[arg-type]

    def _versions(self) -> dict[str, int]:
        return known_versions(self.spark, self.pipeline)

    def _note(self, *entries: Entry) -> None:
        self.story = record(self.spark, self.pipeline, self.story, entries)


def _highest(done: tuple[Entry, ...]) -> int | None:
    return max((e.counts[MAX_TIME] for e in done if MAX_TIME in e.counts), default=None)


def _caught(
    body: Callable[[DataFrame, int], None], failures: Failures
) -> Callable[[DataFrame, int], None]:
    """`body`, in the context of whoever asks for it, that also keeps its error on this side of the JVM."""
    context = copy_context()

    def guarded(rows: DataFrame, number: int) -> None:
        try:
            context.run(body, rows, number)
        except BaseException as error:
            failures.append(error)
            raise

    return guarded
