"""Admission over a past range, for a backfill: source rows and refused rows -> accepted events.

Rows that are equal in every column are interchangeable, so "was it refused?" is a matter of counts:
of n equal source rows of which r are refused and not resolved, n - r were accepted.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.admit.frame import copies_order
from windowing.columns import DIGEST, JUDGED, MISSED, TIME
from windowing.rows import column_named
from windowing.spec.pipeline import Pipeline

LIVE, INSIDE = "__live", "__inside"
_NTH, _REFUSED, _PLACE = "__nth", "__gone", "__from"
_STAYS, _OWN, _OTHERS = "__stays", "__own", "__others"
_THERE, _NOT_REFUSED = "__there", "__not_refused"


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


@dataclass(frozen=True)
class AcceptedIds:
    """The ids accepted `inside` the range and `elsewhere`, each [event_id, event_time]."""

    inside: DataFrame
    elsewhere: DataFrame


def accepted_again(
    rows: DataFrame,
    ids: AcceptedIds | None,
    pipeline: Pipeline,
    *,
    source_may_change: bool,
) -> DataFrame:
    """The rows that are accepted now.

    Outside the range they are those that were accepted before, inside it each valid event once.
    Among copies of one id those that were accepted before stay, else the first in event order is
    accepted. Inside the range nothing was missed. `ids` are those accepted before, if any were.

    rows[..., __inside, __live, __missed, judged_by] -> the columns of rows.
    """
    event_id = pipeline.source.event_id
    outside = rows.where(~F.col(INSIDE) & F.col(LIVE))
    nothing_missed = F.lit(None).cast("array<string>")
    on_time = {MISSED: nothing_missed, JUDGED: F.lit(None).cast("timestamp_ltz")}
    inside = rows.where(F.col(INSIDE)).withColumns(on_time)
    if event_id is None:
        return outside.unionByName(inside)
    id_text = column_named(event_id).cast("string")
    with_id = inside.where(id_text.isNotNull())
    # Where ids expire, two events of one id may both have been accepted, and both stay accepted.
    horizon_us = pipeline.watermark.dedupe_horizon_us
    if ids is None or horizon_us is None:
        marked = with_id.withColumn(_STAYS, F.lit(False))
    elif source_may_change:
        marked = _mark_staying(with_id, id_text, ids, pipeline, horizon_us)
    else:
        marked = with_id.withColumn(_STAYS, F.col(LIVE))
    kept = _keep_each_id_once(marked, id_text, ids, pipeline).drop(_STAYS)
    return outside.unionByName(inside.where(id_text.isNull())).unionByName(kept)


def _mark_staying(
    rows: DataFrame, id_text: Column, ids: AcceptedIds, pipeline: Pipeline, horizon_us: int
) -> DataFrame:
    """Marks the rows of a changed source that stay accepted beside others of their id.

    A row stays at a time at which its id was accepted. Any other one that was not refused may be a
    copy that was changed: it stays where none that stays, or is accepted elsewhere, is nearer than
    the horizon; the earliest comes first.

    rows[..., __live] -> rows + [__stays]
    """
    timed = rows
    for name, accepted in ((_OWN, ids.inside), (_OTHERS, ids.elsewhere)):
        times = F.collect_set(F.unix_micros("event_time")).alias(name)
        of_id = accepted.groupBy(F.col("event_id").alias("__id")).agg(times)
        timed = timed.join(of_id, id_text == F.col("__id"), "left").drop("__id")
    copies = Window.partitionBy(id_text)
    not_refused = F.when(F.col(LIVE), F.col(TIME))
    timed = timed.withColumn(_THERE, F.collect_set(TIME).over(copies))
    timed = timed.withColumn(_NOT_REFUSED, F.collect_set(not_refused).over(copies))
    no_times = F.array().cast("array<bigint>")
    accepted_there = F.array_intersect(F.coalesce(_OWN, no_times), F.col(_THERE))
    known = F.concat(accepted_there, F.coalesce(_OTHERS, no_times))
    staying = F.aggregate(F.array_sort(_NOT_REFUSED), known, _add_apart(horizon_us))
    of_one_time = Window.partitionBy(id_text, TIME)
    place = F.row_number().over(of_one_time.orderBy(F.col(LIVE).desc(), *copies_order(pipeline)))
    placed = timed.withColumn(_NTH, place)
    stays = (F.col(_NTH) == 1) & F.array_contains(staying, F.col(TIME))
    return placed.withColumn(_STAYS, stays).drop(_OWN, _OTHERS, _THERE, _NOT_REFUSED, _NTH)


def _add_apart(horizon_us: int) -> Callable[[Column, Column], Column]:
    """Adds a time to others, unless it is nearer than the horizon to one of them."""

    def add(times: Column, at: Column) -> Column:
        is_near = F.exists(times, lambda other: F.abs(other - at) < horizon_us)
        return F.when(is_near, times).otherwise(F.concat(times, F.array(at)))

    return add


def _keep_each_id_once(
    rows: DataFrame, id_text: Column, ids: AcceptedIds | None, pipeline: Pipeline
) -> DataFrame:
    """Each id once, the one that was accepted before rather than another.

    Rows that stay are kept besides. rows[..., __live, __stays] -> the same columns
    """
    accepted_before_first = [F.col(_STAYS).desc(), F.col(LIVE).desc(), *copies_order(pipeline)]
    copies_of_id = Window.partitionBy(id_text).orderBy(*accepted_before_first)
    ranked = rows.withColumn(_NTH, F.row_number().over(copies_of_id))
    winners = ranked.where((F.col(_NTH) == 1) & ~F.col(_STAYS)).drop(_NTH)
    if ids is not None:
        elsewhere = ids.elsewhere.select(F.col("event_id").alias("__id")).distinct()
        winners = winners.join(elsewhere, id_text == F.col("__id"), "left_anti")
    return winners.unionByName(rows.where(_STAYS))
