"""One micro-batch, every stage named once.

rows -> admitted -> refused tables, ids, panes and fragments (state) -> windows -> outputs

Each write is one commit and carries the batch in its transaction, so a retried batch repeats
nothing. Outputs are recomputed from state, so a repeated MERGE changes nothing. They are written
when all state is.
"""

from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame

from jobs.microbatch.admission import Admitted, FindFiles, admit_rows, find_no_files
from jobs.microbatch.aligned import PaneBatch, find_joined
from jobs.microbatch.context import RunContext
from jobs.microbatch.ordered import EventBatch, events_of
from jobs.microbatch.outputs import Step
from jobs.microbatch.parallel import run_parallel
from jobs.microbatch.sessions import FragmentBatch
from windowing.admit import table as refused_rows
from windowing.admit.frame import admitted_to
from windowing.crash import crashpoint
from windowing.grid.range import Range
from windowing.ledger.rule import MAX_TIME, MIN_TIME
from windowing.panes import events as buffer
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.rule import SEEN, Family, pane_families
from windowing.spec.kinds import Session
from windowing.storage.pinned_rows import pin_rows

_Contribution = PaneBatch | FragmentBatch | EventBatch


def process_batch(
    batch: RunContext, rows: DataFrame, find_files: FindFiles = find_no_files
) -> dict[str, int]:
    """Carries one micro-batch through every stage; returns its counts by their ledger names.

    Among the counts are the first and last accepted event time, in microseconds.
    """
    admitted = admit_rows(batch, rows, find_files)
    crashpoint("batch.judged")
    counts = dict(admitted.counts)
    if admitted.within is None:
        keep_refused(batch, admitted)
        return counts
    counts |= {MIN_TIME: admitted.within.low_us, MAX_TIME: admitted.within.high_us}
    parts = list_contributions(batch, admitted)
    # Limits are checked before the first write, so that a refused batch has written nothing.
    for checked in run_parallel([part.check for part in parts if isinstance(part, PaneBatch)]):
        counts |= checked
    for changed in run_parallel(_store_and_prepare(batch, admitted, parts)):
        counts |= changed
    return counts


def _store_and_prepare(
    batch: RunContext, admitted: Admitted, parts: list[_Contribution]
) -> list[Step]:
    """Writes refused rows, ids and state, each table in a commit of its own.

    Meanwhile it computes what changes in the outputs; the steps that are returned write it. That
    follows from the batch and the state of other batches (`Stamp.foreign`), so neither waits for
    the other.
    """
    steps: list[Callable[[], list[Step] | None]] = [
        partial(keep_refused, batch, admitted),
        partial(keep_accepted_ids, batch, admitted),
    ]
    steps += [part.store for part in parts]
    steps += [preparation for part in parts for preparation in part.outputs()]
    return [step for prepared in run_parallel(steps) for step in prepared or ()]


def list_contributions(batch: RunContext, admitted: Admitted) -> list[_Contribution]:
    """What the batch adds to each kind of state."""
    pipeline = batch.pipeline
    subjects: list[Family | Session] = [*pane_families(pipeline), *pipeline.sessions]
    steps: list[Callable[[], _Contribution]] = [
        partial(partial_of, batch, admitted, subject) for subject in subjects
    ]
    if pipeline.ordered:
        steps.append(partial(events_of, batch, admitted))
    return run_parallel(steps)


def keep_refused(batch: RunContext, admitted: Admitted) -> None:
    """Stores the refused and the partly late rows."""
    rows = refused_rows.refused_rows(admitted.rows, admitted.schema.names, batch.stamp)
    refused_rows.store_refused(rows, batch.pipeline, admitted.counts, batch.stamp)
    crashpoint("batch.refused")


def keep_accepted_ids(batch: RunContext, admitted: Admitted) -> None:
    """Stores the accepted event ids, if the pipeline has ids."""
    event_id = batch.pipeline.source.event_id
    if event_id is None:
        return
    ids = buffer.select_ids(admitted.accepted, event_id)
    state.store_partials(ids, batch.pipeline, SEEN, batch.stamp, "event_id", admitted.read)
    crashpoint("batch.remembered")


def partial_of(
    batch: RunContext, admitted: Admitted, subject: Family | Session
) -> PaneBatch | FragmentBatch:
    """The batch's accepted events as partial aggregates of one family or one session window.

    They are computed here and not lazily, so that the plans made of them stay small.
    """
    within = admitted.within or Range(0, 0)
    algebras = partials.algebras_of(batch.pipeline, subject.aggregates, admitted.schema)
    kept = partials.parts_of(algebras.values())
    if isinstance(subject, Family):
        panes = partials.aggregate_panes(admitted.accepted, batch.keys, subject, kept, within)
        fresh = pin_rows(panes)
        joined = find_joined(batch, subject, within)
        return PaneBatch(batch, subject, within, algebras, fresh, joined, admitted.read)
    events = admitted_to(admitted.accepted, subject.name)
    fragments = partials.aggregate_fragments(events, batch.keys, subject.gap_us, kept)
    fresh = pin_rows(fragments)
    return FragmentBatch(batch, subject, within, algebras, fresh, admitted.read)
