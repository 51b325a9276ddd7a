"""The events that a micro-batch adds for order-dependent windows, and the windows they change.

fresh events -> region of each key, from the last boundary before its first fresh event
-> events of the region -> windows -> complete table
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.microbatch.admission import Admitted
from jobs.microbatch.context import RunContext
from jobs.microbatch.outputs import Preparation, Step, prepare_replaced
from windowing.aggregates.algebra import Algebra
from windowing.columns import BASE, TIME
from windowing.merge import frame as merges
from windowing.merge import table as outputs
from windowing.merge.rule import complete_table, window_columns
from windowing.panes import events as buffer
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.rule import EVENTS
from windowing.spec.kinds import OrderDependent, RecordSliding
from windowing.storage.pinned_rows import pin_rows
from windowing.windows.ordered import cut_windows
from windowing.windows.record import make_record_windows
from windowing.windows.region import find_regions, windows_in_regions


@dataclass(frozen=True)
class EventBatch:
    """The events that a batch adds to the event buffer, and the windows they change.

    There are at `most` so many fresh ones.
    """

    batch: RunContext
    schema: T.StructType
    fresh: DataFrame
    most: int

    def store(self) -> None:
        """Appends the events to state."""
        batch = self.batch
        state.store_partials(
            self.fresh, batch.pipeline, EVENTS, batch.stamp, "event_time", self.most
        )

    def outputs(self) -> list[Preparation]:
        """One for each window."""
        return [partial(self._prepare_outputs, window) for window in self.batch.pipeline.ordered]

    def _prepare_outputs(self, window: OrderDependent) -> list[Step]:
        batch = self.batch
        new = _select_admitted(batch, window, batch.stamp.on(self.fresh))
        ends = [F.min(TIME).alias("__t0"), F.max(TIME).alias("__t1")]
        reached = new.groupBy(*batch.keys).agg(*ends)
        before = state.panes_of(batch.spark, batch.pipeline, EVENTS, batch.stamp)
        return [prepare_keys(batch, window, reached, before, self.fresh, self.schema)]


def events_of(batch: RunContext, admitted: Admitted) -> EventBatch:
    """The batch's accepted events, reduced to the columns of the event buffer."""
    fresh = pin_rows(buffer.buffer_events(admitted.accepted, batch.pipeline))
    return EventBatch(batch, admitted.schema, fresh, admitted.read)


def prepare_keys(
    batch: RunContext,
    window: OrderDependent,
    reached: DataFrame,
    before: DataFrame | None,
    fresh: DataFrame | None,
    schema: T.StructType,
) -> Step:
    """Recomputes the windows that events in `reached` may change; returns what writes them.

    `reached` has for each key the first and the last time of these events, [keys, __t0, __t1], both
    inclusive. `before` are stored events, `fresh` those of this batch; None where there are none.
    Rows that do not differ from those stored are not written.
    """
    keys = batch.keys
    target = complete_table(batch.pipeline, window)
    output = outputs.open_output(target)
    stored = None
    if not outputs.is_new(batch.spark, output):
        stored = outputs.read_output(batch.spark, output)
    regions = pin_rows(find_regions(reached, stored, window, keys))
    events = _join_events(batch, before, fresh, regions)
    if events is None:
        return _write_nothing
    found = _select_admitted(batch, window, events).join(regions, [*keys])
    in_region = (F.col(TIME) >= F.col("__low")) & (F.col(TIME) < F.col("__high"))
    algebras = partials.algebras_of(batch.pipeline, window.aggregates, schema)
    windows = _compute_windows(batch, window, found.where(in_region), algebras)
    new = windows_in_regions(windows, regions, keys)
    closed_by = [c for c in target.shown if c == "closed_by"]
    columns = (*window_columns(window, keys), *closed_by)
    valued = merges.lower_partials(new, columns, algebras)
    old = None if stored is None else windows_in_regions(stored, regions, keys)
    return prepare_replaced(batch, window, output, valued, old)


def compute_windows_of_events(
    batch: RunContext, window: OrderDependent, stored: DataFrame, algebras: Mapping[str, Algebra]
) -> DataFrame:
    """Every window of all `stored` events of the buffer: [keys, bounds, parts]."""
    events = _select_admitted(batch, window, stored)
    from_the_first = events.withColumn(BASE, F.lit(0).cast("bigint"))
    return _compute_windows(batch, window, from_the_first, algebras)


def _write_nothing() -> dict[str, int]:
    return {}


def _join_events(
    batch: RunContext, before: DataFrame | None, fresh: DataFrame | None, regions: DataFrame
) -> DataFrame | None:
    """The fresh events, and the stored ones that `regions` need; None where there are neither."""
    stamped = None if fresh is None else batch.stamp.on(fresh)
    if before is None:
        return stamped
    near = buffer.events_in_regions(before, regions, batch.keys)
    if stamped is None:
        return near
    return stamped.unionByName(near.select(*stamped.columns))


def _select_admitted(batch: RunContext, window: OrderDependent, stored: DataFrame) -> DataFrame:
    """The events of rows of the event buffer that were not late for `window`."""
    events = buffer.unbuffer_events(stored, batch.pipeline)
    return buffer.events_of_window(events, window, batch.pipeline.watermark.allowed_lateness_us)


def _compute_windows(
    batch: RunContext, window: OrderDependent, events: DataFrame, algebras: Mapping[str, Algebra]
) -> DataFrame:
    kept = partials.parts_of(algebras.values())
    if isinstance(window, RecordSliding):
        lateness = batch.pipeline.watermark.allowed_lateness_us
        return make_record_windows(events, window, batch.keys, kept, lateness)
    return cut_windows(events, window, batch.keys, kept)
