"""Computes which rows of outputs differ from what is stored, and writes them.

Most outputs are written from the windows that a batch recomputed. Outputs filtered by
`emit: on_close` or `having` are computed at the end of a run from the complete table,
`_windows_{window}`:

complete table, changed by the run or passed by W -> windows to show -> output
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import Closing, RunContext
from windowing.columns import CLOSED_BY, END, EVENT_TIME, FIRST, RUN, START, WINDOW
from windowing.grid.range import Range
from windowing.ledger.counts import name_starts
from windowing.merge import frame as merges
from windowing.merge import table as outputs
from windowing.merge.rule import Target, Together, output_table
from windowing.merge.table import Output
from windowing.panes.rule import EVENTS, fragments_table
from windowing.rows import are_same, is_true
from windowing.spec.description import describe_window
from windowing.spec.kinds import ON_CLOSE, Aligned, Global, Session, Window
from windowing.storage import own_tables
from windowing.storage.few_rows import are_few
from windowing.windows.neighbours import keep_near
from windowing.windows.reach import span_windows
from windowing.windows.together import identify, spread

Step = Callable[[], dict[str, int]]
"""Writes to one output; returns its counts by their names in the ledger."""

Preparation = Callable[[], list[Step]]
"""Computes what changes in outputs; returns what writes each of them.

