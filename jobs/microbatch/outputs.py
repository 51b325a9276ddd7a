"""Outputs that show fewer windows than there are, of kinds whose windows are kept complete in a table of their own.

    complete table, changed by the run or passed by W -> windows to show -> output
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.closing import Closing
from jobs.contribution import written
from windowing import delta
from windowing.columns import BATCH, CLOSED_BY, END, EVENT_TIME, FIRST, RUN, START
from windowing.merge import frame as merges
from windowing.merge.rule import complete, output
from windowing.panes import table as state
from windowing.spec.kinds import ON_CLOSE, Counted, Session, Window

_LOW = "__low"


def derive(closing: Closing, window: Window) -> dict[str, int]:
    """Brings the output of `window` up to date with its complete table, where the run changed that or W passed windows."""
    batch = closing.batch
    target, whole = output(batch.pipeline, window), complete(batch.pipeline, window)
    windows = delta.read(batch.spark, whole.path)
    lows = _lows(closing, window, windows)
    new = _shown(closing, window, _affected(closing, windows, lows)).withColumn(merges.OVERFLOW, F.lit(False))
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
    return written(batch, window, target, merges.replacements(new, delta.read(batch.spark, target.path), target))


def _shown(closing: Closing, window: Window, windows: DataFrame) -> DataFrame:
    if window.shown.emit == ON_CLOSE:
        windows = windows.where(closing.closed(F.col(END)))
        windows = windows.where(F.col(CLOSED_BY).isNotNull()) if isinstance(window, Counted) else windows
    return merges.qualifying(windows, window.shown.having)


def _lows(closing: Closing, window: Window, windows: DataFrame) -> DataFrame:
    """For each key that the run touched, from which window end on its windows may have changed: [keys, __low]."""
    batch = closing.batch
    keys, table = list(batch.keys), state.fragments_table(window) if isinstance(window, Session) else state.EVENTS
    changed = windows.where(F.col(RUN) == batch.stamp.run).select(*keys, F.col(START).alias(_LOW))
    if not delta.exists(batch.spark, batch.pipeline.table(table)):
        return changed.groupBy(*keys).agg(F.min(_LOW).alias(_LOW))
    rows = delta.read(batch.spark, batch.pipeline.table(table)).where((F.col(RUN) == batch.stamp.run) & (F.col(BATCH) >= 0))
    events = rows.select(*keys, F.col(FIRST if isinstance(window, Session) else EVENT_TIME).alias(_LOW))
    return events.unionByName(changed).groupBy(*keys).agg(F.min(_LOW).alias(_LOW))


def _affected(closing: Closing, windows: DataFrame, lows: DataFrame) -> DataFrame:
    keys = list(closing.batch.keys)
    near = windows.join(lows, keys, "left")
    return near.where(F.coalesce(F.col(END) >= F.col(_LOW), F.lit(False)) | closing.since(F.col(END))).drop(_LOW)
