"""The fragments that a micro-batch adds for a session window, and the sessions they touch."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from jobs.microbatch.context import RunContext
from jobs.microbatch.outputs import Preparation, Step, prepare_replaced
from windowing.aggregates.algebra import Algebra, Part
from windowing.columns import END, FIRST, LAST, START, TOUCHED
from windowing.grid.frame import instant
from windowing.grid.range import Range
from windowing.merge import frame as merges
from windowing.merge import table as outputs
from windowing.merge.rule import complete_table, window_columns
from windowing.merge.table import Output
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.rule import fragments_table
from windowing.spec.kinds import Session
from windowing.storage.pinned_rows import pin_rows
from windowing.windows import session
from windowing.windows.merging import mark_touched


@dataclass(frozen=True)
class FragmentBatch:
    """The fragments that a batch adds for one session window, and the sessions they touch.

    There are at `most` so many fresh ones.
    """

    batch: RunContext
    window: Session
    within: Range
    algebras: Mapping[str, Algebra]
    fresh: DataFrame
    most: int

    def store(self) -> None:
        """Appends the fragments to state."""
        batch = self.batch
        table = fragments_table(self.window)
        state.store_partials(self.fresh, batch.pipeline, table, batch.stamp, FIRST, self.most)

    def outputs(self) -> list[Preparation]:
        """One: it computes the sessions of fresh fragments and which ones they absorb."""
        return [self._prepare_outputs]

    def _prepare_outputs(self) -> list[Step]:
        batch = self.batch
        window = self.window
        output = outputs.open_output(complete_table(batch.pipeline, window))
        kept = partials.parts_of(self.algebras.values())
        new, old = correct_sessions(batch, window, output, self.fresh, kept, self.within)
        columns = window_columns(window, batch.keys)
        valued = merges.lower_partials(new, columns, self.algebras)
        most = self.most if old is None else None
        return [prepare_replaced(batch, window, output, valued, old, most)]


def correct_sessions(
    batch: RunContext,
    window: Session,
    output: Output,
    fresh: DataFrame,
    kept: list[Part],
    within: Range,
) -> tuple[DataFrame, DataFrame | None]:
    """The sessions that the fragments `fresh` make, and the stored sessions that these replace.

    The second frame is None where the output has no sessions yet.
    """
    marked = mark_touched(fresh)
    if outputs.is_new(batch.spark, output):
        return session.merge_sessions(marked, batch.keys, window.gap_us, kept), None
    last_us = within.high_us + window.gap_us
    early = instant(within.low_us)
    late = instant(last_us)
    # Touching includes equality: exactly one gap after the last event is still the same session.
    near = (F.col(END) >= early) & (F.col(START) <= late)
    bounds = {END: (within.low_us, None), START: (None, last_us)}
    stored = outputs.read_output(batch.spark, output, bounds).where(near)
    old, times = _pin_touched(stored, fresh, batch, window)
    grown = old
    if batch.versions_before is not None:
        earlier = batch.read_complete_before(window).where(near)
        grown, times = _pin_touched(earlier, fresh, batch, window)
    if times is not None:
        before = state.fragments_before(batch.spark, batch.pipeline, window, batch.stamp, times)
        members = session.fragments_of_sessions(before, grown, batch.keys)
        others = members.withColumn(TOUCHED, F.lit(0).cast("bigint"))
        marked = marked.unionByName(others.select(*marked.columns))
    return session.merge_sessions(marked, batch.keys, window.gap_us, kept), old


def _pin_touched(
    stored: DataFrame, fresh: DataFrame, batch: RunContext, window: Session
) -> tuple[DataFrame, Range | None]:
    """The sessions that `fresh` touches, computed now, and their times; None where there are none.

    Both come from one Spark job.
    """
    touched = session.sessions_touched(stored, fresh, batch.keys, window.gap_us)
    observed = Observation()
    ends = [F.min(F.unix_micros(START)).alias("low"), F.max(F.unix_micros(LAST)).alias("high")]
    pinned = pin_rows(touched.observe(observed, *ends))
    extent = observed.get
    times = None if extent["low"] is None else Range(extent["low"], extent["high"])
    return pinned, times
