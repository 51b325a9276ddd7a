"""Selects the accepted rows of the source, in a range or in the whole history.

What live runs decided is followed as far as the tables of the pipeline record it.
"""

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from jobs.microbatch.admission import add_event_time
from jobs.microbatch.context import RunContext
from jobs.recompute.refused import partly_late, refused_digests
from jobs.recompute.time_range import TimeRange
from windowing.admit.again import INSIDE, LIVE, accepted_again, with_history
from windowing.admit.digest import with_row_digest
from windowing.admit.erased import only_erased, without_erased
from windowing.admit.frame import copies_order
from windowing.columns import DIGEST, TIME, WHY
from windowing.grid.frame import instant
from windowing.panes.rule import SEEN
from windowing.rows import column_named
from windowing.source import table as source


def all_accepted_rows(batch: RunContext, version: int) -> DataFrame:
    """Every accepted row of the source.

    `why` is null unless the spec would refuse the row now.

    -> source rows + [t, why, digest, inside, live, missed, judged_by]
    """
    timed = _read_rows(batch, version)
    if batch.erased.any_lifted or batch.source_may_change:
        # No invalid row was ever accepted. Of what was erased, and of rows that the source has
        # changed, nothing says that they were refused.
        timed = timed.where(F.col(WHY).isNull())
    history = with_history(timed, refused_digests(batch), partly_late(batch))
    return only_accepted(batch, history.where(LIVE)).withColumn(INSIDE, F.lit(True))


def source_rows_near(batch: RunContext, chunk: TimeRange, read: TimeRange) -> DataFrame:
    """Every row that can be accepted, with an event time of `read`, which contains the chunk.

    -> source rows + [t, why (null), digest, inside]
    """
    timed = _read_rows(batch, chunk.version)
    is_valid = F.col(WHY).isNull()
    return timed.where(is_valid & read.holds()).withColumn(INSIDE, chunk.holds())


def _read_rows(batch: RunContext, version: int) -> DataFrame:
    """Every row of the source but those of erased keys and values.

    -> source rows + [digest, t, why]
    """
    rows = read_digested(batch, version)
    return add_event_time(batch, without_erased(rows, batch.keys, batch.erased))


def read_digested(batch: RunContext, version: int | None) -> DataFrame:
    """Every row of the source at a version, or at its newest one. -> source rows + [digest]."""
    rows = source.read(batch.spark, batch.pipeline, version)
    earlier = source.earlier_types(batch.spark, batch.pipeline)
    return with_row_digest(rows, earlier, batch.pipeline.source.part_names)


def count_erased_rows(batch: RunContext, chunk: TimeRange) -> int:
    """How many rows of erased keys and values the source has with an event time of the chunk."""
    if not batch.erased.found:
        return 0
    rows = source.read(batch.spark, batch.pipeline, chunk.version)
    erased = only_erased(rows, batch.keys, batch.erased)
    return add_event_time(batch, erased).where(chunk.holds()).count()


def accepted_rows(
    batch: RunContext, chunk: TimeRange, rows: DataFrame, disputed: Sequence[tuple[int, int]] = ()
) -> DataFrame:
    """The accepted events of the chunk, and of the panes and sessions that reach beyond it.

    They are chosen from `rows`, the source rows near the chunk. An id that was accepted in a
    `disputed` range [from, to), in microseconds, makes no row a duplicate, because the source has
    changed that range and may not contain the id there any more.

    -> source rows + [t, digest, inside, live, missed, judged_by]
    """
    history = with_history(rows, refused_digests(batch), partly_late(batch))
    history = without_duplicates(batch, history)
    ids_elsewhere = ids_outside(batch, [(chunk.start_us, chunk.end_us), *disputed])
    events = accepted_again(
        history, ids_elsewhere, batch.pipeline, source_may_change=batch.source_may_change
    )
    inside = events.where(INSIDE)
    outside = only_accepted(batch, events.where(~F.col(INSIDE)))
    return inside.unionByName(outside)


def only_accepted(batch: RunContext, rows: DataFrame) -> DataFrame:
    """Keeps only rows whose id is recorded as accepted at the row's time, one row for each id.

    Needed where rows may lack outcomes. Rows without an id are kept, and all rows where ids expire,
    because their records may be gone.
    """
    pipeline = batch.pipeline
    if not batch.rows_may_lack_outcomes or pipeline.watermark.dedupe_horizon_us is not None:
        return rows
    event_id = pipeline.source.event_id
    if event_id is None or (recorded := batch.find_rows(SEEN)) is None:
        return rows
    row_id = column_named(event_id).cast("string")
    seen_id = F.col("event_id").alias("__id")
    seen_at = F.unix_micros("event_time").alias("__at")
    seen = recorded.select(seen_id, seen_at).distinct()
    is_seen = (row_id == F.col("__id")) & (F.col(TIME) == F.col("__at"))
    accepted = rows.join(seen, is_seen, "left_semi")
    copies = Window.partitionBy(row_id).orderBy(*copies_order(pipeline))
    numbered = accepted.withColumn("__nth", F.row_number().over(copies))
    first = numbered.where("__nth = 1").drop("__nth")
    return first.unionByName(rows.where(row_id.isNull()))


def without_duplicates(batch: RunContext, rows: DataFrame) -> DataFrame:
    """Where ids expire, `rows` without the copies of accepted events.

    The id of such an event may have expired, so its copies are known only because `_duplicates`
    records them. Of a source that may change, all rows are kept.

    rows[..., __digest, __live] -> the same columns
    """
    if batch.pipeline.watermark.dedupe_horizon_us is None or batch.source_may_change:
        return rows
    copies = refused_digests(batch, ("_duplicates",)).distinct()
    others = rows.where(~F.col(LIVE)).join(copies, DIGEST, "left_anti")
    return rows.where(LIVE).unionByName(others.select(*rows.columns))


def ids_outside(batch: RunContext, ranges: Iterable[tuple[int, int]]) -> DataFrame | None:
    """The ids accepted with an event time outside `ranges`; None where there are no ids.

    The ranges are [from, to), in microseconds.
    """
    seen = None if batch.pipeline.source.event_id is None else batch.find_rows(SEEN)
    if seen is None:
        return None
    for low, high in ranges:
        is_before = F.col("event_time") < instant(low)
        is_after = F.col("event_time") >= instant(high)
        seen = seen.where(is_before | is_after)
    return seen.select("event_id").distinct()
