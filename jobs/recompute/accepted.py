"""Selects the accepted rows of the source, in a range or in the whole history.

What live runs decided is followed as far as the tables of the pipeline record it.
"""

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.microbatch.admission import add_event_time
from jobs.microbatch.context import RunContext
from jobs.recompute.refused import partly_late, refused_digests
from jobs.recompute.time_range import TimeRange
from windowing.admit.again import INSIDE, LIVE, AcceptedIds, accepted_again, with_history
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

    They are chosen from `rows`, the source rows near the chunk. The source has changed the
    `disputed` ranges, [from, to) in microseconds. An id that was accepted there makes no row a
    duplicate where the source does not contain it at its time any more.

    -> source rows + [t, digest, inside, live, missed, judged_by]
    """
    history = with_history(rows, refused_digests(batch), partly_late(batch))
    history = without_duplicates(batch, history)
    ids = read_accepted_ids(batch, chunk, disputed)
    events = accepted_again(history, ids, batch.pipeline, source_may_change=batch.source_may_change)
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


def read_accepted_ids(
    batch: RunContext, chunk: TimeRange, disputed: Iterable[tuple[int, int]]
) -> AcceptedIds | None:
    """The ids accepted inside and outside the chunk; None where there are no ids.

    Of those in a `disputed` range outside the chunk, they are the ones that the source still has.
    """
    event_id = batch.pipeline.source.event_id
    seen = None if event_id is None else batch.find_rows(SEEN)
    if event_id is None or seen is None:
        return None
    ids = seen.select("event_id", "event_time")
    is_inside = _happened_in(chunk.start_us, chunk.end_us)
    inside, outside = ids.where(is_inside), ids.where(~is_inside)
    beyond = [ends for ends in disputed if ends[0] < chunk.start_us or ends[1] > chunk.end_us]
    if not beyond:
        return AcceptedIds(inside, outside)
    is_disputed = reduce(Column.__or__, [_happened_in(low, high) for low, high in beyond])
    rows = _read_rows(batch, chunk.version).where(F.col(WHY).isNull())
    row_id = column_named(event_id).cast("string").alias("event_id")
    places = rows.select(row_id, F.timestamp_micros(TIME).alias("event_time"))
    is_there = places.where(is_disputed).distinct()
    still_there = outside.where(is_disputed).join(is_there, ids.columns, "left_semi")
    return AcceptedIds(inside, outside.where(~is_disputed).unionByName(still_there))


def _happened_in(low_us: int, high_us: int) -> Column:
    """True for an `event_time` in [low, high)."""
    at = F.col("event_time")
    return (at >= instant(low_us)) & (at < instant(high_us))
