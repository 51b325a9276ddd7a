"""Writes outputs: what differs, and of outputs that show fewer windows than there are, what their complete table says.

complete table, changed by the run or passed by W -> windows to show -> output
"""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import Batch, Closing
from windowing import delta
from windowing.columns import BATCH, CLOSED_BY, END, EVENT_TIME, FIRST, RUN, START
from windowing.merge import frame as merges
from windowing.merge import table as outputs
from windowing.merge.rule import Target, complete, output
from windowing.panes.frame import Range
from windowing.panes.rule import EVENTS, fragments_table, span
from windowing.spec.kinds import ON_CLOSE, Aligned, Counted, Global, Session, Window

Step = Callable[[], dict[str, int]]
_LOW = "__low"


def publishable(
    batch: Batch, window: Aligned | Global, new: DataFrame, within: Range
) -> dict[str, int]:
    """Writes what changed among the windows `new` of an output on a clock; those that do not qualify are not shown."""
    target = output(batch.pipeline, window)
    shown = merges.qualifying(new, window.shown.having)
    if delta.is_new(batch.spark, target.path):
        return written(batch, window, target, merges.inserts(shown, target))
    if isinstance(window, Global):
        stored = delta.read(batch.spark, target.path)
    else:
        stored = outputs.stored(
            batch.spark, target, within.low_us - span(window), within.high_us + span(window)
        )
    if window.shown.having is None:
        return written(batch, window, target, merges.corrections(shown, stored, target))
    same = [F.col(f"s.`{c}`").eqNullSafe(F.col(f"n.`{c}`")) for c in target.identity]
    recomputed = stored.alias("s").join(new.select(*target.identity).alias("n"), same, "left_semi")
    return written(batch, window, target, merges.replacements(shown, recomputed, target))


def written(batch: Batch, window: Window, target: Target, changed: DataFrame) -> dict[str, int]:
    """Writes what changed; counts of the output by the ledger's names, of a table that users do not read its lost sums alone."""
    counts = outputs.write(batch.spark, target, changed, batch.stamp.run)
    if target.path != batch.pipeline.table(window.name):
        return {f"{window.name}.overflow": counts.overflow} if counts.overflow else {}
    named = {
        "inserted": counts.inserted,
        "updated": counts.updated,
        "deleted": counts.deleted,
        "overflow": counts.overflow,
    }
    return {f"{window.name}.{kind}": n for kind, n in named.items()}


def derive(closing: Closing, window: Window) -> dict[str, int]:
    """Brings the output of `window` up to date with its complete table, where the run changed that or W passed windows."""
    batch = closing.batch
    target, whole = output(batch.pipeline, window), complete(batch.pipeline, window)
    windows = delta.read(batch.spark, whole.path)
    lows = _lows(closing, window, windows)
    new = _shown(closing, window, _affected(closing, windows, lows)).withColumn(
        merges.OVERFLOW, F.lit(False)
    )
    if delta.is_new(batch.spark, target.path):
        return written(batch, window, target, merges.inserts(new, target))
    old = _affected(closing, delta.read(batch.spark, target.path), lows)
    return written(batch, window, target, merges.replacements(new, old, target))


def rederive(closing: Closing, window: Window) -> dict[str, int]:
    """The whole output of `window`, compared with its complete table."""
    batch = closing.batch
    target = output(batch.pipeline, window)
    windows = delta.read(batch.spark, complete(batch.pipeline, window).path)
    new = _shown(closing, window, windows).withColumn(merges.OVERFLOW, F.lit(False))
    return written(
        batch,
        window,
        target,
        merges.replacements(new, delta.read(batch.spark, target.path), target),
    )


def _shown(closing: Closing, window: Window, windows: DataFrame) -> DataFrame:
    if window.shown.emit == ON_CLOSE:
        windows = windows.where(closing.closed(F.col(END)))
        windows = (
            windows.where(F.col(CLOSED_BY).isNotNull()) if isinstance(window, Counted) else windows
        )
    return merges.qualifying(windows, window.shown.having)


def _lows(closing: Closing, window: Window, windows: DataFrame) -> DataFrame:
    """For each key that the run touched, from which window end on its windows may have changed: [keys, __low]."""
    batch = closing.batch
    keys, table = (
        list(batch.keys),
        fragments_table(window) if isinstance(window, Session) else EVENTS,
    )
    changed = windows.where(F.col(RUN) == batch.stamp.run).select(*keys, F.col(START).alias(_LOW))
    if not delta.exists(batch.spark, batch.pipeline.table(table)):
        return changed.groupBy(*keys).agg(F.min(_LOW).alias(_LOW))
    rows = delta.read(batch.spark, batch.pipeline.table(table)).where(
        (F.col(RUN) == batch.stamp.run) & (F.col(BATCH) >= 0)
    )
    events = rows.select(
        *keys, F.col(FIRST if isinstance(window, Session) else EVENT_TIME).alias(_LOW)
    )
    return events.unionByName(changed).groupBy(*keys).agg(F.min(_LOW).alias(_LOW))


def _affected(closing: Closing, windows: DataFrame, lows: DataFrame) -> DataFrame:
    keys = list(closing.batch.keys)
    near = windows.join(lows, keys, "left")
    return near.where(
        F.coalesce(F.col(END) >= F.col(_LOW), F.lit(False)) | closing.since(F.col(END))
    ).drop(_LOW)
