"""What one micro-batch brings to windows that depend on the order of events: the events themselves, and the windows they change.

fresh events -> region of each key, from the last boundary before its first fresh event -> its events -> windows -> complete table
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.microbatch.admission import Admitted
from jobs.microbatch.context import Batch
from jobs.microbatch.outputs import Step, written
from windowing import delta
from windowing.aggregates.algebra import Algebra
from windowing.columns import T as TIME
from windowing.merge import frame as merges
from windowing.merge.rule import bounds, complete
from windowing.panes import events as buffer
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.frame import Range
from windowing.panes.rule import EVENTS
from windowing.spec.kinds import Ordered, RecordSliding
from windowing.windows import ordered, record, region


@dataclass(frozen=True)
class Events:
    """The events a batch brings, and the windows they change."""

    batch: Batch
    within: Range
    schema: T.StructType
    fresh: DataFrame

    def check(self) -> dict[str, int]:
        """Nothing can be too much."""
        return {}

    def store(self) -> None:
        """Appends the events to state."""
        state.store(self.fresh, self.batch.pipeline, EVENTS, self.batch.stamp, "event_time")

    def outputs(self) -> list[Step]:
        """One step for each window."""
        return [partial(self._output, window) for window in self.batch.pipeline.ordered]

    def _output(self, window: Ordered) -> dict[str, int]:
        batch = self.batch
        new = buffer.admitted(
            buffer.events(batch.stamp.on(self.fresh), batch.pipeline), window, _lateness(batch)
        )
        reached = new.groupBy(*batch.keys).agg(F.min(TIME).alias("__t0"), F.max(TIME).alias("__t1"))
        before = state.events_before(batch.spark, batch.pipeline, batch.stamp)
        return recomputed(batch, window, reached, before, self.fresh, self.schema)


def events_of(batch: Batch, admitted: Admitted) -> Events:
    """The batch's accepted events."""
    fresh = buffer.stored(admitted.accepted, batch.pipeline).localCheckpoint(eager=True)
    return Events(batch, admitted.within or Range(0, 0), admitted.schema, fresh)


def recomputed(
    batch: Batch,
    window: Ordered,
    reached: DataFrame,
    before: DataFrame | None,
    fresh: DataFrame | None,
    schema: T.StructType,
) -> dict[str, int]:
    """Recomputes the windows that change when events between __t0 and __t1 of the keys in `reached` do, and writes what differs."""
    target, keys = complete(batch.pipeline, window), batch.keys
    stored = (
        None if delta.is_new(batch.spark, target.path) else delta.read(batch.spark, target.path)
    )
    regions = region.regions(reached, stored, window, keys).localCheckpoint(eager=True)
    kept = None if fresh is None else batch.stamp.on(fresh)
    if before is not None:
        near = buffer.near(before, regions, keys)
        kept = near if kept is None else kept.unionByName(near.select(*kept.columns))
    if kept is None:
        return {}
    found = buffer.admitted(buffer.events(kept, batch.pipeline), window, _lateness(batch)).join(
        regions, [*keys]
    )
    found = found.where((F.col(TIME) >= F.col("__low")) & (F.col(TIME) < F.col("__high")))
    algebras = partials.algebras(batch.pipeline, window.aggregates, schema)
    new = region.inside(_windows(batch, window, found, algebras), regions, keys)
    closing = [c for c in target.shown if c == "closed_by"]
    valued = merges.values(new, [*keys, *bounds(window), *closing], window.aggregates, algebras)
    if stored is None:
        return written(batch, window, target, merges.inserts(valued, target))
    return written(
        batch,
        window,
        target,
        merges.replacements(valued, region.inside(stored, regions, keys), target),
    )


def _windows(
    batch: Batch, window: Ordered, found: DataFrame, algebras: Mapping[str, Algebra]
) -> DataFrame:
    kept = partials.parts(algebras.values())
    if isinstance(window, RecordSliding):
        return record.windows(found, window, batch.keys, kept, _lateness(batch))
    return ordered.windows(found, window, batch.keys, kept)


def _lateness(batch: Batch) -> int | None:
    return batch.pipeline.watermark.allowed_lateness_us
