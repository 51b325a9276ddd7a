"""Rebuilds sessions of a chunk, or of all events: swaps fragments, recomputes what they touch."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import RunContext
from jobs.microbatch.outputs import replace_output, replace_rows
from jobs.recompute.swap import replace_range, swap_fragments
from jobs.recompute.time_range import TimeRange, near_sessions
from windowing.admit.again import INSIDE
from windowing.aggregates.algebra import Algebra
from windowing.columns import FIRST, LAST, MISSED, START, TIME
from windowing.grid.frame import instant
from windowing.merge import frame as merges
from windowing.merge import table as outputs
from windowing.merge.rule import complete_table, window_columns
from windowing.merge.table import Output
from windowing.panes import frame as partials
from windowing.panes.rule import fragments_table
from windowing.rows import are_equal, is_true
from windowing.source import table as source
from windowing.spec.kinds import Session
from windowing.storage.pinned_rows import pin_rows
from windowing.windows import session
from windowing.windows.merging import mark_touched


def rebuild_sessions(
    batch: RunContext, window: Session, chunk: TimeRange, events: DataFrame
) -> dict[str, int]:
    """Swaps the fragments of every session that has an event time in the chunk.

    Recomputes the sessions that the old and the new fragments touch, and corrects the complete
    table. Returns the counts of the output.
    """
    algebras = _load_algebras(batch, window, chunk)
    target = complete_table(batch.pipeline, window)
    kept = partials.parts_of(algebras.values())
    # Each frame is computed before the fragments are swapped, because it reads what the swap and
    # the correction of the table replace.
    spans = pin_rows(near_sessions(batch, window, chunk))
    members = _select_events_of_sessions(events, spans, window, batch.keys)
    fresh = partials.aggregate_fragments(members, batch.keys, window.gap_us, kept)
    fresh = pin_rows(fresh)
    earlier = batch.read_complete_before(window)
    touched = session.sessions_touched(earlier, fresh, batch.keys, window.gap_us)
    beyond_chunk = touched.join(spans, [*batch.keys, START], "left_anti")
    beyond_chunk = pin_rows(beyond_chunk)
    fragments = _read_fragments(batch, window, fresh)
    others = session.fragments_of_sessions(fragments, beyond_chunk, batch.keys)
    others = pin_rows(others.select(*fresh.columns))
    replaced_fragments = _select_replaced_fragments(batch, fragments, spans, chunk)
    swap_fragments(batch, window, replaced_fragments, fresh)
    new = _compute_sessions(fresh.unionByName(others), batch, window, algebras)
    old = spans.unionByName(beyond_chunk.select(*spans.columns))
    output = outputs.open_output(target)
    if batch.versions_before is not None:
        new = pin_rows(new)
        old = _read_as_now(batch, output, old, new)
    return replace_rows(batch, window, output, new, old)


def _read_as_now(batch: RunContext, output: Output, old: DataFrame, new: DataFrame) -> DataFrame:
    """What an interrupted attempt has left of the rows `old` and has written of the rows `new`."""
    identity = [*output.target.identity]
    either = old.select(*identity).unionByName(new.select(*identity)).distinct()
    return outputs.read_output(batch.spark, output).join(either, identity, "left_semi")


def rebuild_all_sessions(
    batch: RunContext, window: Session, whole: TimeRange, events: DataFrame
) -> dict[str, int]:
    """Overwrites the fragments of `window` and corrects its complete table.

    Returns the counts of the output.
    """
    algebras = _load_algebras(batch, window, whole)
    target = complete_table(batch.pipeline, window)
    kept = partials.parts_of(algebras.values())
    members = events.where(~_is_missed_by(window))
    fresh = partials.aggregate_fragments(members, batch.keys, window.gap_us, kept)
    fresh = pin_rows(fresh)
    replace_range(batch, fragments_table(window), batch.stamp.on(fresh), "first_event", whole)
    return replace_output(batch, window, target, _compute_sessions(fresh, batch, window, algebras))


def _load_algebras(batch: RunContext, window: Session, chunk: TimeRange) -> dict[str, Algebra]:
    """The algebras of the window's aggregates, for the source at the chunk's version."""
    schema = source.read(batch.spark, batch.pipeline, chunk.version).schema
    return partials.algebras_of(batch.pipeline, window.aggregates, schema)


def _select_events_of_sessions(
    events: DataFrame, spans: DataFrame, window: Session, keys: Sequence[str]
) -> DataFrame:
    """The events of the chunk, and those of the sessions that it reaches into.

    Outside the chunk only those that were admitted to `window`.
    """
    low = F.unix_micros(START).alias("__low")
    high = F.unix_micros(LAST).alias("__high")
    ranges = spans.select(*keys, low, high)
    same_key = are_equal("e", "s", keys)
    near = F.col(TIME).between(F.col("__low"), F.col("__high"))
    outside = events.where(~F.col(INSIDE) & ~_is_missed_by(window))
    reached = outside.alias("e").join(ranges.alias("s"), [*same_key, near], "left_semi")
    return events.where(INSIDE).unionByName(reached)


def _is_missed_by(window: Session) -> Column:
    """True for events that were late for `window`."""
    return is_true(F.array_contains(MISSED, window.name))


def _read_fragments(batch: RunContext, window: Session, fresh: DataFrame) -> DataFrame:
    """The stored fragments of `window`; none, with the columns of `fresh`, if there is no table."""
    stored = batch.find_rows(fragments_table(window))
    return batch.stamp.on(fresh).limit(0) if stored is None else stored


def _select_replaced_fragments(
    batch: RunContext, fragments: DataFrame, spans: DataFrame, chunk: TimeRange
) -> DataFrame:
    """The fragments that the chunk's new ones replace.

    Those of `spans`, and those that an interrupted attempt has written into the chunk.
    """
    begins_before = F.col(FIRST) < instant(chunk.end_us)
    ends_after = F.col(LAST) >= instant(chunk.start_us)
    of_spans = session.fragments_of_sessions(fragments, spans, batch.keys)
    return of_spans.unionByName(fragments.where(begins_before & ends_after)).distinct()


def _compute_sessions(
    fragments: DataFrame, batch: RunContext, window: Session, algebras: dict[str, Algebra]
) -> DataFrame:
    """The sessions of `fragments` with their values: [keys, bounds, aggregates, overflow]."""
    kept = partials.parts_of(algebras.values())
    found = session.merge_sessions(mark_touched(fragments), batch.keys, window.gap_us, kept)
    return merges.lower_partials(found, window_columns(window, batch.keys), algebras)
