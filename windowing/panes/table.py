"""Reads and writes state: panes, fragments, buffered events and accepted ids.

Live runs only append to it. Each row records its batch, and the watermark by which its run admitted
events.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windowing import delta
from windowing.columns import BATCH, FIRST, GENERATION, JUDGED, LAST, OP, PANE, RUN
from windowing.crash import crashpoint
from windowing.grid.frame import instant
from windowing.panes.frame import Range
from windowing.panes.rule import BACKFILLED, EVENTS, SEEN, fragments_table
from windowing.spec.kinds import Session
from windowing.spec.pipeline import Pipeline


@dataclass(frozen=True)
class Stamp:
    """What a state row records of its origin: run, batch, generation and watermark.

    `judged_us` is the watermark by which its run admitted events.
    """

    run: int
    batch: int
    generation: int
    judged_us: int | None

    def on(self, rows: DataFrame) -> DataFrame:
        """`rows` with the stamp's columns."""
        judged = (
            F.lit(None).cast("timestamp_ltz") if self.judged_us is None else instant(self.judged_us)
        )
        return rows.withColumns(
            {
                RUN: F.lit(self.run).cast("bigint"),
                GENERATION: F.lit(self.generation),
                BATCH: F.lit(self.batch).cast("bigint"),
                JUDGED: judged,
            }
        )

    def beside(self, rows: DataFrame) -> DataFrame:
        """`rows` with the stamp's columns, but each with its own watermark."""
        own = self.on(rows.withColumnRenamed(JUDGED, "__judged"))
        return own.withColumn(JUDGED, F.col("__judged")).drop("__judged")

    @property
    def foreign(self) -> Column:
        """True for rows of other batches.

        They are what was stored before this batch, also when it is retried.
        """
        return ~((F.col(GENERATION) == self.generation) & (F.col(BATCH) == self.batch))


def store_partials(
    rows: DataFrame, pipeline: Pipeline, table: str, stamp: Stamp, sort: str
) -> None:
    """Appends stamped state rows; a retry of the same batch writes nothing."""
    transaction = (f"{pipeline.name}:{table}:{stamp.generation}", stamp.batch)
    delta.append(stamp.on(rows).sortWithinPartitions(sort), pipeline.table(table), transaction)
    crashpoint("state.stored")


def swap_partials(path: str, old: DataFrame, new: DataFrame, identity: Sequence[str]) -> None:
    """Replaces the rows `old` of a table by the rows `new`, in one commit.

    The columns `identity` distinguish its rows. `old` and `new` have all columns of the table.
    """
    source = (
        old.withColumn(OP, F.lit("D"))
        .unionByName(new.withColumn(OP, F.lit("I")))
        .localCheckpoint(eager=True)
    )
    same = " and ".join([f"s.{OP} = 'D'", *(f"t.`{c}` <=> s.`{c}`" for c in identity)])
    values: dict[str, str | Column] = {f"`{c}`": f"s.`{c}`" for c in new.columns}
    target = DeltaTable.forPath(new.sparkSession, path).alias("t")
    target.merge(source.alias("s"), same).whenMatchedDelete().whenNotMatchedInsert(
        f"s.{OP} = 'I'", values
    ).execute()


def panes_before(
    spark: SparkSession, pipeline: Pipeline, table: str, stamp: Stamp, within: Range
) -> DataFrame | None:
    """The stored panes of other batches that begin `within`; None if there is no state yet."""
    if not delta.exists(spark, pipeline.table(table)):
        return None
    rows = delta.read(spark, pipeline.table(table))
    return rows.where(
        F.col(PANE).between(instant(within.low_us), instant(within.high_us)) & stamp.foreign
    )


def panes_of(spark: SparkSession, pipeline: Pipeline, table: str, stamp: Stamp) -> DataFrame | None:
    """All stored panes of other batches; None if there is no state yet."""
    return (
        delta.read(spark, pipeline.table(table)).where(stamp.foreign)
        if delta.exists(spark, pipeline.table(table))
        else None
    )


def events_before(spark: SparkSession, pipeline: Pipeline, stamp: Stamp) -> DataFrame | None:
    """All buffered events of other batches; None if there are none yet."""
    return panes_of(spark, pipeline, EVENTS, stamp)


def fragments_before(
    spark: SparkSession, pipeline: Pipeline, session: Session, stamp: Stamp, within: Range
) -> DataFrame:
    """The stored fragments of other batches that lie `within`."""
    rows = delta.read(spark, pipeline.table(fragments_table(session)))
    return rows.where(
        (F.col(FIRST) >= instant(within.low_us))
        & (F.col(LAST) <= instant(within.high_us))
        & stamp.foreign
    )


def ids_before(
    spark: SparkSession, pipeline: Pipeline, stamp: Stamp, batch_ids: DataFrame
) -> DataFrame | None:
    """The ids among `batch_ids` that other batches accepted; None if none were accepted yet.

    Ids that have expired by the watermark are left out.

    batch_ids[event_id] -> [event_id]
    """
    if not delta.exists(spark, pipeline.table(SEEN)):
        return None
    seen = delta.read(spark, pipeline.table(SEEN)).where(stamp.foreign)
    horizon = pipeline.watermark.dedupe_horizon_us
    if horizon is not None and stamp.judged_us is not None:
        remembered = F.unix_micros("event_time") + F.lit(horizon) > F.lit(stamp.judged_us)
        seen = seen.where(remembered | (F.col(RUN) == stamp.run) & (F.col(BATCH) != BACKFILLED))
    return seen.select("event_id").join(batch_ids, "event_id", "left_semi").distinct()
