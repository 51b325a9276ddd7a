"""The panes that a micro-batch adds for grid and global windows, and the windows they touch."""

from collections.abc import Mapping, Sequence
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
from windowing.merge.rule import window_columns
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.rule import Family, windows_of_pane
from windowing.spec.kinds import ON_CHANGE, Aligned, Global
from windowing.storage.few_rows import are_few
from windowing.storage.pinned_rows import pin_rows
from windowing.windows import aligned, whole
from windowing.windows.gaps import list_empty_windows, shows_empty_windows
from windowing.windows.merging import mark_touched
from windowing.windows.neighbours import cover_needed, keep_near
from windowing.windows.reach import span_windows
from windowing.windows.together import identify, spread

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
        """One for all windows that are computed together, of outputs with `emit: on_change`.

        It recomputes the windows touched.
        """
        shown = _select_shown_now(self.family)
        return [partial(self._prepare_outputs, group) for group in gather_windows(shown, self.most)]

    def _prepare_outputs(self, windows: tuple[Aligned | Global, ...]) -> list[Step]:
        aligned_windows = [window for window in windows if not isinstance(window, Global)]
        if aligned_windows:
            recomputed = self._compute_aligned(aligned_windows)
        else:
            recomputed = self._compute_global(windows[0])
        steps = prepare_shown(self.batch, windows, recomputed)
        if steps is not None:
            return steps
        return [step for window in windows for step in self._prepare_outputs((window,))]

    def _select_algebras(self, window: Aligned | Global) -> dict[str, Algebra]:
        return {aggregate.name: self.algebras[aggregate.name] for aggregate in window.aggregates}

    def _mark_fresh(self) -> DataFrame:
        """The fresh panes as they are stored, marked as touched."""
        return mark_touched(self.batch.stamp.on(self.fresh))

    def _compute_aligned(self, windows: Sequence[Aligned]) -> Recomputed:
        """Every window that a fresh pane is in.

        Where the output shows empty windows, those that the fresh panes add are among them.
        """
        batch = self.batch
        algebras = self._select_algebras(windows[0])
        kept = partials.parts_of(algebras.values())
        keys = identify(batch.keys, windows)
        wide = cover_needed(windows, self.within)
        runs = self._merge_panes(windows, kept, wide)
        touched = runs.where(F.col(TOUCHED) > 0)
        changed = self.within
        first = windows[0]
        if shows_empty_windows(first):
            fresh, table = self._mark_fresh(), self.family.table
            gaps, wide = empty_windows.empty_window_ranges(batch, first, table, fresh, self.within)
            touched = touched.unionByName(list_empty_windows(gaps, touched, keys, kept))
            changed = wide
        # The windows of a stretch have the same values, which are computed once.
        columns = [*keys, FROM, TO]
        valued = merges.lower_partials(touched, columns, algebras)
        most = count_most_windows(windows, self.most)
        # Many will be inserted in order. There are fewer stretches to sort than windows.
        in_order = not are_few(most) and not self._find_joined(windows)
        if in_order:
            valued = valued.sortWithinPartitions(FROM)
        rows = aligned.list_windows(valued, windows, wide)
        if most is None:
            return Recomputed(rows, changed, in_order=in_order)
        few_panes = self.fresh if self.most <= _FEW_PANES else None
        return Recomputed(rows, changed, most, in_order, few_panes)

    def _find_joined(self, windows: Sequence[Aligned]) -> list[int]:
        """The places of the windows that may contain a stored pane beside a fresh one."""
        return [place for place, window in enumerate(windows) if window.name in self.joined]

    def _merge_panes(
        self, windows: Sequence[Aligned], kept: list[Part], within: Range
    ) -> DataFrame:
        """Stretches of the windows, and of a few others; the times of all are `within`."""
        batch = self.batch
        keys = identify(batch.keys, windows)
        lateness = batch.pipeline.watermark.allowed_lateness_us
        fresh = spread(self._mark_fresh(), windows, range(len(windows)))
        joined = self._find_joined(windows)
        if not joined:
            panes = _join_panes(fresh, None, keys, kept)
            cuts = self.family.cuts
            return aligned.merge_different_panes(panes, windows, cuts, keys, kept, lateness, within)
        needed = cover_needed([windows[place] for place in joined], self.within)
        table = self.family.table
        before = state.panes_before(batch.spark, batch.pipeline, table, batch.stamp, needed)
        copies = spread(before, windows, joined)
        others = keep_near(copies, PANE, fresh, windows, keys, self.within)
        panes = _join_panes(fresh, others, keys, kept)
        if len(aligned.find_merges(windows, kept)) > 1:
            # Each merge would read the stored panes again.
            panes = pin_rows(panes)
        return aligned.merge_stretches(panes, windows, keys, kept, lateness, within)

    def _compute_global(self, window: Aligned | Global) -> Recomputed:
        """The window of every key that has a fresh pane."""
        batch = self.batch
        algebras = self._select_algebras(window)
        kept = partials.parts_of(algebras.values())
        keys = list(batch.keys)
        before = state.panes_of(batch.spark, batch.pipeline, self.family.table, batch.stamp)
        others = None
        if before is not None:
            fresh_keys = self.fresh.select(*keys).distinct()
            others = before.join(fresh_keys, keys, "left_semi")
        panes = _join_panes(self._mark_fresh(), others, keys, kept)
        found = whole.merge_whole_windows(panes, batch.keys, kept)
        rows = merges.lower_partials(found, window_columns(window, batch.keys), algebras)
        return Recomputed(rows, self.within, self.most)


def _join_panes(
    fresh: DataFrame, others: DataFrame | None, keys: Sequence[str], kept: Sequence[Part]
) -> DataFrame:
    """The fresh panes, which are marked as touched, and those of `others` marked as not touched."""
    columns = [*keys, PANE, JUDGED, *(part.name for part in kept)]
    marked = fresh.select(*columns, TOUCHED)
    if others is None:
        return marked
    not_touched = F.lit(0).cast("bigint").alias(TOUCHED)
    return marked.unionByName(others.select(*columns, not_touched))


def gather_windows(
    windows: Sequence[Aligned | Global], most: int
) -> list[tuple[Aligned | Global, ...]]:
    """The windows that are computed together; there are at `most` so many fresh panes.

    They have the same aggregates, and are few enough to be in this process all at once. Global
    windows, and those that show others than a fresh pane is in, are computed alone.
    """
    alone: list[tuple[Aligned | Global, ...]] = []
    groups: list[list[Aligned]] = []
    for window in windows:
        if isinstance(window, Global) or count_most_windows([window], most) is None:
            alone.append((window,))
            continue
        if window.shown.having is not None:
            alone.append((window,))
            continue
        for group in groups:
            alike = group[0].aggregates == window.aggregates
            if alike and are_few(count_most_windows([*group, window], most)):
                group.append(window)
                break
        else:
            groups.append([window])
    return [*map(tuple, groups), *alone]


def count_most_windows(windows: Sequence[Aligned], most: int) -> int | None:
    """How many windows so many fresh panes touch at most.

    None where empty windows are shown, too: how many depends on what is stored.
    """
    if any(map(shows_empty_windows, windows)):
        return None
    return most * sum(map(windows_of_pane, windows))


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
