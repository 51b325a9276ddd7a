"""Refused rows after a backfill of their times: those that count now, or that the source has taken back, say by which."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.admission import Batch
from jobs.history import with_digest
from jobs.repair import Chunk, between, replace
from windowing import delta
from windowing.admit.again import INSIDE, LIVE
from windowing.admit.frame import PARTIAL
from windowing.admit.table import REFUSED
from windowing.columns import DIGEST

QUARANTINE = "_quarantine"


def resolve(batch: Batch, chunk: Chunk, rows: DataFrame, events: DataFrame, label: str) -> None:
    """Refused rows of the chunk that count now say by which backfill: of the `nearby` rows, `events` are those that do.

    So do those that a source which changes its past has taken back, and every row that had missed windows: none is missed any more.
    """
    paths = {table: batch.pipeline.table(table) for table in REFUSED}
    stored = {table: delta.read(batch.spark, path) for table, path in paths.items() if delta.exists(batch.spark, path)}
    refused = {table: _refused_in(batch, kept, chunk) for table, kept in stored.items()}
    room = _room(batch, rows, events, [kept.where(_open()) for table, kept in refused.items() if table != QUARANTINE])
    for n, table in enumerate(stored):
        earlier = _digests([refused[other].where(_open()) for other in list(stored)[:n]], "__earlier", room)
        nth = F.row_number().over(Window.partitionBy(DIGEST, F.col("outcome") == PARTIAL, F.col("resolved_by").isNull()).orderBy("run"))
        marked = refused[table].withColumn("__nth", nth).join(room, DIGEST, "left").join(earlier, DIGEST, "left")
        fits = F.coalesce(F.col("__nth") + F.coalesce("__earlier", F.lit(0)) <= F.col("__room"), F.lit(False))
        due = F.col("resolved_by").isNull() & (fits | (F.col("outcome") == PARTIAL))
        marked = marked.withColumn("resolved_by", F.when(due, F.lit(label)).otherwise(F.col("resolved_by")))
        kept = marked.select(*(F.col(f"`{c}`") for c in stored[table].columns))
        replace(batch, table, kept.localCheckpoint(eager=True), "event_time", chunk)


def _refused_in(batch: Batch, stored: DataFrame, chunk: Chunk) -> DataFrame:
    return with_digest(batch, between(stored, "event_time", chunk)).localCheckpoint(eager=True)


def _room(batch: Batch, rows: DataFrame, events: DataFrame, valid: Sequence[DataFrame]) -> DataFrame:
    """How many refused rows of each digest are to be resolved: [__digest, __room]; `valid` are those that were not quarantined."""
    inside = events.where(INSIDE).groupBy(DIGEST)
    room = inside.agg(F.count("*").alias("__n"), (F.count("*") - F.count_if(LIVE)).alias("__room")).localCheckpoint(eager=True)
    if not batch.changing:
        return room.drop("__n")
    left = _digests([rows.where(INSIDE)], "__left", room)
    both = _digests(valid, "__refused", room).join(room, DIGEST, "full").join(left, DIGEST, "left")
    gone = F.coalesce("__refused", F.lit(0)) - F.coalesce("__left", F.lit(0)) + F.coalesce("__n", F.lit(0))
    return both.select(DIGEST, F.greatest(F.coalesce("__room", F.lit(0)), gone).alias("__room")).localCheckpoint(eager=True)


def _digests(some: Sequence[DataFrame], name: str, none: DataFrame) -> DataFrame:
    """How many rows of each digest there are in all: [__digest, name]."""
    digests = [rows.select(DIGEST) for rows in some]
    return reduce(DataFrame.unionByName, digests, none.select(DIGEST).limit(0)).groupBy(DIGEST).agg(F.count("*").alias(name))


def _open() -> Column:
    """True for rows that were refused and not taken in since."""
    return F.col("resolved_by").isNull() & (F.col("outcome") != PARTIAL)
