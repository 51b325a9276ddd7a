"""What live runs made of the rows of the source, as far as it is written: which were refused, which missed windows, which ids count."""

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.admission import Batch
from windowing import delta
from windowing.admit.again import LIVE
from windowing.admit.digest import hashed_columns, row_digest
from windowing.admit.frame import PARTIAL, copies_order
from windowing.admit.table import EMPTIED, REFUSED
from windowing.columns import DIGEST, kept_name
from windowing.columns import T as TIME
from windowing.grid.frame import instant
from windowing.panes import table as state
from windowing.source import table as source


def known(batch: Batch, rows: DataFrame) -> DataFrame:
    """Of rows that count as far as is written, those that do: where the source changes its past, a row it has changed was refused nowhere.

    There a row with an id counts if that id was accepted at its time, once. Of rows without one, and where ids are forgotten, nobody knows.
    """
    pipeline, path = batch.pipeline, batch.pipeline.table(state.SEEN)
    if not batch.changing or pipeline.watermark.dedupe_horizon_us is not None:
        return rows
    event_id = pipeline.source.event_id
    if event_id is None or not delta.exists(batch.spark, path):
        return rows
    name, at = F.col(f"`{event_id}`").cast("string"), F.unix_micros("event_time").alias("__at")
    seen = delta.read(batch.spark, path).select(F.col("event_id").alias("__id"), at).distinct()
    held = rows.join(seen, (name == F.col("__id")) & (F.col(TIME) == F.col("__at")), "left_semi")
    first = held.withColumn("__nth", F.row_number().over(Window.partitionBy(name).orderBy(*copies_order(pipeline))))
    return first.where("__nth = 1").drop("__nth").unionByName(rows.where(name.isNull()))


def uncopied(batch: Batch, rows: DataFrame) -> DataFrame:
    """Where ids are forgotten, `rows` without those that are copies of an event that counts: its id may be among the forgotten.

    rows[..., __digest, __live] -> the same columns
    """
    if batch.pipeline.watermark.dedupe_horizon_us is None or batch.changing:
        return rows
    copies = refused_digests(batch, ("_duplicates",)).distinct()
    return rows.where(LIVE).unionByName(rows.where(~F.col(LIVE)).join(copies, DIGEST, "left_anti").select(*rows.columns))


def refused_digests(batch: Batch, tables: Iterable[str] = tuple(REFUSED)) -> DataFrame:
    """The digests of rows that were refused and not taken in since, one for each row."""
    found = []
    for table in tables:
        if delta.exists(batch.spark, batch.pipeline.table(table)):
            rows = delta.read(batch.spark, batch.pipeline.table(table)).where(F.col("resolved_by").isNull() & (F.col("outcome") != PARTIAL))
            found.append(with_digest(batch, rows).select(DIGEST))
    return reduce(DataFrame.unionByName, found) if found else batch.spark.createDataFrame([], f"{DIGEST} bigint")


def partly_late(batch: Batch) -> DataFrame:
    """The partly late rows that were not taken in since: [digest, missed, watermark]."""
    if not delta.exists(batch.spark, batch.pipeline.table("_late")):
        columns = f"{DIGEST} bigint, missed array<struct<window:string,until:timestamp_ltz>>, watermark timestamp_ltz"
        return batch.spark.createDataFrame([], columns)
    rows = delta.read(batch.spark, batch.pipeline.table("_late")).where((F.col("outcome") == PARTIAL) & F.col("resolved_by").isNull())
    return with_digest(batch, rows).select(DIGEST, "missed", "watermark")


def with_digest(batch: Batch, refused: DataFrame) -> DataFrame:
    """Refused rows with the digest that the source row had. refused -> refused + [__digest]."""
    return refused.withColumn(DIGEST, digest_of(batch, refused))


def digest_of(batch: Batch, refused: DataFrame) -> Column:
    """The digest of the source row that a refused row is: as stored, or made of its columns.

    Rows that were refused before digests were stored have none.
    """
    stored = [F.col(name) for name in (DIGEST, EMPTIED) if name in refused.columns]
    names = {name: kept_name(name) for name in hashed_columns(source.schema(batch.spark, batch.pipeline))}
    there = {name: kept for name, kept in names.items() if kept in refused.columns}
    computed = row_digest(there, source.earlier_types(batch.spark, batch.pipeline))
    return F.coalesce(*stored, computed)


def elsewhere(batch: Batch, ranges: Iterable[tuple[int, int]]) -> DataFrame | None:
    """The ids that were accepted with an event time outside the ranges [from, to), microseconds; None where there are no ids."""
    if batch.pipeline.source.event_id is None or not delta.exists(batch.spark, batch.pipeline.table(state.SEEN)):
        return None
    seen = delta.read(batch.spark, batch.pipeline.table(state.SEEN))
    for low, high in ranges:
        seen = seen.where((F.col("event_time") < instant(low)) | (F.col("event_time") >= instant(high)))
    return seen.select("event_id").distinct()
