"""A range of event time, and how far it reaches: whole panes, windows and sessions."""

from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import RunContext
from windowing.columns import LAST, START, TIME
from windowing.grid.frame import instant
from windowing.grid.range import Range
from windowing.panes.rule import Family, pane_end, pane_families, pane_start
from windowing.spec.kinds import Global, Session
from windowing.storage.few_rows import span_of
from windowing.windows.neighbours import widen_to_needed


@dataclass(frozen=True)
class TimeRange:
    """Event times [start, end), microseconds, read from the source at `version`."""

    start_us: int
    end_us: int
    version: int
    batch: int | None = None
    """The batch whose changes of the source require it; None where a user asks for it."""
    asked: tuple[int, int] | None = None
    """The whole range that a user asked for, of which this is a chunk."""
    is_everything: bool = False
    """Whether it is all events that there are, because the spec has changed.

    State is then overwritten whole, columns included.
    """

    @property
    def is_asked_for(self) -> bool:
        """Whether a user asks for it."""
        return self.batch is None and not self.is_everything

    @property
    def times(self) -> Range:
        """The event times, both ends inside."""
        return Range(self.start_us, self.end_us - 1)

    def move_to(self, times: Range) -> "TimeRange":
        """The same, with other event times."""
        return replace(self, start_us=times.low_us, end_us=times.high_us + 1)

    def holds(self) -> Column:
        """True for events of the chunk."""
        return (F.col(TIME) >= F.lit(self.start_us)) & (F.col(TIME) < F.lit(self.end_us))


def widen_to_panes(family: Family, chunk: TimeRange) -> TimeRange:
    """The chunk, widened to whole panes of `family`."""
    start_us = pane_start(family, chunk.start_us)
    end_us = pane_end(family, chunk.end_us - 1)
    return replace(chunk, start_us=start_us, end_us=end_us)


def widen_to_windows(batch: RunContext, family: Family, chunk: TimeRange) -> TimeRange:
    """The chunk, widened to every pane that is rebuilt from the source.

    Those are whole panes of `family`. Where state may have expired, they are all panes of the
    windows that overlap the chunk.
    """
    wide = widen_to_panes(family, chunk)
    if not batch.state_may_be_expired:
        return wide
    needed = wide.times
    for window in family.windows:
        # The panes of a global window never expire.
        if not isinstance(window, Global):
            needed = needed.cover(widen_to_needed(window, wide.times))
    return widen_to_panes(family, wide.move_to(needed))


def near_sessions(batch: RunContext, window: Session, chunk: TimeRange) -> DataFrame:
    """The sessions that have had an event time in the chunk before it was begun."""
    stored = batch.read_complete_before(window)
    begins_before = F.col(START) < instant(chunk.end_us)
    ends_after = F.col(LAST) >= instant(chunk.start_us)
    return stored.where(begins_before & ends_after)


def widen_to_read(batch: RunContext, chunk: TimeRange) -> TimeRange:
    """The chunk, widened to all times whose rows are needed: those of its panes and sessions."""
    times = chunk.times
    for family in pane_families(batch.pipeline):
        times = times.cover(widen_to_windows(batch, family, chunk).times)
    for window in batch.pipeline.sessions:
        sessions = near_sessions(batch, window, chunk)
        span = span_of(sessions, F.unix_micros(START), F.unix_micros(LAST))
        if span is not None:
            times = times.cover(span)
    return chunk.move_to(times)
