"""How many events of a range are accepted, before it is rebuilt and after, for the ledger."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.law import law_of
from jobs.microbatch.context import RunContext
from jobs.recompute.time_range import TimeRange, widen_to_panes
from windowing.admit.again import INSIDE, LIVE
from windowing.admit.outcomes import PARTIAL
from windowing.columns import PANE, ROWS
from windowing.grid.frame import between
from windowing.ledger.rule import LedgerExcerpt
from windowing.panes.rule import EVENTS, fragments_table, pane_families
from windowing.rows import column_named
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline

_BEFORE, _BY_OUTPUT, _BY_EVENTS = "before", "by_output", "by_events"
"""Counts of a chunk's intent: how many events were accepted before, and what they were counted by.

Without one of the last two they were counted in the state.
"""


def count_accepted_before(
    batch: RunContext, past: LedgerExcerpt, chunk: TimeRange, events: DataFrame
) -> Mapping[str, int]:
    """How many of the events that the chunk is compared by were accepted before, as ledger counts.

    They are counted in the state. Where that may have expired, they are those of an output that
    counts all accepted events; without such an output they are the accepted ones among `events`.
    """
    if not batch.state_may_be_expired:
        return {_BEFORE: count_accepted_in(batch, chunk)}
    shown_in = find_count_of_all(batch.pipeline, past)
    if shown_in is not None:
        return {_BEFORE: count_accepted_by(batch, shown_in), _BY_OUTPUT: 1}
    # Rows that the source has rewritten do not show what was accepted before. Of such a chunk the
    # state is counted where any is left.
    is_rewritten = chunk.batch is not None
    in_state = count_accepted_in(batch, chunk) if is_rewritten else 0
    if in_state:
        return {_BEFORE: in_state}
    live = events.where(F.col(INSIDE) & F.col(LIVE))
    if past.was_erased_from:
        live = _only_shown_keys(batch, live)
    return {_BEFORE: live.count(), _BY_EVENTS: 1}


def count_accepted_since(
    batch: RunContext,
    past: LedgerExcerpt,
    chunk: TimeRange,
    events: DataFrame,
    before: Mapping[str, int],
) -> int:
    """How many more events than `before` are accepted once the chunk is rebuilt."""
    earlier = before.get(_BEFORE, 0)
    if _BY_EVENTS in before:
        return events.where(INSIDE).count() - earlier
    # `retention.output` may have changed since the intent, but no maintenance can have come since.
    shown_in = _find_count(batch.pipeline, past) if _BY_OUTPUT in before else None
    if shown_in is not None:
        return count_accepted_by(batch, shown_in) - earlier
    return count_accepted_in(batch, chunk) - earlier


def _only_shown_keys(batch: RunContext, events: DataFrame) -> DataFrame:
    """The events without those of keys that no output shows, because they were erased."""
    windows = batch.pipeline.windows
    outputs = [batch.read_output(window).select(*batch.keys) for window in windows]
    shown_keys = reduce(DataFrame.unionByName, outputs).distinct()
    return events.join(shown_keys, list(batch.keys), "left_semi")


@dataclass(frozen=True)
class CountOfAll:
    """An output and its column that adds up to the accepted events, as far as they count there."""

    window: Window
    column: str


def find_count_of_all(pipeline: Pipeline, past: LedgerExcerpt) -> CountOfAll | None:
    """An output that adds up to the accepted events; None where there is none, or rows expire."""
    return None if pipeline.retention.output_us is not None else _find_count(pipeline, past)


def _find_count(pipeline: Pipeline, past: LedgerExcerpt) -> CountOfAll | None:
    """The same, as long as the next maintenance lets no rows expire."""
    for window in pipeline.windows:
        totals = law_of(window, pipeline.source.key).totals
        if totals and not past.rows_may_be_expired(window.name):
            return CountOfAll(window, totals[0])
    return None


def count_accepted_by(batch: RunContext, shown_in: CountOfAll) -> int:
    """How many events are accepted, as that output says and the late rows that it misses."""
    window = shown_in.window
    shown = _add_up(batch.read_output(window), shown_in.column)
    return shown + count_partly_late(batch).get(window.name, 0)


def count_accepted_in(batch: RunContext, chunk: TimeRange) -> int:
    """How many events of the chunk the state contains.

    With panes, of the chunk widened to whole panes. Where the only state is of sessions, of all
    times, because a fragment can't be cut.
    """
    # Every family has every event, so one of them is enough.
    for finest in pane_families(batch.pipeline)[:1]:
        panes = batch.find_rows(finest.table)
        wide = widen_to_panes(finest, chunk)
        if panes is None:
            return 0
        return _add_up(between(panes, PANE, wide.start_us, wide.end_us), ROWS)
    if batch.pipeline.ordered:
        events = batch.find_rows(EVENTS)
        if events is None:
            return 0
        return between(events, "event_time", chunk.start_us, chunk.end_us).count()
    return count_accepted(batch)


def count_accepted(batch: RunContext) -> int:
    """How many events the state contains, by the first state table that exists.

    Fragments lack the events that were late for their session window, so those are added.
    """
    for family in pane_families(batch.pipeline)[:1]:
        panes = batch.find_rows(family.table)
        if panes is not None:
            return _add_up(panes, ROWS)
    for window in batch.pipeline.sessions[:1]:
        fragments = batch.find_rows(fragments_table(window))
        if fragments is not None:
            return _add_up(fragments, ROWS) + count_partly_late(batch).get(window.name, 0)
    events = batch.find_rows(EVENTS)
    return 0 if events is None else events.count()


def _add_up(rows: DataFrame, column: str) -> int:
    """The sum of a column of counts, such as that of the events of panes and fragments."""
    total = F.coalesce(F.sum(column_named(column)), F.lit(0))
    return int(rows.agg(total).collect()[0][0])


def count_partly_late_in(batch: RunContext, chunk: TimeRange) -> dict[str, int]:
    """How many events of the chunk each window missed, as negative ledger counts.

    They are negative because the backfill accepts those events, so the ledger counts them back.
    """
    found = count_partly_late(
        batch, lambda late: between(late, "event_time", chunk.start_us, chunk.end_us)
    )
    return {f"partial.{name}": -n for name, n in found.items()}


def count_partly_late(
    batch: RunContext, of: Callable[[DataFrame], DataFrame] = lambda late: late
) -> dict[str, int]:
    """By window, how many partly late events missed it and are not resolved.

    Among the rows of `_late` that `of` returns.
    """
    late = batch.find_rows("_late")
    if late is None:
        return {}
    is_partial = F.col("outcome") == PARTIAL
    open_rows = of(late).where(is_partial & F.col("resolved_by").isNull())
    missed = open_rows.select(F.explode("missed.window").alias("window"))
    counts = missed.groupBy("window").count().collect()
    return {str(row["window"]): int(row["count"]) for row in counts}
