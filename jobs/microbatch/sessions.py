"""The fragments that a micro-batch brings to a session window, and the sessions they touch."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import Batch
from jobs.microbatch.outputs import Step, written
from windowing import delta
from windowing.aggregates.algebra import Algebra, Part
from windowing.columns import END, LAST, START, TOUCHED
from windowing.grid.frame import instant
from windowing.merge import frame as merges
from windowing.merge.rule import bounds, complete
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.frame import Range
from windowing.panes.rule import fragments_table
from windowing.spec.kinds import Session
from windowing.windows import session


@dataclass(frozen=True)
class Fragments:
    """The fragments a batch brings to one session window, and the sessions they touch."""

    batch: Batch
    window: Session
    within: Range
    algebras: Mapping[str, Algebra]
    fresh: DataFrame

    def check(self) -> dict[str, int]:
        """Nothing can be too much."""
        return {}

    def store(self) -> None:
        """Appends the fragments to state."""
        state.store(
            self.fresh,
            self.batch.pipeline,
            fragments_table(self.window),
            self.batch.stamp,
            "first_event",
        )

    def outputs(self) -> list[Step]:
        """One step: the sessions that a fresh fragment is in, absorbed ones deleted."""
        return [self._output]

    def _output(self) -> dict[str, int]:
        batch, window, target = self.batch, self.window, complete(self.batch.pipeline, self.window)
        new, old = sessions(
            batch, window, self.fresh, partials.parts(self.algebras.values()), self.within
        )
        valued = merges.values(
            new, [*batch.keys, *bounds(window)], window.aggregates, self.algebras
        )
        changed = (
            merges.inserts(valued, target)
            if old is None
            else merges.replacements(valued, old, target)
        )
        return written(batch, window, target, changed)


def sessions(
    batch: Batch, window: Session, fresh: DataFrame, kept: list[Part], within: Range
) -> tuple[DataFrame, DataFrame | None]:
    """The sessions that the fragments `fresh` make, and the stored sessions they replace (None: there are none)."""
    marked, path = (
        fresh.withColumn(TOUCHED, F.lit(1).cast("bigint")),
        complete(batch.pipeline, window).path,
    )
    if delta.is_new(batch.spark, path):
        return session.windows(marked, batch.keys, window.gap_us, kept), None
    early, late = instant(within.low_us), instant(within.high_us + window.gap_us)
    stored = delta.read(batch.spark, path).where((F.col(END) >= early) & (F.col(START) <= late))
    old = session.touched(stored, fresh, batch.keys, window.gap_us).localCheckpoint(eager=True)
    extent = old.agg(F.min(F.unix_micros(START)), F.max(F.unix_micros(LAST))).first()
    if extent is not None and extent[0] is not None:
        before = state.fragments_before(
            batch.spark, batch.pipeline, window, batch.stamp, Range(*extent)
        )
        others = session.members(before, old, batch.keys).withColumn(
            TOUCHED, F.lit(0).cast("bigint")
        )
        marked = marked.unionByName(others.select(*marked.columns))
    return session.windows(marked, batch.keys, window.gap_us, kept), old
