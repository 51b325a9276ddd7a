"""Backfill of [start, end): state and output become what they would be had every event of the range been on time.

    lock -> finish what was left open -> plan: chunks -> each chunk: rows staged without the lock -> lock -> intent, repair, done
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from json import loads

from pyspark.sql import SparkSession

from jobs import lock
from jobs.admission import Batch
from jobs.chunk import one
from jobs.evolve import caught_up, ready, unmet
from jobs.exact_session import in_exact_session
from jobs.feed import corrected
from jobs.prepare import difference, prepared
from jobs.repair import Chunk, refused_after
from jobs.run import Run
from jobs.staging import current, judge, stage
from windowing.admit.table import REFUSED
from windowing.errors import UsageError
from windowing.grid.zone import micros, moment
from windowing.ledger.rule import BACKFILL_DONE, ERASE_DONE, ERASE_INTENT, MAINTAIN_DONE, MAX_TIME, MIN_TIME, Entry, Story, summed
from windowing.ledger.table import story
from windowing.panes.rule import families, pane_end, pane_start, span
from windowing.report.rule import RunReport, report
from windowing.spec.duration import DAY
from windowing.spec.kinds import CappedSession, Cumulate, RecordSliding, Session, Sliding, Tumbling
from windowing.spec.pipeline import Pipeline

CHUNK_US = 31 * DAY
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
            "windows": {name: [a.isoformat(), b.isoformat()] for name, (a, b) in self.windows.items()},
        }


@in_exact_session
def plan(spark: SparkSession, pipeline: Pipeline, start: datetime, end: datetime) -> BackfillPlan:
    """The plan of `backfill` with the same arguments; writes nothing."""
    past = story(spark, pipeline)
    chunks = chunks_of(pipeline, start, end, past)
    reach = {w.name: _reach(pipeline, w.name, chunks[0][0], chunks[-1][1]) for w in pipeline.windows}
    return BackfillPlan(tuple((moment(low), moment(high)) for low, high in chunks), _read_version(pipeline, past), reach)


@in_exact_session
def backfill(
    spark: SparkSession, pipeline: Pipeline, start: datetime, end: datetime, progress: Progress = lambda done, total: None
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
    _read_version(pipeline, past)
    bounds = chunks_of(pipeline, start, end, past)
    asked = (bounds[0][0], bounds[-1][1])
    ends: list[Entry] = []
    for n, (low, high) in enumerate(bounds):
        progress(n, len(bounds))
        chunk = Chunk(low, high, _read_version(pipeline, past), asked=asked)
        if not _done_before(judge(spark, pipeline, past), left, chunk):
            past, end_of = _one(spark, pipeline, began, past, chunk)
            ends.append(end_of)
    progress(len(bounds), len(bounds))
    found = report(past.last_run, len(bounds), summed(ends), past.watermark, [w.name for w in pipeline.windows])
    return replace(found, evolved=unmet(pipeline, left))


def _one(spark: SparkSession, pipeline: Pipeline, began: Story, past: Story, chunk: Chunk) -> tuple[Story, Entry]:
    """The story with one chunk more, and the end of that; `began` is the story when the backfill did."""
    staged = stage(spark, pipeline, past, chunk)
    with lock.waiting(spark, pipeline):
        must_be_the_same(pipeline, began, story(spark, pipeline))
        past = finished(spark, pipeline, ready(spark, pipeline))
        return one(spark, pipeline, past, current(spark, pipeline, past, staged), None)


def must_be_the_same(pipeline: Pipeline, began: Story, now: Story) -> None:
    """UsageError if the pipeline has become another one since the backfill began: started over, without a key, of another spec."""
    same = now.entries[len(began.entries) - 1 : len(began.entries)]
    if [(e.step, e.at) for e in same] != [(e.step, e.at) for e in began.entries[-1:]]:
        why = "has started over"
    elif any(e.step in (ERASE_INTENT, ERASE_DONE) for e in now.entries[len(began.entries) :]):
        why = "has had a key erased"
    elif difference(pipeline, now):
        why = "has another spec"
    else:
        return
    raise UsageError(f"{pipeline.name} {why} since this backfill began, so what it had read can't be used; ask for it again")


def _done_before(batch: Batch, left: Story, chunk: Chunk) -> bool:
    """Whether the same range was asked for before and not finished, and this chunk of it was, and no row of it was refused since."""
    ended = begun_before(left, chunk)
    if ended is None or any(e.seq > ended.seq and any(map(e.counts.get, REFUSED)) for e in left.entries if e.step == MAINTAIN_DONE):
        return False
    return not refused_after(batch, ended.run or 0, chunk)


def begun_before(left: Story, chunk: Chunk) -> Entry | None:
    """The end of `chunk`, or its intent if that was left open, in a backfill of the same range that was not finished."""
    ends = [e for e in left.entries if e.step == BACKFILL_DONE]
    for entry in reversed([*ends, *([left.open_backfill] if left.open_backfill else [])]):
        said = loads(entry.note or "{}")
        finished_it = entry.step == BACKFILL_DONE and said["to_us"] == (chunk.asked or (0, 0))[1]
        if chunk.asked is None or said.get("asked") != list(chunk.asked) or finished_it:
            return None
        if said["from_us"] == chunk.start_us and said["to_us"] >= chunk.end_us:
            return entry
    return None


def chunks_of(pipeline: Pipeline, start: datetime, end: datetime, past: Story) -> tuple[tuple[int, int], ...]:
    """The parts [from, to) that a backfill of [start, end) does one after the other, in microseconds; UsageError where it has none.

    Before the first event accepted so far, and after the last, one part goes on.
    """
    if pipeline.source.event_time.column is None:
        raise UsageError(f"{pipeline.name}: events happen when they arrive (event_time: arrival), so there is no past to backfill")
    low, high = _checked(start, end)
    since, until = (min(max(us, low), high) for us in _event_times(past) or (low, low))
    inner = range(low + ((since - low) // CHUNK_US + 1) * CHUNK_US, min(until + 1, high), CHUNK_US)
    return tuple(pairwise([low, *inner, high]))


def finished(spark: SparkSession, pipeline: Pipeline, past: Story) -> Story:
    """The story once a run that was left open is closed, and what the source has changed is counted again."""
    if past.open_run is not None:
        unfinished = Run(spark, pipeline, past, max(micros(datetime.now(UTC)), past.last_arrival or 0))
        unfinished.drain()
        unfinished.close()
        past = unfinished.story
    return corrected(spark, pipeline, past)[0]


def _event_times(past: Story) -> tuple[int, int] | None:
    """The first and the last event time that any run has accepted; None before there is one."""
    batches = [e.counts for e in past.entries if MIN_TIME in e.counts]
    return (min(c[MIN_TIME] for c in batches), max(c[MAX_TIME] for c in batches)) if batches else None


def _checked(start: datetime, end: datetime) -> tuple[int, int]:
    if start.tzinfo is None or end.tzinfo is None:
        raise UsageError("a backfill's bounds are times with an offset, such as 2013-01-01T00:00:00+00:00")
    if start >= end:
        raise UsageError(f"--from {start.isoformat()} is not before --to {end.isoformat()}; the range is [from, to)")
    return micros(start), micros(end)


def _read_version(pipeline: Pipeline, past: Story) -> int:
    """The source version that the last run had drained."""
    if past.read_version is None:
        raise UsageError(f"{pipeline.name}: nothing has been read yet, so there is nothing to backfill; `tidemark run` first")
    return past.read_version


def _reach(pipeline: Pipeline, name: str, low: int, high: int) -> tuple[datetime, datetime]:
    """The times between which windows may change; of windows that count events in order, and of global ones, all after `low`."""
    window = pipeline.window(name)
    match window:
        case Session(gap_us=far) | CappedSession(gap_us=far) | RecordSliding(difference_us=far):
            return moment(low - far), moment(high + far)
        case Tumbling() | Sliding() | Cumulate():
            family = next(f for f in families(pipeline) if window in f.windows)
            return moment(pane_start(family, low) - span(window)), moment(pane_end(family, high - 1) + span(window))
    return moment(low), datetime.max.replace(tzinfo=UTC)
