"""Writes one output in one commit: an append when no stored row changes, else one MERGE with literal bounds."""

from dataclasses import dataclass
from datetime import datetime

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing import delta
from windowing.columns import OP, RUN, START
from windowing.merge.frame import DELETE, INSERT, OVERFLOW, UPDATE, identity, output
from windowing.spec.pipeline import Pipeline, Window


@dataclass(frozen=True)
class Changes:
    """How many rows of an output were inserted, updated and deleted; `overflow` of them hold a sum that left its type."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    overflow: int = 0


def create(spark: SparkSession, pipeline: Pipeline, window: Window, schema: T.StructType) -> None:
    """Makes the empty output of `window` unless it is there."""
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": str(window.change_feed).lower(),
        "delta.deletedFileRetentionDuration": "interval 30 days",
        "delta.checkpointInterval": "50",
    }
    delta.create(spark, pipeline.table(window.name), schema, properties)


def write(spark: SparkSession, pipeline: Pipeline, window: Window, changed: DataFrame, run: int) -> Changes:
    """Applies `changed` [op, row] to the output of `window`; stores nothing when there is nothing to change."""
    frozen = changed.withColumn(RUN, F.lit(run).cast("bigint")).localCheckpoint(eager=True)
    by_op = {row[OP]: row for row in frozen.groupBy(OP).agg(F.count("*").alias("n"), *_extent()).collect()}
    inserted, updated, deleted = (by_op[op]["n"] if op in by_op else 0 for op in (INSERT, UPDATE, DELETE))
    counts = Changes(inserted, updated, deleted, sum(r["lost"] for r in by_op.values()))
    columns = output(window, pipeline.source.key)
    if counts.updated or counts.deleted:
        stored = [by_op[op] for op in (UPDATE, DELETE) if op in by_op]
        _merge(spark, pipeline, window, frozen, (min(r["low"] for r in stored), max(r["high"] for r in stored)))
    elif counts.inserted:
        delta.append(_sorted(frozen.select(*columns), window), pipeline.table(window.name))
    return counts


def _extent() -> list[Column]:
    return [F.min(START).alias("low"), F.max(START).alias("high"), F.sum(F.col(OVERFLOW).cast("bigint")).alias("lost")]


def _merge(spark: SparkSession, pipeline: Pipeline, window: Window, changed: DataFrame, extent: tuple[datetime, datetime]) -> None:
    """One MERGE; only rows that differ are in its source, and the literal bounds prune the target's files."""
    columns = output(window, pipeline.source.key)
    low, high = (f"timestamp'{moment.isoformat(sep=' ')}+00:00'" for moment in extent)
    within = f"t.`{START}` between {low} and {high} and s.`{OP}` <> '{INSERT}'"
    same = [f"t.`{c}` = s.`{c}`" for c in identity(window, pipeline.source.key)]
    new: dict[str, str | Column] = {f"`{c}`": f"s.`{c}`" for c in columns}
    target = DeltaTable.forPath(spark, pipeline.table(window.name)).alias("t")
    (
        target.merge(changed.alias("s"), " and ".join([within, *same]))
        .whenMatchedDelete(f"s.`{OP}` = '{DELETE}'")
        .whenMatchedUpdate(set=new)
        .whenNotMatchedInsert(f"s.`{OP}` = '{INSERT}'", values=new)
        .execute()
    )


def _sorted(rows: DataFrame, window: Window) -> DataFrame:
    return rows.sortWithinPartitions(START)


def stored(spark: SparkSession, pipeline: Pipeline, window: Window, low: datetime, high: datetime) -> DataFrame:
    """The rows of an output whose window begins from `low` to `high`, both inside; the bounds prune files."""
    rows = delta.read(spark, pipeline.table(window.name))
    return rows.where(F.col(START).between(F.lit(low), F.lit(high)))

