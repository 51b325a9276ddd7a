"""Refused rows of a range: what they were, whether some are new, and which are resolved."""

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.microbatch.context import RunContext
from jobs.recompute.swap import replace_range
from jobs.recompute.time_range import TimeRange
from windowing import delta
from windowing.admit.again import INSIDE, LIVE
from windowing.admit.digest import digest_of
from windowing.admit.frame import PARTIAL
from windowing.admit.table import REFUSED
from windowing.columns import DIGEST
from windowing.grid.frame import between
from windowing.source import table as source

QUARANTINE = "_quarantine"


def refused_digests(batch: RunContext, tables: Iterable[str] = tuple(REFUSED)) -> DataFrame:
    """The digests of rows that were refused and are not resolved, one for each row."""
    found = []
    for table in tables:
        if delta.exists(batch.spark, batch.pipeline.table(table)):
            rows = delta.read(batch.spark, batch.pipeline.table(table)).where(
                F.col("resolved_by").isNull() & (F.col("outcome") != PARTIAL)
            )
            found.append(with_digest(batch, rows).select(DIGEST))
    return (
        reduce(DataFrame.unionByName, found)
        if found
        else batch.spark.createDataFrame([], f"{DIGEST} bigint")
    )


def partly_late(batch: RunContext) -> DataFrame:
    """The partly late rows that are not resolved: [digest, missed, watermark]."""
    if not delta.exists(batch.spark, batch.pipeline.table("_late")):
        columns = (
            f"{DIGEST} bigint, missed array<struct<window:string,until:timestamp_ltz>>, "
            "watermark timestamp_ltz"
        )
        return batch.spark.createDataFrame([], columns)
    rows = delta.read(batch.spark, batch.pipeline.table("_late")).where(
        (F.col("outcome") == PARTIAL) & F.col("resolved_by").isNull()
    )
    return with_digest(batch, rows).select(DIGEST, "missed", "watermark")


def with_digest(batch: RunContext, refused: DataFrame) -> DataFrame:
    """Refused rows with the digest that the source row had.

    refused -> refused + [__digest]
    """
    spark, pipeline = batch.spark, batch.pipeline
    digest = digest_of(
        refused, source.schema(spark, pipeline), source.earlier_types(spark, pipeline)
    )
    return refused.withColumn(DIGEST, digest)


def refused_after(batch: RunContext, run: int, chunk: TimeRange) -> bool:
    """Whether a run after `run` refused a row with an event time in the chunk."""
    there = [path for path in map(batch.pipeline.table, REFUSED) if delta.exists(batch.spark, path)]
    refused = (
        between(delta.read(batch.spark, path), "event_time", chunk.start_us, chunk.end_us)
        for path in there
    )
    return any(not rows.where(F.col("run") > run).isEmpty() for rows in refused)


def resolve_refused_rows(
    batch: RunContext, chunk: TimeRange, rows: DataFrame, events: DataFrame, label: str
) -> None:
    """Marks the refused rows of the chunk that are accepted now as resolved by `label`.

    `rows` are the source rows near the chunk, and `events` are those of them that are accepted. A
    row that a changing source contains no more is resolved too. So is every partly late row,
    because it misses no window any more.
    """
    paths = {table: batch.pipeline.table(table) for table in REFUSED}
    stored = {
        table: delta.read(batch.spark, path)
        for table, path in paths.items()
        if delta.exists(batch.spark, path)
    }
    refused = {table: _refused_in(batch, kept, chunk) for table, kept in stored.items()}
    room = _room(
        batch,
        rows,
        events,
        [kept.where(_open()) for table, kept in refused.items() if table != QUARANTINE],
    )
    for n, table in enumerate(stored):
        earlier = _digests(
            [refused[other].where(_open()) for other in list(stored)[:n]], "__earlier", room
        )
        nth = F.row_number().over(
            Window.partitionBy(
                DIGEST, F.col("outcome") == PARTIAL, F.col("resolved_by").isNull()
            ).orderBy("run")
        )
        marked = (
            refused[table]
            .withColumn("__nth", nth)
            .join(room, DIGEST, "left")
            .join(earlier, DIGEST, "left")
        )
        fits = F.coalesce(
            F.col("__nth") + F.coalesce("__earlier", F.lit(0)) <= F.col("__room"), F.lit(False)
        )
        due = F.col("resolved_by").isNull() & (fits | (F.col("outcome") == PARTIAL))
        marked = marked.withColumn(
            "resolved_by", F.when(due, F.lit(label)).otherwise(F.col("resolved_by"))
        )
        kept = marked.select(*(F.col(f"`{c}`") for c in stored[table].columns))
        replace_range(batch, table, kept.localCheckpoint(eager=True), "event_time", chunk)


def _refused_in(batch: RunContext, stored: DataFrame, chunk: TimeRange) -> DataFrame:
    return with_digest(
        batch, between(stored, "event_time", chunk.start_us, chunk.end_us)
    ).localCheckpoint(eager=True)


def _room(
    batch: RunContext, rows: DataFrame, events: DataFrame, valid: Sequence[DataFrame]
) -> DataFrame:
    """How many refused rows of each digest are to be resolved: [__digest, __room].

    `valid` are those that were not quarantined.
    """
    inside = events.where(INSIDE).groupBy(DIGEST)
    room = inside.agg(
        F.count("*").alias("__n"), (F.count("*") - F.count_if(LIVE)).alias("__room")
    ).localCheckpoint(eager=True)
    if not batch.source_may_change:
        return room.drop("__n")
    left = _digests([rows.where(INSIDE)], "__left", room)
    both = _digests(valid, "__refused", room).join(room, DIGEST, "full").join(left, DIGEST, "left")
    gone = (
        F.coalesce("__refused", F.lit(0))
        - F.coalesce("__left", F.lit(0))
        + F.coalesce("__n", F.lit(0))
    )
    return both.select(
        DIGEST, F.greatest(F.coalesce("__room", F.lit(0)), gone).alias("__room")
    ).localCheckpoint(eager=True)


def _digests(some: Sequence[DataFrame], name: str, none: DataFrame) -> DataFrame:
    """How many rows of each digest there are in all: [__digest, name]."""
    digests = [rows.select(DIGEST) for rows in some]
    return (
        reduce(DataFrame.unionByName, digests, none.select(DIGEST).limit(0))
        .groupBy(DIGEST)
        .agg(F.count("*").alias(name))
    )


def _open() -> Column:
    """True for rows that were refused and are not resolved."""
    return F.col("resolved_by").isNull() & (F.col("outcome") != PARTIAL)
