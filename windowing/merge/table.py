"""Writes one table of windows in one commit.

The commit is an append when no stored row changes, else one MERGE with literal bounds.
"""

from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing import delta
from windowing.columns import OP, RUN, START
from windowing.crash import crashpoint
from windowing.grid.frame import instant
from windowing.grid.zone import moment
from windowing.merge.frame import BEGUN, DELETE, INSERT, LOST, OVERFLOW, UPDATE
from windowing.merge.rule import Target


@dataclass(frozen=True)
class Changes:
    """How many rows of a table were inserted, updated and deleted.

    `overflow` is how many of all computed rows contain a sum that left its type.
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    overflow: int = 0


def create_table(spark: SparkSession, target: Target, schema: T.StructType) -> None:
    """Creates the empty table unless it exists."""
    delta.create(spark, target.path, schema, _properties(target, schema))


def recreate_table(spark: SparkSession, target: Target, schema: T.StructType) -> None:
    """Replaces the table by an empty one with other columns."""
    builder = DeltaTable.replace(spark).location(target.path).addColumns(schema)
    for name, value in _properties(target, schema).items():
        builder = builder.property(name, value)
    builder.execute()


def _properties(target: Target, schema: T.StructType) -> dict[str, str]:
    return {
        **delta.properties(schema),
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": str(target.change_feed).lower(),
        "delta.deletedFileRetentionDuration": "interval 30 days",
    }


def write_changes(spark: SparkSession, target: Target, changed: DataFrame, run: int) -> Changes:
    """Applies `changed` [op, row] to the table; stores nothing when there is nothing to change."""
    frozen = changed.withColumn(RUN, F.lit(run).cast("bigint")).localCheckpoint(eager=True)
    by_op = {
        row[OP]: row
        for row in frozen.groupBy(OP).agg(F.count("*").alias("n"), *_extent()).collect()
    }
    inserted, updated, deleted = (
        by_op[op]["n"] if op in by_op else 0 for op in (INSERT, UPDATE, DELETE)
    )
    counts = Changes(inserted, updated, deleted, sum(r["lost"] for r in by_op.values()))
    due = frozen.where(F.col(OP) != LOST) if LOST in by_op else frozen
    if counts.updated or counts.deleted:
        stored = [
            by_op[op] for op in (UPDATE, DELETE) if op in by_op and by_op[op]["low"] is not None
        ]
        extent = (min(r["low"] for r in stored), max(r["high"] for r in stored)) if stored else None
        _merge(spark, target, due, extent)
    elif counts.inserted:
        delta.append(due.select(*target.columns).sortWithinPartitions(START), target.path)
    crashpoint("output.corrected")
    return counts


def _extent() -> list[Column]:
    low, high = F.min(F.least(START, BEGUN)), F.max(F.greatest(START, BEGUN))
    return [
        F.unix_micros(low).alias("low"),
        F.unix_micros(high).alias("high"),
        F.sum(F.col(OVERFLOW).cast("bigint")).alias("lost"),
    ]


def _merge(
    spark: SparkSession, target: Target, changed: DataFrame, extent: tuple[int, int] | None
) -> None:
    """Writes `changed` in one MERGE.

    Only rows that differ are in its source, and the literal bounds prune the target's files.
    """
    within = [f"s.`{OP}` <> '{INSERT}'"]
    if extent is not None:
        low, high = (f"timestamp_ltz'{moment(us).isoformat(sep=' ')}'" for us in extent)
        within.insert(0, f"t.`{START}` between {low} and {high}")
    same = [f"t.`{c}` = s.`{c}`" for c in target.identity]
    new: dict[str, str | Column] = {f"`{c}`": f"s.`{c}`" for c in target.columns}
    table = DeltaTable.forPath(spark, target.path).alias("t")
    (
        table.merge(changed.alias("s"), " and ".join([*within, *same]))
        .whenMatchedDelete(f"s.`{OP}` = '{DELETE}'")
        .whenMatchedUpdate(set=new)
        .whenNotMatchedInsert(f"s.`{OP}` = '{INSERT}'", values=new)
        .execute()
    )


def read_stored(spark: SparkSession, target: Target, low_us: int, high_us: int) -> DataFrame:
    """The rows of a table whose window begins from `low_us` to `high_us`, both inside.

    The bounds prune files.
    """
    return delta.read(spark, target.path).where(
        F.col(START).between(instant(low_us), instant(high_us))
    )
