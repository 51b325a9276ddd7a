"""The event buffer, from which order-dependent windows are computed, and the accepted ids.

accepted[key, t, inputs, digest] -> stored[key, event_time, digest, inputs, missed]
-> events[key, t, order, inputs, judged]
"""

from collections.abc import Sequence
from typing import assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.columns import DIGEST, EVENT_TIME, EVENTS_JUDGED, INPUTS, JUDGED, MISSED, ORDER, TIME
from windowing.panes.rule import buffered_columns
from windowing.rows import are_equal, column_named
from windowing.spec.description import Lateness, describe_window
from windowing.spec.kinds import OrderDependent
from windowing.spec.pipeline import Pipeline


def buffer_events(accepted: DataFrame, pipeline: Pipeline, *more: str) -> DataFrame:
    """The stored form of accepted events, one row each, with their own columns `more`."""
    kept = [column_named(name).alias(name) for name in buffered_columns(pipeline)]
    values = F.struct(*kept) if kept else F.lit(None).cast("struct<none:boolean>")
    names = F.col(MISSED)["window"] if _structs(accepted) else F.col(MISSED)
    missed = F.coalesce(names, F.array().cast("array<string>"))
    at = F.timestamp_micros(TIME).alias(EVENT_TIME)
    return accepted.select(
        *pipeline.source.key,
        at,
        F.col(DIGEST).alias("digest"),
        values.alias(INPUTS),
        missed.alias("missed"),
        *more,
    )


def select_ids(accepted: DataFrame, event_id: str) -> DataFrame:
    """The ids of accepted events that have one: [event_id, event_time, digest]."""
    id_column = column_named(event_id)
    return accepted.where(id_column.isNotNull()).select(
        id_column.cast("string").alias("event_id"),
        F.timestamp_micros(TIME).alias("event_time"),
        F.col(DIGEST).alias("digest"),
    )


def _structs(rows: DataFrame) -> bool:
    return "struct" in rows.schema[MISSED].dataType.simpleString()


def unbuffer_events(kept: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Stored rows as events again: [key, t, order, inputs, __judged, __missed]."""
    names = buffered_columns(pipeline)
    place = [
        F.unix_micros(EVENT_TIME),
        *(_input(n, pipeline) for n in (pipeline.source.event_id, *pipeline.source.order_by) if n),
    ]
    order = F.struct(*(c.alias(f"at{i}") for i, c in enumerate([*place, F.col("digest")]))).alias(
        ORDER
    )
    values = [F.col(INPUTS)[name].alias(name) for name in names]
    time, judged = F.unix_micros(EVENT_TIME).alias(TIME), F.col(JUDGED).alias(EVENTS_JUDGED)
    return kept.select(
        *pipeline.source.key, time, order, *values, judged, F.col("missed").alias(MISSED)
    )


def _input(name: str, pipeline: Pipeline) -> Column:
    return column_named(name) if name in pipeline.source.key else F.col(INPUTS)[name]


def events_of_window(
    found: DataFrame, window: OrderDependent, lateness_us: int | None
) -> DataFrame:
    """The events that were not late for `window`.

    For record_sliding they are all events, because it decides lateness window by window.
    """
    if lateness_us is None:
        return found
    match describe_window(window).lateness:
        case Lateness.CHAIN:
            return found.where(~F.array_contains(MISSED, window.name))
        case Lateness.EVENT:
            judged = F.col(EVENTS_JUDGED)
            in_time = F.col(TIME) + F.lit(1 + lateness_us) > F.unix_micros(judged)
            return found.where(judged.isNull() | in_time)
        case Lateness.WINDOW_END | Lateness.NEVER:
            return found
        case other:
            assert_never(other)


def events_in_regions(kept: DataFrame, regions: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The stored rows inside the regions [keys, __low, __high) of event time, microseconds."""
    same = are_equal("e", "r", keys)
    at = F.unix_micros(f"e.{EVENT_TIME}")
    inside = (at >= F.col("r.__low")) & (at < F.col("r.__high"))
    return kept.alias("e").join(
        regions.select(*keys, "__low", "__high").alias("r"), [*same, inside], "left_semi"
    )
