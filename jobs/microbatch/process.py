"""One micro-batch, every stage named once: rows -> admitted -> refused tables, ids, panes and fragments (state) -> windows -> outputs.

Each write is one commit and carries the batch in its transaction, so a replayed batch repeats nothing; outputs are recomputed from
state, so a repeated MERGE changes nothing.
"""

from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.admission import Admitted, admit
from jobs.microbatch.aligned import Panes
from jobs.microbatch.context import Batch
from jobs.microbatch.ordered import Events, events_of
from jobs.microbatch.parallel import together
from jobs.microbatch.sessions import Fragments
from windowing.admit import table as refused_rows
from windowing.admit.frame import admitted_to
from windowing.columns import DIGEST
from windowing.columns import T as TIME
from windowing.crash import crashpoint
from windowing.ledger.rule import MAX_TIME, MIN_TIME
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.frame import Range
from windowing.panes.rule import SEEN, Family, families
from windowing.spec.kinds import Session


def process(batch: Batch, rows: DataFrame) -> dict[str, int]:
    """Carries one micro-batch through every stage; returns its counts, among them its first and last event time in microseconds."""
    admitted = admit(batch, rows)
    crashpoint("batch.judged")
    counts = dict(admitted.counts)
    if admitted.within is None:
        refuse(batch, admitted)
    else:
        counts |= {MIN_TIME: admitted.within.low_us, MAX_TIME: admitted.within.high_us}
        parts = contributions(batch, admitted)
        for checked in together([p.check for p in parts]):
            counts |= checked
        together(
            [
                lambda: refuse(batch, admitted),
                lambda: remember(batch, admitted),
                *(p.store for p in parts),
            ]
        )
        for changed in together([output for part in parts for output in part.outputs()]):
            counts |= changed
    return counts


def contributions(batch: Batch, admitted: Admitted) -> list[Panes | Fragments | Events]:
    """What the batch brings to each kind of state."""
    subjects: list[Family | Session] = [*families(batch.pipeline), *batch.pipeline.sessions]
    steps: list[Callable[[], Panes | Fragments | Events]] = [
        partial(partial_of, batch, admitted, subject) for subject in subjects
    ]
    return together(
        [*steps, partial(events_of, batch, admitted)] if batch.pipeline.ordered else steps
    )


def refuse(batch: Batch, admitted: Admitted) -> None:
    """Keeps the refused and the partly late rows."""
    rows = refused_rows.refused(admitted.rows, admitted.columns, batch.stamp)
    refused_rows.store(rows, batch.pipeline, admitted.counts, batch.stamp)
    crashpoint("batch.refused")


def remember(batch: Batch, admitted: Admitted) -> None:
    """Keeps the ids that were accepted."""
    event_id = batch.pipeline.source.event_id
    if event_id is not None:
        ids = admitted.accepted.where(F.col(f"`{event_id}`").isNotNull())
        kept = ids.select(
            F.col(f"`{event_id}`").cast("string").alias("event_id"),
            F.timestamp_micros(TIME).alias("event_time"),
            DIGEST,
        )
        state.store(
            kept.withColumnRenamed(DIGEST, "digest"), batch.pipeline, SEEN, batch.stamp, "event_id"
        )
        crashpoint("batch.remembered")


def partial_of(batch: Batch, admitted: Admitted, subject: Family | Session) -> Panes | Fragments:
    """The batch's accepted events as partials of one family or one session window; computed here, so that plans made of them stay small."""
    within = admitted.within or Range(0, 0)
    algebras = partials.algebras(batch.pipeline, subject.aggregates, admitted.schema)
    kept = partials.parts(algebras.values())
    if isinstance(subject, Family):
        panes = partials.panes(admitted.accepted, batch.keys, subject, kept, within)
        return Panes(batch, subject, within, algebras, panes.localCheckpoint(eager=True))
    events = admitted_to(admitted.accepted, subject.name)
    fragments = partials.fragments(events, batch.keys, subject.gap_us, kept)
    return Fragments(batch, subject, within, algebras, fragments.localCheckpoint(eager=True))