It reads no state of its own batch, so that may be stored before, meanwhile or afterwards.
"""

_LOW = "__low"
_MANY_BYTES = 1_000_000
"""From so many stored bytes on, it pays to leave out rows before they are compared."""


@dataclass(frozen=True)
class Recomputed:
    """Windows that were computed again, and `within` which event times they were touched.

    There are at `most` so many of them; None where that is not known. `in_order` says whether they
    come in order of their start. `panes` are few fresh panes, one of which is in each of the
    windows; None where they are many, or other windows are among the rows. Where the windows are
    of several outputs, the column `__window` says of which one a row is.
    """

    rows: DataFrame
    within: Range
    most: int | None = None
    in_order: bool = False
    panes: DataFrame | None = None


def prepare_shown(
    batch: RunContext, windows: Sequence[Aligned | Global], recomputed: Recomputed
) -> list[Step] | None:
    """Computes what recomputed windows change in the outputs of grid or global windows.

    Windows that fail `having` are not shown. The outputs of several windows, which have the same
    columns and no `having`, are compared by one query. None where their rows are too many for that,
    and each has to be compared alone.
    """
    opened = [outputs.open_output(output_table(batch.pipeline, window)) for window in windows]
    stored = _read_stored(batch, windows, opened, recomputed)
    if len(windows) == 1:
        return [_prepare_alone(batch, windows[0], opened[0], stored, recomputed)]
    shape = Together(opened[0].target)
    if stored is None:
        changed = merges.mark_inserts(merges.compute_inserts(recomputed.rows, shape))
    else:
        changed = merges.compute_corrections(recomputed.rows, stored, shape)
    run, tables = batch.stamp.run, len(windows)
    computed = outputs.compute_changes_of_each(changed, run, recomputed.most, tables)
    if computed is None:
        return None
    each = zip(windows, opened, computed, strict=True)
    return [partial(_write_computed, batch, *window_and_changes) for window_and_changes in each]


def _prepare_alone(
    batch: RunContext,
    window: Aligned | Global,
    output: Output,
    stored: DataFrame | None,
    recomputed: Recomputed,
) -> Step:
    """`prepare_shown` of one window, compared with the rows `stored`; None where there are none."""
    new, most = recomputed.rows, recomputed.most
    shown = merges.hide_by_having(new, window.shown.having)
    if stored is None:
        if recomputed.in_order and not are_few(most):
            inserts = merges.compute_inserts(shown, output.target)
            return partial(_insert_many, batch, window, output, inserts)
        return prepare_replaced(batch, window, output, shown, None, most)
    if window.shown.having is None:
        corrections = merges.compute_corrections(shown, stored, output.target)
        return prepare_output(batch, window, output, corrections, most)
    # A window that stopped qualifying is in `new` and not in `shown`; its stored row is deleted.
    identity = output.target.identity
    same_row = are_same("s", "n", identity)
    old = stored.alias("s").join(new.select(*identity).alias("n"), same_row, "left_semi")
    return prepare_replaced(batch, window, output, shown, old, most)


def _read_stored(
    batch: RunContext,
    windows: Sequence[Aligned | Global],
    opened: Sequence[Output],
    recomputed: Recomputed,
) -> DataFrame | None:
    """The stored rows that the windows may correct; None where there can't be any.

    Where there are several windows, the column `__window` says of which one a row is.
    """
    spark, within = batch.spark, recomputed.within
    aligned: list[Aligned] = []
    stored: list[outputs.StoredRange] = []
    for place, (window, output) in enumerate(zip(windows, opened, strict=True)):
        if isinstance(window, Global):
            new = outputs.is_new(spark, output)
            return None if new else outputs.read_output(spark, output)
        aligned.append(window)
        if not outputs.is_new(spark, output):
            stored.append(outputs.find_stored(place, output, span_windows(window, within)))
    found = [each for each in stored if each.bytes != 0]
    if not found:
        return None
    rows = outputs.read_ranges(spark, found, WINDOW if len(windows) > 1 else None)
    stored_bytes = sum(_MANY_BYTES if each.bytes is None else each.bytes for each in found)
    if recomputed.panes is None or stored_bytes < _MANY_BYTES:
        return rows
    # Otherwise Spark may send all stored rows to each task, to compare few with them.
    panes = spread(recomputed.panes, aligned, [each.place for each in found])
    return keep_near(rows, START, panes, aligned, identify(batch.keys, aligned), within)


def prepare_output(
    batch: RunContext, window: Window, output: Output, changed: DataFrame, most: int | None = None
) -> Step:
    """Computes the rows in `changed`; what is returned writes them.

    There are at `most` so many; None where that is not known. Of a complete table, which users do
    not read, only the sums that overflowed are counted.
    """
    computed = outputs.compute_changes(changed, batch.stamp.run, most)
    return partial(_write_computed, batch, window, output, computed)


def prepare_replaced(
    batch: RunContext,
    window: Window,
    output: Output,
    new: DataFrame,
    old: DataFrame | None,
    most: int | None = None,
) -> Step:
    """Computes how the windows `new` differ from the stored rows `old`, which they replace.

    `old` is None where the table has no rows; many windows are then computed when they are written.
    At `most` so many rows differ; None where that is not known.
    """
    if old is not None:
        replacements = merges.compute_replacements(new, old, output.target)
        return prepare_output(batch, window, output, replacements, most)
    inserts = merges.compute_inserts(new, output.target)
    if are_few(most):
        return prepare_output(batch, window, output, merges.mark_inserts(inserts), most)
    return partial(_insert_many, batch, window, output, inserts.sortWithinPartitions(START))


def _write_computed(
    batch: RunContext, window: Window, output: Output, computed: outputs.ComputedChanges
) -> dict[str, int]:
    counts = outputs.write_changes(output, computed)
    return _name_counts(batch, window, output.target, counts)


def replace_rows(
    batch: RunContext, window: Window, output: Output, new: DataFrame, old: DataFrame | None
) -> dict[str, int]:
    """Writes the windows `new` in place of the stored rows `old`; returns counts by their names.

    `old` is None where the table has no rows.
    """
    return prepare_replaced(batch, window, output, new, old)()


def replace_output(
    batch: RunContext, window: Window, target: Target, new: DataFrame
) -> dict[str, int]:
    """Makes `new` all rows of a table; returns counts as `replace_rows` does."""
    output = outputs.open_output(target)
    stored = outputs.read_output(batch.spark, output)
    return replace_rows(batch, window, output, new, stored)


def _insert_many(
    batch: RunContext, window: Window, output: Output, inserts: DataFrame
) -> dict[str, int]:
    """Writes rows none of which is stored, in the order in which they come."""
    counts = outputs.insert_many(output, inserts, batch.stamp.run)
    return _name_counts(batch, window, output.target, counts)


def _name_counts(
    batch: RunContext, window: Window, target: Target, counts: outputs.Changes
) -> dict[str, int]:
    if target.path != batch.pipeline.table(window.name):
        if not counts.overflow:
            return {}
        return {f"{window.name}.overflow": counts.overflow}
    restated = {f"{window.name}.restated": counts.restated} if counts.restated else {}
    return {
        f"{window.name}.inserted": counts.inserted,
        f"{window.name}.updated": counts.updated,
        f"{window.name}.deleted": counts.deleted,
        f"{window.name}.overflow": counts.overflow,
        **restated,
        **name_starts(window.name, counts.starts),
    }


def derive_output(closing: Closing, window: Window) -> dict[str, int]:
    """Updates the output of `window` from its complete table.

    Only windows that the run changed or W passed are compared.
    """
    batch = closing.batch
    target = output_table(batch.pipeline, window)
    windows = batch.read_complete(window)
    lows = _find_changed_from(closing, window, windows)
    affected = _select_affected(closing, windows, lows)
    new = _select_shown(closing, window, affected)
    output = outputs.open_output(target)
    old = None
    if not outputs.is_new(batch.spark, output):
        old = _select_affected(closing, outputs.read_output(batch.spark, output), lows)
    return replace_rows(batch, window, output, new, old)


def rederive_output(closing: Closing, window: Window) -> dict[str, int]:
    """Updates the output of `window` from its complete table; all windows are compared."""
    batch = closing.batch
    target = output_table(batch.pipeline, window)
    windows = batch.read_complete(window)
    return replace_output(batch, window, target, _select_shown(closing, window, windows))


def _select_shown(closing: Closing, window: Window, windows: DataFrame) -> DataFrame:
    """The windows that the output shows: windows -> windows + [__overflow].

    Nothing is marked as overflow, because that was counted when the complete table was written.
    """
    if window.shown.emit == ON_CLOSE:
        windows = windows.where(closing.closed(F.col(END)))
        if describe_window(window).closed_by_event:
            windows = windows.where(F.col(CLOSED_BY).isNotNull())
    qualifying = merges.filter_having(windows, window.shown.having)
    return qualifying.withColumn(merges.OVERFLOW, F.lit(False))


def _find_changed_from(closing: Closing, window: Window, windows: DataFrame) -> DataFrame:
    """For each key that the run touched, the time from which its windows may have changed.

    Windows that end at or after it are affected: [keys, __low].
    """
    batch = closing.batch
    keys = list(batch.keys)
    if isinstance(window, Session):
        table = fragments_table(window)
        time = FIRST
    else:
        table = EVENTS
        time = EVENT_TIME
    first_of_key = F.min(_LOW).alias(_LOW)
    of_this_run = windows.where(F.col(RUN) == batch.stamp.run)
    changed = of_this_run.select(*keys, F.col(START).alias(_LOW))
    stored = own_tables.find(batch.spark, batch.pipeline.table(table), own_tables.EVERY_ROW)
    if stored is None:
        return changed.groupBy(*keys).agg(first_of_key)
    events = stored.where(batch.stamp.of_run).select(*keys, F.col(time).alias(_LOW))
    return events.unionByName(changed).groupBy(*keys).agg(first_of_key)


def _select_affected(closing: Closing, windows: DataFrame, lows: DataFrame) -> DataFrame:
    """Windows that the run may have changed, and those that W passed."""
    near = windows.join(lows, list(closing.batch.keys), "left")
    # `__low` is null for keys that the run did not touch.
    may_have_changed = is_true(F.col(END) >= F.col(_LOW))
    return near.where(may_have_changed | closing.since(F.col(END))).drop(_LOW)
