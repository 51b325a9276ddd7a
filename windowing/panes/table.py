"""Reads and writes state: panes, fragments, buffered events and accepted ids.

Live runs only append to it. Each row records its batch, and the watermark by which its run admitted
events.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windowing.columns import BATCH, FIRST, GENERATION, JUDGED, LAST, PANE, RUN
from windowing.crash import crashpoint
from windowing.grid.frame import instant
from windowing.grid.range import Range
from windowing.ledger import rule as ledger
from windowing.panes.rule import BACKFILLED, SEEN, fragments_table
from windowing.spec.kinds import Session
from windowing.spec.pipeline import Pipeline
from windowing.storage import own_tables, table_figures
from windowing.storage.kept_open import has_commit
from windowing.storage.own_tables import Once


@dataclass(frozen=True)
class Stamp:
    """What a state row records of its origin: run, batch and watermark, besides the generation.

    `judged_us` is the watermark by which its run admitted events.
    """

    run: int
    batch: int
    judged_us: int | None

    @property
    def watermark(self) -> Column:
        """The watermark by which its run admitted events; null where there was none."""
        if self.judged_us is None:
            return F.lit(None).cast("timestamp_ltz")
        return instant(self.judged_us)

    def on(self, rows: DataFrame) -> DataFrame:
        """`rows` with the stamp's columns."""
        origin = {
            RUN: F.lit(self.run).cast("bigint"),
            GENERATION: F.lit(ledger.GENERATION),
            BATCH: F.lit(self.batch).cast("bigint"),
            JUDGED: self.watermark,
        }
        return rows.withColumns(origin)

    def beside(self, rows: DataFrame) -> DataFrame:
        """`rows` with the stamp's columns, but each with its own watermark."""
        own = self.on(rows.withColumnRenamed(JUDGED, "__judged"))
        return own.withColumn(JUDGED, F.col("__judged")).drop("__judged")

    @property
    def of_run(self) -> Column:
        """True for rows of batches of the same run; backfills and compactions have others."""
        return (F.col(RUN) == self.run) & (F.col(BATCH) >= 0)

    @property
    def foreign(self) -> Column:
        """True for rows of other batches.

        They are what was stored before this batch, also when it is retried.
        """
        return ~((F.col(GENERATION) == ledger.GENERATION) & (F.col(BATCH) == self.batch))


def once_of(pipeline: Pipeline, table: str, stamp: Stamp) -> Once:
    """The commit by which a table gets the rows of the stamp's batch, once."""
    return Once(pipeline.table(table), name_application(pipeline, table), stamp.batch)


def name_application(pipeline: Pipeline, table: str) -> str:
    """As what the stream commits its batches to `table`."""
    return f"{pipeline.name}:{table}:{ledger.GENERATION}"


def store_partials(
    rows: DataFrame, pipeline: Pipeline, table: str, stamp: Stamp, sort: str, most: int
) -> None:
    """Appends stamped state rows, at `most` so many; a retry of the same batch writes nothing."""
    own_tables.append(stamp.on(rows), once_of(pipeline, table, stamp), sort, most)
    crashpoint("state.stored")


def has_panes(pipeline: Pipeline, table: str, within: Range) -> bool:
    """Whether a stored pane may begin `within`; the log answers without a Spark job."""
    path = pipeline.table(table)
    if not has_commit(path):
        return False
    return table_figures.count_bytes(path, {PANE: (within.low_us, within.high_us)}) != 0


def panes_before(
    spark: SparkSession, pipeline: Pipeline, table: str, stamp: Stamp, within: Range
) -> DataFrame:
    """The stored panes of other batches that begin `within`."""
    begins_within = F.col(PANE).between(instant(within.low_us), instant(within.high_us))
    bounds = {PANE: (within.low_us, within.high_us)}
    panes = own_tables.read(spark, pipeline.table(table), bounds)
    return panes.where(begins_within & stamp.foreign)


def panes_of(spark: SparkSession, pipeline: Pipeline, table: str, stamp: Stamp) -> DataFrame | None:
    """All stored panes, or events, of other batches; None if there is no state yet."""
    stored = own_tables.find(spark, pipeline.table(table), own_tables.EVERY_ROW)
    return None if stored is None else stored.where(stamp.foreign)


def fragments_before(
    spark: SparkSession, pipeline: Pipeline, session: Session, stamp: Stamp, within: Range
) -> DataFrame:
    """The stored fragments of other batches that lie `within`."""
    bounds = {FIRST: (within.low_us, within.high_us), LAST: (within.low_us, within.high_us)}
    rows = own_tables.read(spark, pipeline.table(fragments_table(session)), bounds)
    begins_within = F.col(FIRST) >= instant(within.low_us)
    ends_within = F.col(LAST) <= instant(within.high_us)
    return rows.where(begins_within & ends_within & stamp.foreign)


def ids_before(
    spark: SparkSession, pipeline: Pipeline, stamp: Stamp, batch_ids: DataFrame
) -> DataFrame | None:
    """The ids among `batch_ids` that other batches accepted; None if none were accepted yet.

    Ids that have expired by the watermark are left out.

    batch_ids[event_id] -> [event_id]
    """
    seen = panes_of(spark, pipeline, SEEN, stamp)
    if seen is None:
        return None
    horizon = pipeline.watermark.dedupe_horizon_us
    if horizon is not None and stamp.judged_us is not None:
        not_expired = F.unix_micros("event_time") + F.lit(horizon) > F.lit(stamp.judged_us)
        # By the law an id that this run accepted counts until the run ends.
        of_this_run = (F.col(RUN) == stamp.run) & (F.col(BATCH) != BACKFILLED)
        seen = seen.where(not_expired | of_this_run)
    return seen.select("event_id").join(batch_ids, "event_id", "left_semi").distinct()
