"""Which windows of an output lack a sum because it left its type, by what state contains.

rows without a sum -> the state that they overlap -> their windows, computed again
-> those with an overflow
"""

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import RunContext
from jobs.microbatch.ordered import compute_windows_of_events
from windowing.aggregates.algebra import Algebra
from windowing.columns import END, PANE, START
from windowing.grid.frame import between
from windowing.grid.range import Range
from windowing.merge import frame as merges
from windowing.merge.rule import output_table
from windowing.panes import frame as partials
from windowing.panes.rule import state_of
from windowing.rows import column_named
from windowing.source import table as source
from windowing.spec.aggregate_description import describe_aggregate
from windowing.spec.kinds import Aligned, Global, Session, Window
from windowing.storage import own_tables
from windowing.storage.pinned_rows import pin_rows
from windowing.windows import aligned, session, whole
from windowing.windows.merging import mark_touched
from windowing.windows.neighbours import widen_to_needed

SUMS_FIT = "sums_fit_their_type"
"""The expectation that no output lacks a sum for that."""


def list_sums(window: Window) -> list[str]:
    """The columns of an output that are null where a sum left its type."""
    return [a.name for a in window.aggregates if describe_aggregate(a.function).can_overflow]


def select_lacking_sums(rows: DataFrame, window: Window) -> DataFrame | None:
    """The rows in which a sum or an average is null; None where the window has neither."""
    is_null = [column_named(name).isNull() for name in list_sums(window)]
    return rows.where(reduce(or_, is_null)) if is_null else None


def has_lost_sums(batch: RunContext, window: Window, rows: DataFrame) -> bool:
    """Whether a sum of one of `rows` left its type; otherwise their windows have no value to add.

    `rows` are of the output of `window`, which was computed from state as it is now.
    """
    target = output_table(batch.pipeline, window)
    named = dict.fromkeys((*target.identity, START, END))
    wanted = pin_rows(rows.select(*named))
    if wanted.isEmpty():
        return False
    schema = source.schema(batch.spark, batch.pipeline)
    algebras = partials.algebras_of(batch.pipeline, window.aggregates, schema)
    found = _compute_windows(batch, window, algebras, wanted)
    valued = merges.lower_partials(found, target.identity, algebras)
    lost = valued.where(merges.OVERFLOW)
    return not lost.join(wanted, list(target.identity), "left_semi").isEmpty()


def _compute_windows(
    batch: RunContext, window: Window, algebras: Mapping[str, Algebra], wanted: DataFrame
) -> DataFrame:
    """The windows that state contains, among them those of `wanted`: [keys, bounds, parts]."""
    stored = own_tables.read(batch.spark, batch.pipeline.table(state_of(batch.pipeline, window)))
    kept = partials.parts_of(algebras.values())
    touched = mark_touched(stored)
    if isinstance(window, Aligned):
        return _compute_grid_windows(batch, window, algebras, touched, wanted)
    if isinstance(window, Global):
        return whole.merge_whole_windows(touched, batch.keys, kept)
    if isinstance(window, Session):
        return session.merge_sessions(touched, batch.keys, window.gap_us, kept)
    return compute_windows_of_events(batch, window, stored, algebras)


def _compute_grid_windows(
    batch: RunContext,
    window: Aligned,
    algebras: Mapping[str, Algebra],
    panes: DataFrame,
    wanted: DataFrame,
) -> DataFrame:
    """The windows that overlap the times of `wanted`."""
    ends = wanted.agg(F.min(F.unix_micros(START)), F.max(F.unix_micros(END))).collect()
    ((low_us, high_us),) = ends
    reach = widen_to_needed(window, Range(low_us, high_us))
    near = between(panes, PANE, reach.low_us, reach.high_us)
    kept = partials.parts_of(algebras.values())
    lateness = batch.pipeline.watermark.allowed_lateness_us
    runs = aligned.merge_stretches(near, [window], batch.keys, kept, lateness, reach)
    return aligned.list_windows(runs, [window], reach)
