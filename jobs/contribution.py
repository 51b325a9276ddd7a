"""The second half of a micro-batch: what its accepted events bring to state, and the outputs that follow from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.admission import Admitted, Batch
from windowing import delta
from windowing.admit.frame import admitted_to
from windowing.columns import END, LAST, START, TOUCHED
from windowing.grid.zone import moment
from windowing.merge import frame as merges
from windowing.merge import table as outputs
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.algebra import Algebra, Part
from windowing.panes.frame import Range
from windowing.panes.rule import Family, span
from windowing.spec.pipeline import Session, Sliding, Tumbling, Window
from windowing.windows import aligned, session


@dataclass(frozen=True)
class Panes:
    """The panes a batch brings to one family, and the windows they touch."""

    batch: Batch
    family: Family
    within: Range
    algebras: Mapping[str, Algebra]
    fresh: DataFrame

    def store(self) -> None:
        """Appends the panes to state."""
        state.store(self.fresh, self.batch.pipeline, self.family.table, self.batch.stamp, "pane_start")

    def outputs(self) -> list[Callable[[], dict[str, int]]]:
        """One step for each output: every window that holds a fresh pane is recomputed and written if it changed."""
        reach = max(span(w) for w in self.family.windows)
        low, high = moment(self.within.low_us - reach), moment(self.within.high_us + reach)
        before = state.panes_before(self.batch.spark, self.batch.pipeline, self.family.table, self.batch.stamp, low, high)
        return [partial(self._output, window, before) for window in self.family.windows]

    def _output(self, window: Tumbling | Sliding, before: DataFrame | None) -> dict[str, int]:
        own = {a.name: self.algebras[a.name] for a in window.aggregates}
        new = aligned_windows(self.batch, window, self.fresh, before, self.within, partials.parts(own.values()))
        return publishable(self.batch, window, merges.values(new, window, self.batch.keys, own), self.within)


@dataclass(frozen=True)
class Fragments:
    """The fragments a batch brings to one session window, and the sessions they touch."""

    batch: Batch
    window: Session
    within: Range
    algebras: Mapping[str, Algebra]
    fresh: DataFrame

    def store(self) -> None:
        """Appends the fragments to state."""
        state.store(self.fresh, self.batch.pipeline, state.fragments_table(self.window), self.batch.stamp, "first_event")

    def outputs(self) -> list[Callable[[], dict[str, int]]]:
        """One step: the sessions that a fresh fragment is in, absorbed ones deleted."""
        return [self._output]

    def _output(self) -> dict[str, int]:
        batch, window = self.batch, self.window
        new, old = sessions(batch, window, self.fresh, partials.parts(self.algebras.values()), self.within)
        valued = merges.values(new, window, batch.keys, self.algebras)
        changed = merges.inserts(valued, window, batch.keys) if old is None else merges.replacements(valued, old, window, batch.keys)
        return named(window, outputs.write(batch.spark, batch.pipeline, window, changed, batch.stamp.run))


def partial_of(batch: Batch, admitted: Admitted, subject: Family | Session) -> Panes | Fragments:
    """The batch's accepted events as partials of one family or one session window."""
    within = admitted.within or Range(0, 0)
    algebras = partials.algebras(batch.pipeline, subject.aggregates, admitted.schema)
    kept = partials.parts(algebras.values())
    if isinstance(subject, Family):
        return Panes(batch, subject, within, algebras, partials.panes(admitted.accepted, batch.keys, subject, kept, within).persist())
    events = admitted_to(admitted.accepted, subject.name)
    return Fragments(batch, subject, within, algebras, partials.fragments(events, batch.keys, subject.gap_us, kept).persist())


def aligned_windows(
    batch: Batch, window: Tumbling | Sliding, fresh: DataFrame, before: DataFrame | None, within: Range, kept: list[Part]
) -> DataFrame:
    """Every window of `window` that a pane of this batch is in: [keys, start, end, rows, parts]."""
    touched = batch.stamp.on(fresh).withColumn(TOUCHED, F.lit(1).cast("bigint"))
    columns = [*batch.keys, "pane_start", "judged_by", *(p.name for p in kept)]
    near = touched.select(*columns, TOUCHED)
    if before is not None:
        others = aligned.beside(before, fresh, window, batch.keys, within).select(*columns, F.lit(0).cast("bigint").alias(TOUCHED))
        near = near.unionByName(others)
    lateness = batch.pipeline.watermark.allowed_lateness_us
    found = aligned.windows(near, window, batch.keys, kept, lateness, aligned.reach(window, within))
    return found.where(F.col(TOUCHED) > 0)


def publishable(batch: Batch, window: Tumbling | Sliding, new: DataFrame, within: Range) -> dict[str, int]:
    """Writes what changed in an aligned output."""
    path = batch.pipeline.table(window.name)
    if delta.is_new(batch.spark, path):
        changed = merges.inserts(new, window, batch.keys)
    else:
        reach = timedelta(microseconds=span(window))
        stored = outputs.stored(batch.spark, batch.pipeline, window, moment(within.low_us) - reach, moment(within.high_us) + reach)
        changed = merges.corrections(new, stored, window, batch.keys)
    return named(window, outputs.write(batch.spark, batch.pipeline, window, changed, batch.stamp.run))


def sessions(
    batch: Batch, window: Session, fresh: DataFrame, kept: list[Part], within: Range
) -> tuple[DataFrame, DataFrame | None]:
    """The sessions that the fragments `fresh` make, and the stored sessions they replace (None: there are none)."""
    marked = fresh.withColumn(TOUCHED, F.lit(1).cast("bigint"))
    if delta.is_new(batch.spark, batch.pipeline.table(window.name)):
        return session.windows(marked, batch.keys, window.gap_us, kept), None
    early, late = F.lit(moment(within.low_us)), F.lit(moment(within.high_us + window.gap_us))
    stored = delta.read(batch.spark, batch.pipeline.table(window.name)).where((F.col(END) >= early) & (F.col(START) <= late))
    old = session.touched(stored, fresh, batch.keys, window.gap_us).localCheckpoint(eager=True)
    extent = old.agg(F.min(START), F.max(LAST)).first()
    if extent is not None and extent[0] is not None:
        low, high = (value.replace(tzinfo=moment(0).tzinfo) for value in extent)
        before = state.fragments_before(batch.spark, batch.pipeline, window, batch.stamp, low, high)
        others = session.members(before, old, batch.keys).withColumn(TOUCHED, F.lit(0).cast("bigint"))
        marked = marked.unionByName(others.select(*marked.columns))
    return session.windows(marked, batch.keys, window.gap_us, kept), old


def named(window: Window, written: outputs.Changes) -> dict[str, int]:
    """The changes of one output as ledger counts."""
    counts = {"inserted": written.inserted, "updated": written.updated, "deleted": written.deleted, "overflow": written.overflow}
    return {f"{window.name}.{kind}": n for kind, n in counts.items()}
