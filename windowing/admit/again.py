"""Admission over a past range, for a backfill: source rows and refused rows -> accepted events.

Rows that are equal in every column are interchangeable, so "was it refused?" is a matter of counts:
of n equal source rows of which r are refused and not resolved, n - r were accepted.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.admit.frame import copies_order
from windowing.columns import DIGEST, JUDGED, MISSED, TIME
from windowing.rows import column_named
from windowing.spec.pipeline import Pipeline

LIVE, INSIDE = "__live", "__inside"
_NTH, _REFUSED, _PLACE = "__nth", "__gone", "__from"


def with_history(rows: DataFrame, refused: DataFrame, partial: DataFrame) -> DataFrame:
    """Adds what live runs decided of each row.

    `__live` is whether it was accepted, `__missed` has the windows that it was late for, and
    `judged_by` is the watermark of a partly late row.

    rows[..., __digest] x refused[__digest] x partial[__digest, missed, watermark]
    -> rows + [__live, __missed, judged_by].
    """
    refused_counts = refused.groupBy(DIGEST).agg(F.count("*").alias(_REFUSED))
    nth_of_equal = F.row_number().over(Window.partitionBy(DIGEST).orderBy(TIME))
    counted = rows.withColumn(_NTH, nth_of_equal).join(refused_counts, DIGEST, "left")
    # Of equal rows the first ones stand for those that were refused, and the next ones for those
    # that were partly late.
    place_among_accepted = F.col(_NTH) - F.coalesce(_REFUSED, F.lit(0))
    was_accepted = place_among_accepted > 0
    marked = counted.withColumn(LIVE, was_accepted).withColumn(_PLACE, place_among_accepted)
    partly_late = _number_partly_late(partial)
    return marked.join(partly_late, [DIGEST, _PLACE], "left").drop(_NTH, _REFUSED, _PLACE)


def _number_partly_late(partial: DataFrame) -> DataFrame:
    """partial[__digest, missed, watermark] -> [__digest, __missed, judged_by, __from]."""
    missed = F.col("missed.window").alias(MISSED)
    late = partial.select(DIGEST, missed, F.col("watermark").alias(JUDGED))
    nth = F.row_number().over(Window.partitionBy(DIGEST).orderBy(JUDGED))
    return late.withColumn(_PLACE, nth)


def accepted_again(
    rows: DataFrame,
    elsewhere: DataFrame | None,
    pipeline: Pipeline,
    *,
    source_may_change: bool,
) -> DataFrame:
    """The rows that are accepted now.

    Outside the range they are those that were accepted before, inside it each valid event once.
    Among copies of one id those that were accepted before stay, else the first in event order is
    accepted. Inside the range nothing was missed.

    rows[..., __inside, __live, __missed, judged_by] x elsewhere[event_id], accepted outside the
    range -> the columns of rows.
    """
    event_id = pipeline.source.event_id
    outside = rows.where(~F.col(INSIDE) & F.col(LIVE))
    nothing_missed = F.lit(None).cast("array<string>")
    on_time = {MISSED: nothing_missed, JUDGED: F.lit(None).cast("timestamp_ltz")}
    inside = rows.where(F.col(INSIDE)).withColumns(on_time)
    if event_id is not None:
        # Where ids expire, two events of one id may both have been accepted, and both stay
        # accepted. Of a source that changes its past it can't be known which rows were accepted.
        ids_expire = pipeline.watermark.dedupe_horizon_us is not None
        may_be_twice = ids_expire and not source_may_change
        stays_accepted = F.col(LIVE) if may_be_twice else F.lit(False)
        inside = _keep_each_id_once(inside, event_id, elsewhere, pipeline, stays_accepted)
    return outside.unionByName(inside)


def _keep_each_id_once(
    inside: DataFrame,
    event_id: str,
    elsewhere: DataFrame | None,
    pipeline: Pipeline,
    stays_accepted: Column,
) -> DataFrame:
    """Each id once, the one that was accepted before rather than another.

    Rows for which `stays_accepted` is true are kept besides.
    """
    id_text = column_named(event_id).cast("string")
    accepted_before_first = [F.col(LIVE).desc(), *copies_order(pipeline)]
    copies_of_id = Window.partitionBy(id_text).orderBy(*accepted_before_first)
    nth_of_id = F.row_number().over(copies_of_id)
    ranked = inside.where(id_text.isNotNull()).withColumn(_NTH, nth_of_id)
    winners = ranked.where((F.col(_NTH) == 1) & ~stays_accepted).drop(_NTH)
    if elsewhere is not None:
        ids = elsewhere.select(F.col("event_id").alias("__id"))
        winners = winners.join(ids, id_text == F.col("__id"), "left_anti")
    return winners.unionByName(inside.where(id_text.isNull() | stays_accepted))
