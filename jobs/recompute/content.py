"""How much of a chunk has events, panes or windows: the rest need not be recomputed."""

from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import RunContext
from jobs.recompute.plan import CHUNK_US
from jobs.recompute.time_range import TimeRange
from windowing.columns import END, PANE, START, TIME
from windowing.grid.range import Range
from windowing.panes.rule import Family, longest_span
from windowing.spec.kinds import Global
from windowing.storage.few_rows import span_of


def narrow_to_content(
    batch: RunContext, family: Family, chunk: TimeRange, events: DataFrame
) -> TimeRange | None:
    """The chunk without the times before and after everything that a family of panes is about.

    That is its panes, the windows of its outputs and `events`. Each change of a clock and each
    month is a part of a query, so times without content would not be free. A chunk of at most 31
    days, or of the whole history, stays as it is. None where all content lies outside the chunk;
    where there is none at all, one microsecond is left, because tables are created by a rebuild.
    """
    if chunk.is_everything or chunk.end_us - chunk.start_us <= CHUNK_US:
        return chunk
    span = _find_span(batch, family, events)
    if span is None:
        at_us = min(max(0, chunk.start_us), chunk.end_us - 1)
        return replace(chunk, start_us=at_us, end_us=at_us + 1)
    spans = [longest_span(window) for window in family.windows if not isinstance(window, Global)]
    # With `emit: changes` a window depends on the one before it.
    far_us = 2 * max(spans, default=0)
    start_us = max(span.low_us - far_us, chunk.start_us)
    end_us = min(span.high_us + far_us + 1, chunk.end_us)
    return replace(chunk, start_us=start_us, end_us=end_us) if start_us < end_us else None


def _find_span(batch: RunContext, family: Family, events: DataFrame) -> Range | None:
    """The first and the last time of the content; None where there is none."""
    content = [_times(events, F.col(TIME), F.col(TIME))]
    panes = batch.find_rows(family.table)
    if panes is not None:
        pane = F.unix_micros(PANE)
        content.append(_times(panes, pane, pane))
    for window in family.windows:
        # The windows of a global output have no bounds.
        if not isinstance(window, Global):
            stored = batch.read_output(window)
            content.append(_times(stored, F.unix_micros(START), F.unix_micros(END)))
    together = reduce(DataFrame.unionByName, content)
    return span_of(together, F.col("__first"), F.col("__last"))


def _times(rows: DataFrame, first: Column, last: Column) -> DataFrame:
    return rows.select(first.alias("__first"), last.alias("__last"))
