"""The stream of one run: its micro-batches, and the close that advances the watermark.

stream (availableNow): for each batch intent, writes, done -> close: emission, watermark
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from jobs.diagnosis.spec_changes import made_by
from jobs.diagnosis.tables import known_versions
from jobs.foreign_errors.source_errors import explain_source_error
from jobs.microbatch.bound import (
    Bound,
    RestIsForNextRun,
    check_batch,
    find_bound,
    measure_progress,
)
from jobs.microbatch.checkpoint import (
    checkpoint_behind,
    checkpoint_to_end_of,
    ends_inside_version,
)
from jobs.microbatch.context import Closing, RunContext
from jobs.microbatch.emission import emit_outputs
from jobs.microbatch.kept_errors import Failures, keep_errors
from jobs.microbatch.process import process_batch
from jobs.microbatch.source_changes import (
    Following,
    Touched,
    find_touched,
    note_of,
    note_of_touched,
)
from jobs.sessions.small_session import small_copy
from jobs.shortcuts import run_size
from windowing.admit.rule import Quiet, advance_idle_watermark, advance_watermark, later_watermark
from windowing.crash import crashpoint
from windowing.grid.range import Range
from windowing.grid.zone import micros
from windowing.ledger.counts import BATCH_BYTES, add_counts, sum_entry_counts
from windowing.ledger.rule import (
    CLOSE,
    DONE,
    INTENT,
    MAX_TIME,
    MIN_TIME,
    OPEN,
    ROW_BY_ROW,
    SKIP,
    LedgerEntry,
    LedgerExcerpt,
    find_times,
)
from windowing.ledger.table import (
    compact_ledger,
    record_entries,
    record_watermark,
)
from windowing.location import Location
from windowing.panes.rule import NO_BATCH
from windowing.panes.table import Stamp
from windowing.report.alarms import find_alarms, gather_figures, name_alarm_count
from windowing.report.progress import Watch
from windowing.report.rule import RunReport, run_report
from windowing.source import stream
from windowing.source.frame import keep_inserts
from windowing.spec.fingerprint import fingerprint
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta_log, spark_internals
from windowing.storage.stream_checkpoint import Checkpoint
from windowing.storage.stream_offsets import read_version_at


class Run:
    """One run between its batches; its ledger grows by the intent and the done of each batch."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        past: LedgerExcerpt,
        arrival_us: int,
        schema: T.StructType,
        new_rows: int | None = None,
        following: Following | None = None,
        watch: Watch = lambda progress: None,
    ) -> None:
        """`schema` is the source's, which was read for this run.

        `new_rows` is how many rows there are to read; None where that is not known. The run is
        refused by commits that removed rows of the source, unless it is `following` them. It is
        watched by `watch` where it is cut into several batches.
        """
        self.spark = spark
        self.pipeline = pipeline
        self.past = past
        self.arrival_us = arrival_us
        self.schema = schema
        self.new_rows = new_rows
        self.following = following
        self.watch = watch
        self.bound: Bound | None = None
        self.source_id = delta_log.known_table_id(spark, pipeline.source.table)
        self._written: dict[int, int] = {}
        # A run that was interrupted is finished under its own number.
        open_number = past.open_run.run if past.open_run else None
        self.number = open_number or past.last_run + 1

    def drain(self) -> None:
        """Streams the new rows of the source through `batch`.

        The first error of a batch is raised as it was, unless Delta's message has a known meaning.
        SpecError where the spec bounds batches and one has to read everything.
        """
        if self.following is None:
            self._drain_new_rows()
        else:
            rows = stream.read_appended(self._stream_session, self.pipeline)
            while ends_inside_version(self.past):
                # What is compared with the source begins and ends with whole versions.
                self._drain_to_end_of(self.past.next_version or 0, rows)
            self._drain_all(rows)
        crashpoint("run.drained")

    def _drain_new_rows(self) -> None:
        """Streams what is new in batches of the bound that it allows."""
        self.bound = find_bound(self.spark, self.pipeline, self.past, self.new_rows)
        most_bytes = None if self.bound is None else self.bound.bytes
        rows = stream.read_stream(self._stream_session, self.pipeline, most_bytes)
        self._tell_progress()
        try:
            self._drain_all(rows)
        except RestIsForNextRun:
            if not self.past.done(self.number):
                # Nothing was read yet, so what came meanwhile counts for the bound.
                self._drain_new_rows()
            elif self.bound is not None and (self.past.next_version or 0) <= self.bound.until:
                # A batch may join what was there with what came meanwhile.
                self._drain_to_end_of(self.bound.until, rows)

    def _drain_to_end_of(self, version: int, rows: DataFrame) -> None:
        """Streams the rest of all versions up to this one, as one batch."""
        with checkpoint_to_end_of(self.pipeline, self.past, version) as checkpoint:
            self._drain_from(checkpoint, rows, {"once": True})

    def _drain_all(self, rows: DataFrame) -> None:
        with checkpoint_behind(self.pipeline, self.past) as checkpoint:
            self._drain_from(checkpoint, rows, {"availableNow": True})

    def _tell_progress(self) -> None:
        if self.bound is not None:
            names = [window.name for window in self.pipeline.windows]
            self.watch(measure_progress(self.past, self.bound, names))

    def _drain_from(
        self, checkpoint: Checkpoint, rows: DataFrame, trigger: Mapping[str, bool]
    ) -> None:
        """Streams `rows` from where the checkpoint stands to where Spark's `trigger` ends."""
        failures: Failures = []
        writer = rows.writeStream.option("checkpointLocation", checkpoint.location)
        batch = partial(self.batch, checkpoint)
        writer = writer.trigger(**trigger)
        query = writer.foreachBatch(keep_errors(batch, failures)).start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            cause = failures[0] if failures else error
            if isinstance(cause, RestIsForNextRun):
                raise cause from None
            raise explain_source_error(self.spark, self.pipeline, self.past, cause) from error
        except BaseException:
            with suppress(Exception):
                query.stop()
            raise

    def batch(self, checkpoint: Checkpoint, rows: DataFrame, number: int) -> None:
        """One micro-batch between its intent and its done."""
        offsets = checkpoint.read_offsets(number)
        touched = self._find_touched(rows, offsets)
        if self.past.intent(number) is None and touched is None and self._is_empty(rows):
            self._record_steps(self._new_entry(SKIP, number, run=None, offsets=offsets))
            return
        crashpoint("batch.begun")
        begun = self.past.intent(number)
        if begun is None and self.bound is not None:
            end = read_version_at(offsets)
            check_batch(self.spark, self.pipeline, self.past, self.bound, end)
        versions_before = None if begun is None else self.past.versions
        intent = begun or self._record_intent(number, offsets)
        crashpoint("batch.intended")
        # The intent's watermark and arrival count, not the present ones, so that a retry admits
        # the same rows.
        stamp = Stamp(self.number, number, intent.watermark_in)
        batch = RunContext(
            self.spark,
            self.pipeline,
            stamp,
            intent.arrival or self.arrival_us,
            versions_before=versions_before,
            erased=self.past.erasures,
        )
        read, row_by_row = self._choose_reading(rows)
        counts = process_batch(batch, keep_inserts(read), self._find_files)
        counts = {**counts, **self._measure_batch(), **({ROW_BY_ROW: 1} if row_by_row else {})}
        if self.following is None or touched is None:
            note = note_of(batch, read, self.past)
        else:
            note = note_of_touched(batch, read, touched, self.past, self.following)
        crashpoint("batch.processed")
        versions = known_versions(self.pipeline)
        # The intent may be as late as the source's writer said, whose clock may be ahead.
        ended_us = max(intent.at or 0, micros(datetime.now(UTC)))
        done = replace(intent, step=DONE, at=ended_us, counts=counts, versions=versions, note=note)
        self._record_steps(done)
        crashpoint("batch.done")
        if self.bound is not None:
            # Spark deletes what a batch has shuffled and pinned once nothing refers to it.
            spark_internals.collect_garbage(self.spark)
        self._tell_progress()

    def _measure_batch(self) -> dict[str, int]:
        """How much of the source a batch is that is one of several."""
        if self.bound is None:
            return {}
        return {BATCH_BYTES: spark_internals.measure_batch(self._stream_session)}

    @property
    def _reads_few(self) -> bool:
        return self.new_rows is not None and self.new_rows <= run_size.FEW_ROWS

    @cached_property
    def _stream_session(self) -> SparkSession:
        """The session that finds out which files there are to read, which are few in any run."""
        return self.spark if self._reads_few else small_copy(self.spark)

    def _choose_reading(self, rows: DataFrame) -> tuple[DataFrame, bool]:
        """The rows of a batch, and whether Spark passes many of them on one by one.

        In a large run they are read as a table is, if they can be. In a small one they stay as they
        are: choosing the files of a table is a Spark job for each query, and takes longer.
        """
        if self._reads_few:
            return rows, False
        found = spark_internals.read_streamed_files(self.spark, self._stream_session, rows)
        if found is not None:
            return found, False
        return spark_internals.pass_rows_on(self.spark, rows), True

    def _find_touched(self, rows: DataFrame, offsets: str) -> Touched | None:
        """What commits that removed rows have touched, which the batch passes over.

        None where the run does not follow such commits, or the batch passes over none.
        """
        since = self.past.read_version
        if self.following is None or since is None:
            return None
        until = read_version_at(offsets)
        touched = find_touched(self.spark, self.pipeline, rows, since, until)
        crashpoint("rewrites.found")
        return touched

    def _find_files(self) -> list[Location] | None:
        """The files with the rows of the present batch and no others; None where there are none."""
        if self.pipeline.source.changes == "feed":
            # What was updated and deleted is among the rows, too.
            return None
        return spark_internals.list_batch_files(self._stream_session)

    def _is_empty(self, rows: DataFrame) -> bool:
        """Whether a batch has no rows at all."""
        is_first = not self.past.done(self.number)
        if is_first and self.new_rows:
            # The first batch of a run begins with the rows that were counted.
            return False
        return bool(rows.isEmpty())

    def close(self, told_us: int | None = None) -> RunReport:
        """Ends the run: the watermark advances, and windows close by it.

        The watermark advances by everything that the run accepted, or to `told_us` if it is given.
        A run that read nothing and moves no watermark leaves no trace.
        """
        done = self.past.done(self.number)
        names = [window.name for window in self.pipeline.windows]
        after = self._advance_watermark(done, told_us)
        if self.past.open_run is None:
            if after == self.past.watermark:
                report = run_report(None, 0, {}, after, names)
                return replace(report, published=self.past.is_published)
            self._record_steps(self._new_entry(OPEN, None, note=self._describe_maker()))
        of_batches = sum_entry_counts(done)
        for name in (MIN_TIME, MAX_TIME, BATCH_BYTES):
            # Times have no sum, and the bytes are of the batches that there happened to be.
            of_batches.pop(name, None)
        times = find_times(done)
        of_emission = emit_outputs(self._describe_closing(times, after))
        counts = add_counts([of_batches, of_emission])
        crashpoint("run.emitted")
        arrival = self._find_last_arrival(done)
        figures = gather_figures(done, counts, arrival, self.past.recent_reads)
        alarms = find_alarms(figures, self.pipeline.alarms)
        counts |= {name_alarm_count(alarm): alarm.figure for alarm in alarms}
        closed = self._new_entry(
            CLOSE,
            None,
            counts=counts,
            watermark_out=after,
            versions=known_versions(self.pipeline),
            arrival=arrival,
        )
        highest = None if times is None else times.high_us
        record_watermark(self.pipeline, self.number, closed, highest)
        crashpoint("run.marked")
        self._record_steps(closed)
        crashpoint("run.closed")
        compact_ledger(self.pipeline, self.past)
        report = run_report(self.number, len(done), counts, after, names)
        return replace(report, alarms=alarms)

    def _advance_watermark(self, done: tuple[LedgerEntry, ...], told_us: int | None) -> int | None:
        """W at the end of the run; None is minus infinity."""
        before = self.past.watermark
        times = find_times(done)
        if told_us is not None:
            return later_watermark(before, told_us)
        if times is None:
            quiet_since = self.past.quiet_since
            quiet = None
            if quiet_since is not None:
                since_us, reached_us = quiet_since
                quiet = Quiet(since_us, reached_us)
            return advance_idle_watermark(before, quiet, self.arrival_us, self.pipeline.watermark)
        arrival = self._find_last_arrival(done)
        return advance_watermark(before, times.high_us, arrival, self.pipeline.watermark.delay_us)

    def _find_last_arrival(self, done: tuple[LedgerEntry, ...]) -> int:
        """The last arrival by which the run read rows; its own where it read none."""
        arrivals = [entry.arrival for entry in done if entry.arrival is not None]
        return max(arrivals, default=self.arrival_us)

    def _describe_closing(self, within: Range | None, after: int | None) -> Closing:
        before = self.past.watermark
        stamp = Stamp(self.number, NO_BATCH, before)
        batch = RunContext(self.spark, self.pipeline, stamp, self.arrival_us)
        return Closing(batch, before, after, within)

    def _record_intent(self, number: int, offsets: str) -> LedgerEntry:
        """Records what the batch reads and is admitted by, before anything else is written.

        The first batch of a run also opens the run.
        """
        intent = self._new_entry(INTENT, number, offsets=offsets)
        if self.past.open_run:
            self._record_steps(intent)
        else:
            opening = self._new_entry(OPEN, None, note=self._describe_maker())
            self._record_steps(opening, intent)
        return self.past.entries[-1]

    def _describe_maker(self) -> str:
        return made_by(self.pipeline, self.schema)

    def _new_entry(self, step: str, batch: int | None, **more: object) -> LedgerEntry:
        source_version = delta_log.known_version(self.spark, self.pipeline.source.table)
        entry = LedgerEntry(
            step=step,
            run=self.number,
            batch=batch,
            at=max(micros(datetime.now(UTC)), self._find_written(source_version)),
            arrival=self.arrival_us,
            watermark_in=self.past.watermark,
            source_id=self.source_id,
            source_version=source_version,
            spec=fingerprint(self.pipeline),
        )
        return replace(entry, **more)  # type: ignore[arg-type]

    def _find_written(self, version: int) -> int:
        """When that version of the source was written, by its writer's clock; 0 if not known.

        What was read was written before. So no step is recorded as earlier, though this host's
        clock was set back, or the writer's is ahead.
        """
        if version not in self._written:
            table = self.pipeline.source.table
            self._written[version] = delta_log.committed(self.spark, table, version) or 0
        return self._written[version]

    def _record_steps(self, *entries: LedgerEntry) -> None:
        self.past = record_entries(self.pipeline, self.past, entries)
