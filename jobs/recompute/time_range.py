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

    def holds(self) -> Column:
        """True for events of the chunk."""
        return (F.col(TIME) >= F.lit(self.start_us)) & (F.col(TIME) < F.lit(self.end_us))


class WholeHistory(TimeRange):
    """All events that there are.

    State is overwritten whole, columns included.
    """


def widen_to_panes(family: Family, chunk: TimeRange) -> TimeRange:
    """The chunk, widened to whole panes of `family`."""
    return type(chunk)(
        pane_start(family, chunk.start_us), pane_end(family, chunk.end_us - 1), chunk.version
    )


def widen_to_windows(batch: RunContext, family: Family, chunk: TimeRange) -> TimeRange:
    """The chunk, widened to every pane that is rebuilt from the source.

    Those are whole panes of `family`. Where state may have expired, they are all panes of the
    windows that overlap the chunk.
    """
    wide = widen_to_panes(family, chunk)
    if not batch.state_may_be_expired:
        return wide
    reaches = [
        aligned.reach(w, Range(wide.start_us, wide.end_us))
        for w in family.windows
        if not isinstance(w, Global)
    ]
    low, high = (
        min([wide.start_us, *(r.low_us for r in reaches)]),
        max([wide.end_us, *(r.high_us for r in reaches)]),
    )
    return widen_to_panes(family, type(chunk)(low, high, chunk.version))


def near_sessions(batch: RunContext, window: Session, chunk: TimeRange) -> DataFrame:
    """The stored sessions that have an event time in the chunk."""
    stored = delta.read(batch.spark, complete_table(batch.pipeline, window).path)
    return stored.where(
        (F.col(START) < instant(chunk.end_us)) & (F.col(LAST) >= instant(chunk.start_us))
    )


def range_to_read(batch: RunContext, chunk: TimeRange) -> tuple[int, int]:
    """The event times [low, high) whose rows are needed: the chunk, its panes and sessions."""
    wide = [chunk, *(widen_to_windows(batch, f, chunk) for f in pane_families(batch.pipeline))]
    lows, highs = [c.start_us for c in wide], [c.end_us for c in wide]
    for window in batch.pipeline.sessions:
        ends = (
            near_sessions(batch, window, chunk)
            .agg(F.min(F.unix_micros(START)), F.max(F.unix_micros(LAST)))
            .first()
        )
        if ends is not None and ends[0] is not None:
            lows.append(ends[0])
            highs.append(ends[1] + 1)
    return min(lows), max(highs)
