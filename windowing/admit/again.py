"""Admission over a past range, for a backfill: source rows beside what was refused live -> the events that count now.

Rows that are equal in every column are interchangeable, so "was it refused?" is a matter of counts: of n equal source rows of which r are
refused and not resolved, n - r were accepted.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from windowing.admit.frame import copies_order
from windowing.columns import DIGEST, JUDGED, MISSED
from windowing.columns import T as TIME
from windowing.spec.pipeline import Pipeline

LIVE, INSIDE = "__live", "__inside"
_NTH = "__nth"


def with_history(rows: DataFrame, refused: DataFrame, partial: DataFrame) -> DataFrame:
    """Adds what live runs made of each row: `__live` (was accepted), `__missed` (windows it came too late for), `judged_by`.

    rows[..., __digest] x refused[__digest] x partial[__digest, missed, watermark] -> rows + [__live, __missed, judged_by].
    """
    nth = F.row_number().over(Window.partitionBy(DIGEST).orderBy(TIME))
    gone = refused.groupBy(DIGEST).agg(F.count("*").alias("__gone"))
    late = partial.select(
        DIGEST, F.col("missed.window").alias(MISSED), F.col("watermark").alias(JUDGED)
    )
    late = late.withColumn(
        "__from", F.row_number().over(Window.partitionBy(DIGEST).orderBy(JUDGED))
    )
    counted = rows.withColumn(_NTH, nth).join(gone, DIGEST, "left")
    place = F.col(_NTH) - F.coalesce("__gone", F.lit(0))
    marked = counted.withColumn(LIVE, place > 0).withColumn("__from", place)
    return marked.join(late, [DIGEST, "__from"], "left").drop(_NTH, "__gone", "__from")


def accepted_again(rows: DataFrame, elsewhere: DataFrame | None, pipeline: Pipeline) -> DataFrame:
    """The rows that count now: outside the range those that counted before, inside each valid event once.

    rows[..., __inside, __live, __missed, judged_by] x elsewhere[event_id] (accepted outside the range) -> the same columns; inside the
    range nothing was missed. Among copies of one id those that counted stay, else the first in event order wins.
    """
    event_id = pipeline.source.event_id
    outside = rows.where(~F.col(INSIDE) & F.col(LIVE))
    on_time = {MISSED: F.lit(None).cast("array<string>"), JUDGED: F.lit(None).cast("timestamp_ltz")}
    inside = rows.where(F.col(INSIDE)).withColumns(on_time)
    if event_id is not None:
        inside = _once(inside, event_id, elsewhere, pipeline)
    return outside.unionByName(inside)


def _once(
    inside: DataFrame, event_id: str, elsewhere: DataFrame | None, pipeline: Pipeline
) -> DataFrame:
    """Each id once, the one that counted before rather than another.

    Where ids are forgotten two events of one id may both have counted, and go on to; of a source that changes its past nobody can tell.
    """
    name = F.col(f"`{event_id}`").cast("string")
    order = [F.col(LIVE).desc(), *copies_order(pipeline)]
    ranked = inside.where(name.isNotNull()).withColumn(
        _NTH, F.row_number().over(Window.partitionBy(name).orderBy(*order))
    )
    forgets = pipeline.watermark.dedupe_horizon_us is not None and pipeline.source.changes != "feed"
    before = F.col(LIVE) if forgets else F.lit(False)
    winners = ranked.where((F.col(_NTH) == 1) & ~before).drop(_NTH)
    if elsewhere is not None:
        ids = elsewhere.select(F.col("event_id").alias("__id"))
        winners = winners.join(ids, name == F.col("__id"), "left_anti")
    return winners.unionByName(inside.where(name.isNull() | before))
