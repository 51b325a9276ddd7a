"""A range of event time, and how far it reaches: whole panes, windows and sessions."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import RunContext
from windowing import delta
from windowing.columns import LAST, START, TIME
from windowing.grid.frame import instant
from windowing.merge.rule import complete_table
from windowing.panes.frame import Range
from windowing.panes.rule import Family, pane_end, pane_families, pane_start
from windowing.spec.kinds import Global, Session
from windowing.windows import aligned


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

    @property
    def is_asked_for(self) -> bool:
        """Whether a user asks for it."""
        return self.batch is None

    def holds(self) -> Column:
        """True for events of the chunk."""
        return (F.col(TIME) >= F.lit(self.start_us)) & (F.col(TIME) < F.lit(self.end_us))


class WholeHistory(TimeRange):
    """All events that there are.

    State is overwritten whole, columns included. A changed spec requires it, not a user's range.
    """

    @property
    def is_asked_for(self) -> bool:
        """Whether a user asks for it; never."""
        return False


def widen_to_panes(family: Family, chunk: TimeRange) -> TimeRange:
    """The chunk, widened to whole panes of `family`."""
    start_us = pane_start(family, chunk.start_us)
    end_us = pane_end(family, chunk.end_us - 1)
    return type(chunk)(start_us, end_us, chunk.version)


def widen_to_windows(batch: RunContext, family: Family, chunk: TimeRange) -> TimeRange:
    """The chunk, widened to every pane that is rebuilt from the source.

    Those are whole panes of `family`. Where state may have expired, they are all panes of the
    windows that overlap the chunk.
    """
    wide = widen_to_panes(family, chunk)
    if not batch.state_may_be_expired:
        return wide
    within = Range(wide.start_us, wide.end_us)
    low, high = wide.start_us, wide.end_us
    for window in family.windows:
        # The panes of a global window never expire.
        if isinstance(window, Global):
            continue
        reach = aligned.reach(window, within)
        low = min(low, reach.low_us)
        high = max(high, reach.high_us)
    return widen_to_panes(family, type(chunk)(low, high, chunk.version))


def near_sessions(batch: RunContext, window: Session, chunk: TimeRange) -> DataFrame:
    """The stored sessions that have an event time in the chunk."""
    stored = delta.read(batch.spark, complete_table(batch.pipeline, window).path)
    begins_before = F.col(START) < instant(chunk.end_us)
    ends_after = F.col(LAST) >= instant(chunk.start_us)
    return stored.where(begins_before & ends_after)


def range_to_read(batch: RunContext, chunk: TimeRange) -> tuple[int, int]:
    """The event times [low, high) whose rows are needed: the chunk, its panes and sessions."""
    low, high = chunk.start_us, chunk.end_us
    for family in pane_families(batch.pipeline):
        wide = widen_to_windows(batch, family, chunk)
        low = min(low, wide.start_us)
        high = max(high, wide.end_us)
    for window in batch.pipeline.sessions:
        sessions = near_sessions(batch, window, chunk)
        ends = sessions.agg(F.min(F.unix_micros(START)), F.max(F.unix_micros(LAST))).first()
        if ends is None or ends[0] is None:
            continue
        low = min(low, ends[0])
        high = max(high, ends[1] + 1)
    return low, high
