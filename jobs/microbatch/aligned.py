"""The panes that a micro-batch brings to windows on a clock and to global ones, and the windows they touch."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch import empty_windows
from jobs.microbatch.context import Batch
from jobs.microbatch.outputs import Step, publishable
from windowing.aggregates.algebra import Algebra, Part
from windowing.columns import JUDGED, PANE, TOUCHED
from windowing.merge import frame as merges
from windowing.merge.rule import bounds
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.frame import Range
from windowing.panes.rule import Family
from windowing.spec.kinds import ON_CHANGE, Aligned, Global
from windowing.windows import aligned, whole
from windowing.windows.gaps import filled


@dataclass(frozen=True)
class Panes:
    """The panes a batch brings to one family, and the windows they touch."""

    batch: Batch
    family: Family
    within: Range
    algebras: Mapping[str, Algebra]
    fresh: DataFrame

    def check(self) -> dict[str, int]:
        """How many windows without events each output gets; raises before anything is written if that is beyond its limit."""
        showing = [w for w in self.family.windows if filled(w)]
        return {
            f"{w.name}.empty": empty_windows.checked(
                self.batch, w, self.family.table, self._touched(), self.within
            )
            for w in showing
        }

    def store(self) -> None:
        """Appends the panes to state."""
        state.store(
            self.fresh, self.batch.pipeline, self.family.table, self.batch.stamp, "pane_start"
        )

    def outputs(self) -> list[Step]:
        """One step for each output that shows changes at once: every window that holds a fresh pane is recomputed."""
        return [
            partial(self._output, window)
            for window in self.family.windows
            if window.shown.emit == ON_CHANGE
        ]

    def _output(self, window: Aligned | Global) -> dict[str, int]:
        own = {a.name: self.algebras[a.name] for a in window.aggregates}
        kept, columns = partials.parts(own.values()), [*self.batch.keys, *bounds(window)]
        new, within = (
            (self._whole(kept), self.within)
            if isinstance(window, Global)
            else self._aligned(window, kept)
        )
        return publishable(
            self.batch, window, merges.values(new, columns, window.aggregates, own), within
        )

    def _touched(self) -> DataFrame:
        return self.batch.stamp.on(self.fresh).withColumn(TOUCHED, F.lit(1).cast("bigint"))

    def _near(self, others: DataFrame | None, kept: list[Part]) -> DataFrame:
        """The fresh panes and those of `others`, marked as not touched."""
        columns = [*self.batch.keys, PANE, JUDGED, *(p.name for p in kept)]
        near = self._touched().select(*columns, TOUCHED)
        if others is None:
            return near
        return near.unionByName(others.select(*columns, F.lit(0).cast("bigint").alias(TOUCHED)))

    def _aligned(self, window: Aligned, kept: list[Part]) -> tuple[DataFrame, Range]:
        """Every window that a fresh pane is in, the windows without events that come with it, and the times they span."""
        batch, wide = self.batch, aligned.reach(window, self.within)
        before = state.panes_before(
            batch.spark, batch.pipeline, self.family.table, batch.stamp, wide
        )
        others = (
            None
            if before is None
            else aligned.beside(before, self.fresh, window, batch.keys, self.within)
        )
        lateness = batch.pipeline.watermark.allowed_lateness_us
        runs = aligned.stretches(
            self._near(others, kept), window, batch.keys, kept, lateness, wide
        ).where(F.col(TOUCHED) > 0)
        if filled(window):
            gaps, wide = empty_windows.gaps(
                batch, window, self.family.table, self._touched(), self.within
            )
            runs = runs.unionByName(aligned.empties(gaps, runs, window, batch.keys, kept))
            return aligned.windows(runs, window, wide), wide
        return aligned.windows(runs, window, wide), self.within

    def _whole(self, kept: list[Part]) -> DataFrame:
        """The window of every key that has a fresh pane."""
        before = state.panes_of(
            self.batch.spark, self.batch.pipeline, self.family.table, self.batch.stamp
        )
        others = (
            None
            if before is None
            else before.join(
                self.fresh.select(*self.batch.keys).distinct(), [*self.batch.keys], "left_semi"
            )
        )
        return whole.windows(self._near(others, kept), self.batch.keys, kept)
