"""The panes that a micro-batch adds for grid and global windows, and the windows they touch."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch import empty_windows
from jobs.microbatch.context import RunContext
from jobs.microbatch.outputs import Preparation, Recomputed, Step, prepare_shown
from windowing.aggregates.algebra import Algebra, Part
from windowing.columns import FROM, JUDGED, PANE, TO, TOUCHED
from windowing.grid.range import Range
from windowing.merge import frame as merges
from windowing.merge.rule import bound_columns
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.rule import Family, windows_of_pane
from windowing.spec.kinds import ON_CHANGE, Aligned, Global
from windowing.windows import aligned, whole
from windowing.windows.gaps import list_empty_windows, shows_empty_windows
from windowing.windows.neighbours import keep_panes_beside, widen_to_needed
from windowing.windows.reach import span_windows

_FEW_PANES = 50_000
"""So many are sent to each task that reads stored windows, to keep only those near them."""


@dataclass(frozen=True)
class PaneBatch:
    """The panes that a batch adds to one family, and the windows they touch.

    `joined` are the names of the windows that may contain a stored pane beside a fresh one. There
    are at `most` so many fresh panes.
    """

    batch: RunContext
    family: Family
    within: Range
    algebras: Mapping[str, Algebra]
    fresh: DataFrame
    joined: frozenset[str]
    most: int

    def check(self) -> dict[str, int]:
        """How many empty windows the batch adds to each output.

        Raises StateRefused, before anything is written, if they exceed the output's limit.
        """
        table = self.family.table
        counts = {}
        for window in self.family.windows:
            if shows_empty_windows(window):
                fresh = self._mark_fresh()
                counts[f"{window.name}.empty"] = empty_windows.check_empty_limit(
                    self.batch, window, table, fresh, self.within
                )
        return counts

    def store(self) -> None:
        """Appends the panes to state."""
        batch = self.batch
        table = self.family.table
        state.store_partials(self.fresh, batch.pipeline, table, batch.stamp, PANE, self.most)

    def outputs(self) -> list[Preparation]:
        """One for each output with `emit: on_change`: it recomputes the windows touched."""
        return [partial(self._prepare_output, window) for window in _select_shown_now(self.family)]

    def _prepare_output(self, window: Aligned | Global) -> Step:
        own = {a.name: self.algebras[a.name] for a in window.aggregates}
        if isinstance(window, Global):
            new = self._compute_global(window, own)
            return prepare_shown(self.batch, window, Recomputed(new, self.within, self.most))
        return prepare_shown(self.batch, window, self._compute_aligned(window, own))

    def _mark_fresh(self) -> DataFrame:
        """The fresh panes as they are stored, marked as touched."""
        return self.batch.stamp.on(self.fresh).withColumn(TOUCHED, F.lit(1).cast("bigint"))

    def _add_fresh(self, others: DataFrame | None, kept: list[Part]) -> DataFrame:
        """The fresh panes, and those of `others` marked as not touched."""
        columns = [*self.batch.keys, PANE, JUDGED, *(p.name for p in kept)]
        fresh = self._mark_fresh().select(*columns, TOUCHED)
        if others is None:
            return fresh
        not_touched = F.lit(0).cast("bigint").alias(TOUCHED)
        return fresh.unionByName(others.select(*columns, not_touched))

    def _compute_aligned(self, window: Aligned, algebras: Mapping[str, Algebra]) -> Recomputed:
        """Every window that a fresh pane is in.

        Where the output shows empty windows, those that the fresh panes add are among them.
        """
        batch = self.batch
        table = self.family.table
        kept = partials.parts_of(algebras.values())
        wide = widen_to_needed(window, self.within)
        lateness = batch.pipeline.watermark.allowed_lateness_us
        if window.name in self.joined:
            before = state.panes_before(batch.spark, batch.pipeline, table, batch.stamp, wide)
            others = keep_panes_beside(before, self.fresh, window, batch.keys, self.within)
            panes = self._add_fresh(others, kept)
            runs = aligned.merge_stretches(panes, window, batch.keys, kept, lateness, wide)
        else:
            runs = aligned.merge_different_panes(
                self._add_fresh(None, kept),
                window,
                self.family.cuts,
                batch.keys,
                kept,
                lateness,
                wide,
            )
        touched = runs.where(F.col(TOUCHED) > 0)
        changed = self.within
        if shows_empty_windows(window):
            fresh = self._mark_fresh()
            gaps, wide = empty_windows.empty_window_ranges(batch, window, table, fresh, self.within)
            touched = touched.unionByName(list_empty_windows(gaps, touched, batch.keys, kept))
            changed = wide
        # The windows of a stretch have the same values, which are computed once.
        columns = [*batch.keys, FROM, TO]
        valued = merges.lower_partials(touched, columns, window.aggregates, algebras)
        # They will be inserted in order. There are fewer stretches to sort than windows.
        in_order = window.name not in self.joined
        if in_order:
            valued = valued.sortWithinPartitions(FROM)
        rows = aligned.list_windows(valued, window, wide)
        if shows_empty_windows(window):
            # How many there are depends on what is stored, and they contain no pane.
            return Recomputed(rows, changed, in_order=in_order)
        most = self.most * windows_of_pane(window)
        few_panes = self.fresh if self.most <= _FEW_PANES else None
        return Recomputed(rows, changed, most, in_order, few_panes)

    def _compute_global(self, window: Global, algebras: Mapping[str, Algebra]) -> DataFrame:
        """The window of every key that has a fresh pane."""
        batch = self.batch
        kept = partials.parts_of(algebras.values())
        keys = list(batch.keys)
        before = state.panes_of(batch.spark, batch.pipeline, self.family.table, batch.stamp)
        others = None
        if before is not None:
            fresh_keys = self.fresh.select(*keys).distinct()
            others = before.join(fresh_keys, keys, "left_semi")
        found = whole.merge_whole_windows(self._add_fresh(others, kept), batch.keys, kept)
        identity = [*batch.keys, *bound_columns(window)]
        return merges.lower_partials(found, identity, window.aggregates, algebras)


def _select_shown_now(family: Family) -> list[Aligned | Global]:
    """The windows whose outputs a batch writes; all others are written at the end of the run."""
    return [window for window in family.windows if window.shown.emit == ON_CHANGE]


def find_joined(batch: RunContext, family: Family, within: Range) -> frozenset[str]:
    """The names of the windows that may contain a stored pane beside one with events `within`.

    Only windows that a batch writes are among them. It has to be asked before the panes of the
    batch are stored themselves.
    """
    found = []
    for window in _select_shown_now(family):
        if isinstance(window, Global):
            continue
        inside = span_windows(window, within)
        if state.has_panes(batch.pipeline, family.table, inside):
            found.append(window.name)
    return frozenset(found)
