"""How many accepted events an erasure takes away, for the ledger, also where it is interrupted."""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.foreign_errors.source_errors import source_errors_explained
from jobs.microbatch.context import RunContext
from jobs.recompute.accepted import all_accepted_rows
from jobs.recompute.totals import (
    count_accepted,
    count_accepted_by,
    count_partly_late,
    find_count_of_all,
)
from windowing.admit.erased import only_erased
from windowing.columns import END, MISSED, START, TIME
from windowing.ledger.erased import Erasures, read_erased
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import LedgerEntry
from windowing.rows import are_equal, is_true
from windowing.spec.description import describe_window

_DELETED = "erased"
"""The count of an intent: how many accepted events of the key are erased.

It is there only where neither state nor an output can tell how many are left.
"""


def count_events_of_key(batch: RunContext, past: LedgerHistory, of_key: Erasures) -> dict[str, int]:
    """The count of the intent that erases a key, where it is needed."""
    if not batch.state_may_be_expired or find_count_of_all(batch.pipeline, past) is not None:
        return {}
    return {_DELETED: _count_accepted(batch, past, of_key)}


def count_all_erased(
    begun: tuple[LedgerEntry, ...], new: Erasures, counts: Mapping[str, int]
) -> int:
    """How many events are being erased by the intents that were `begun`, and by a new one.

    `counts` are those of the new one. An interrupted erase of the same key, or of one that is not
    recorded, may have deleted what it has counted, and what is counted now may be the rest of that.
    """
    own, others = counts.get(_DELETED, 0), 0
    for intent in begun:
        erasure, counted = read_erased(intent.note), intent.counts.get(_DELETED, 0)
        if erasure is None or erasure in new.found:
            own = max(own, counted)
        else:
            others += counted
    return own + others


def count_changes(batch: RunContext, past: LedgerHistory, erased_events: int) -> dict[str, int]:
    """By how much the totals of the ledger have to change to be those of what is left.

    What is left is counted, because an interrupted erase may have been of another key. Only where
    nothing counts it, it is what was there without the `erased_events`.
    """
    partial = {window.name: 0 for window in batch.pipeline.windows} | count_partly_late(batch)
    changes = {f"partial.{name}": n - past.total(f"partial.{name}") for name, n in partial.items()}
    shown_in = find_count_of_all(batch.pipeline, past)
    if not batch.state_may_be_expired:
        changes["accepted"] = count_accepted(batch) - past.total("accepted")
    elif shown_in is not None:
        changes["accepted"] = count_accepted_by(batch, shown_in) - past.total("accepted")
    else:
        changes["accepted"] = -erased_events
    return changes


def _count_accepted(batch: RunContext, past: LedgerHistory, of_key: Erasures) -> int:
    """How many events of the key were accepted, as the source says; 0 if no output contains it."""
    if past.read_version is None:
        return 0
    outputs = [batch.read_output(w) for w in batch.pipeline.windows]
    if all(only_erased(rows, batch.keys, of_key).isEmpty() for rows in outputs):
        return 0
    # Rows with values that were erased are counted no more.
    of_values = past.erasures.select(past.erasures.columns)
    with source_errors_explained(batch.spark, batch.pipeline, past):
        events = all_accepted_rows(replace(batch, erased=of_values), past.read_version)
        return _without_erased_before(batch, past, only_erased(events, batch.keys, of_key)).count()


def _without_erased_before(batch: RunContext, past: LedgerHistory, events: DataFrame) -> DataFrame:
    """The events without those that an earlier erase of the same key has removed.

    The source still has them. An output with all tumbling windows shows which events were accepted
    since: those whose window is there, or that were late for it. Without such an output all events
    are returned.
    """
    pipeline = batch.pipeline
    witnesses = [
        w
        for w in pipeline.windows
        if describe_window(w).divides_time
        and w.shown.whole
        and w.shown.empty_limit is None
        and not past.rows_may_be_expired(w.name)
    ]
    # Rows of an output that expires are missing for that reason, too.
    if not witnesses or pipeline.retention.output_us is not None:
        return events
    witness = witnesses[0]
    windows = batch.read_output(witness).select(*batch.keys, START, END)
    at = F.timestamp_micros(F.col(TIME))
    missed = is_true(F.array_contains(MISSED, witness.name))
    same = are_equal("e", "w", batch.keys)
    inside = (at >= F.col(f"w.{START}")) & (at < F.col(f"w.{END}"))
    return events.alias("e").join(windows.alias("w"), [*same, missed | inside], "left_semi")
