"""What one micro-batch brings to the windows made from partial aggregates: fresh panes and fragments, and the windows they touch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs import filling
from jobs.admission import Admitted, Batch
from windowing import delta
from windowing.admit.frame import admitted_to
from windowing.columns import END, JUDGED, LAST, PANE, START, TOUCHED
from windowing.grid.frame import instant
from windowing.merge import frame as merges
from windowing.merge import table as outputs
from windowing.merge.rule import Target, bounds, complete, output
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.algebra import Algebra, Part
from windowing.panes.frame import Range
from windowing.panes.rule import Family, span
from windowing.spec.kinds import ON_CHANGE, Aligned, Global, Session, Window
from windowing.windows import aligned, session, whole

Step = Callable[[], dict[str, int]]


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
        filled = [w for w in self.family.windows if filling.filled(w)]
        return {f"{w.name}.empty": filling.checked(self.batch, w, self.family.table, self._touched(), self.within) for w in filled}

    def store(self) -> None:
        """Appends the panes to state."""
        state.store(self.fresh, self.batch.pipeline, self.family.table, self.batch.stamp, "pane_start")

    def outputs(self) -> list[Step]:
        """One step for each output that shows changes at once: every window that holds a fresh pane is recomputed."""
        return [partial(self._output, window) for window in self.family.windows if window.shown.emit == ON_CHANGE]

    def _output(self, window: Aligned | Global) -> dict[str, int]:
        own = {a.name: self.algebras[a.name] for a in window.aggregates}
        kept, columns = partials.parts(own.values()), [*self.batch.keys, *bounds(window)]
        new, within = (self._whole(kept), self.within) if isinstance(window, Global) else self._aligned(window, kept)
        return publishable(self.batch, window, merges.values(new, columns, window.aggregates, own), within)

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
        before = state.panes_before(batch.spark, batch.pipeline, self.family.table, batch.stamp, wide)
        others = None if before is None else aligned.beside(before, self.fresh, window, batch.keys, self.within)
        lateness = batch.pipeline.watermark.allowed_lateness_us
        runs = aligned.stretches(self._near(others, kept), window, batch.keys, kept, lateness, wide).where(F.col(TOUCHED) > 0)
        if filling.filled(window):
            gaps, wide = filling.gaps(batch, window, self.family.table, self._touched(), self.within)
            runs = runs.unionByName(aligned.empties(gaps, runs, window, batch.keys, kept))
            return aligned.windows(runs, window, wide), wide
        return aligned.windows(runs, window, wide), self.within

    def _whole(self, kept: list[Part]) -> DataFrame:
        """The window of every key that has a fresh pane."""
        before = state.panes_of(self.batch.spark, self.batch.pipeline, self.family.table, self.batch.stamp)
        others = None if before is None else before.join(self.fresh.select(*self.batch.keys).distinct(), [*self.batch.keys], "left_semi")
        return whole.windows(self._near(others, kept), self.batch.keys, kept)


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
        state.store(self.fresh, self.batch.pipeline, state.fragments_table(self.window), self.batch.stamp, "first_event")

    def outputs(self) -> list[Step]:
        """One step: the sessions that a fresh fragment is in, absorbed ones deleted."""
        return [self._output]

    def _output(self) -> dict[str, int]:
        batch, window, target = self.batch, self.window, complete(self.batch.pipeline, self.window)
        new, old = sessions(batch, window, self.fresh, partials.parts(self.algebras.values()), self.within)
        valued = merges.values(new, [*batch.keys, *bounds(window)], window.aggregates, self.algebras)
        changed = merges.inserts(valued, target) if old is None else merges.replacements(valued, old, target)
        return written(batch, window, target, changed)


def partial_of(batch: Batch, admitted: Admitted, subject: Family | Session) -> Panes | Fragments:
    """The batch's accepted events as partials of one family or one session window; computed here, so that plans made of them stay small."""
    within = admitted.within or Range(0, 0)
    algebras = partials.algebras(batch.pipeline, subject.aggregates, admitted.schema)
    kept = partials.parts(algebras.values())
    if isinstance(subject, Family):
        panes = partials.panes(admitted.accepted, batch.keys, subject, kept, within)
        return Panes(batch, subject, within, algebras, panes.localCheckpoint(eager=True))
    events = admitted_to(admitted.accepted, subject.name)
    fragments = partials.fragments(events, batch.keys, subject.gap_us, kept)
    return Fragments(batch, subject, within, algebras, fragments.localCheckpoint(eager=True))


def publishable(batch: Batch, window: Aligned | Global, new: DataFrame, within: Range) -> dict[str, int]:
    """Writes what changed among the windows `new` of an output on a clock; those that do not qualify are not shown."""
    target = output(batch.pipeline, window)
    shown = merges.qualifying(new, window.shown.having)
    if delta.is_new(batch.spark, target.path):
        return written(batch, window, target, merges.inserts(shown, target))
    if isinstance(window, Global):
        stored = delta.read(batch.spark, target.path)
    else:
        stored = outputs.stored(batch.spark, target, within.low_us - span(window), within.high_us + span(window))
    if window.shown.having is None:
        return written(batch, window, target, merges.corrections(shown, stored, target))
    same = [F.col(f"s.`{c}`").eqNullSafe(F.col(f"n.`{c}`")) for c in target.identity]
    recomputed = stored.alias("s").join(new.select(*target.identity).alias("n"), same, "left_semi")
    return written(batch, window, target, merges.replacements(shown, recomputed, target))


def sessions(
    batch: Batch, window: Session, fresh: DataFrame, kept: list[Part], within: Range
) -> tuple[DataFrame, DataFrame | None]:
    """The sessions that the fragments `fresh` make, and the stored sessions they replace (None: there are none)."""
    marked, path = fresh.withColumn(TOUCHED, F.lit(1).cast("bigint")), complete(batch.pipeline, window).path
    if delta.is_new(batch.spark, path):
        return session.windows(marked, batch.keys, window.gap_us, kept), None
    early, late = instant(within.low_us), instant(within.high_us + window.gap_us)
    stored = delta.read(batch.spark, path).where((F.col(END) >= early) & (F.col(START) <= late))
    old = session.touched(stored, fresh, batch.keys, window.gap_us).localCheckpoint(eager=True)
    extent = old.agg(F.min(F.unix_micros(START)), F.max(F.unix_micros(LAST))).first()
    if extent is not None and extent[0] is not None:
        before = state.fragments_before(batch.spark, batch.pipeline, window, batch.stamp, Range(*extent))
        others = session.members(before, old, batch.keys).withColumn(TOUCHED, F.lit(0).cast("bigint"))
        marked = marked.unionByName(others.select(*marked.columns))
    return session.windows(marked, batch.keys, window.gap_us, kept), old


def written(batch: Batch, window: Window, target: Target, changed: DataFrame) -> dict[str, int]:
    """Writes what changed; counts of the output by the ledger's names, of a table that users do not read its lost sums alone."""
    counts = outputs.write(batch.spark, target, changed, batch.stamp.run)
    if target.path != batch.pipeline.table(window.name):
        return {f"{window.name}.overflow": counts.overflow} if counts.overflow else {}
    named = {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted, "overflow": counts.overflow}
    return {f"{window.name}.{kind}": n for kind, n in named.items()}
