"""What a data engineer would use instead, on the same rows and with the same answers.

Every contender reads one Delta table of events and brings a Delta table of its own up to date.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.run import run
from windowing.report.rule import RunReport
from windowing.spec.load import load_pipeline

DAY_US = 86_400_000_000
START_US = 1_700_006_400_000_000
MILLISECOND_US = 1_000

TIDEMARK = "Tidemark"
RECOMPUTE = "batch recompute"
STREAMING = "Structured Streaming"

PEER_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Settings of a session in which Structured Streaming is a contender."""


@dataclass(frozen=True)
class Work:
    """What every contender computes, in Tidemark's words and in Spark's.

    `aggregates` has both expressions of each.
    """

    window: Mapping[str, Any]
    grouped_by: str
    aggregates: Mapping[str, tuple[str, str]]
    watermark: Mapping[str, str] = field(
        default_factory=lambda: {"delay": "10 minutes", "allowed_lateness": "forever"}
    )

    @property
    def columns(self) -> list[str]:
        """The columns in which the contenders' tables are compared."""
        return sorted(["user", "window_start", "window_end", *self.aggregates])


COUNT = {"n": ("count()", "count(*)")}
SUM = {"total": ("sum(amount)", "sum(amount)")}
MAX = {"most": ("max(amount)", "max(amount)")}
HOURLY = Work(
    {"kind": "tumbling", "size": "1 hour"}, "window(at, '1 hour')", {**COUNT, **SUM, **MAX}
)


@dataclass(frozen=True)
class Lake:
    """A source of events, and the directory in which the contenders write.

    `keys` is how many users the events have.
    """

    spark: SparkSession
    source: Path
    out: Path
    keys: int

    def land(self, first: int, rows: int, low_us: int, span_us: int) -> None:
        """Appends `rows` events: keys and times spread by a hash, whole-number values."""
        # Each column has a hash of its own, so that key, time and value are independent.
        key_hash = F.xxhash64("id")
        time_hash = F.xxhash64(key_hash)
        value_hash = F.xxhash64(key_hash, F.lit(1))
        # Watermarks of Structured Streaming are whole milliseconds, and so are these times.
        span = F.lit(span_us // MILLISECOND_US)
        time_us = F.lit(low_us) + F.pmod(time_hash, span) * MILLISECOND_US
        made = self.spark.range(first, first + rows, 1, 8).select(
            F.pmod(key_hash, F.lit(self.keys)).cast("string").alias("user"),
            F.timestamp_micros(time_us).alias("at"),
            F.pmod(value_hash, F.lit(1_000)).alias("amount"),
        )
        made.write.format("delta").mode("append").save(str(self.source))

    def written_in(self, name: str) -> "Lake":
        """The same source with another directory to write in."""
        return replace(self, out=self.out / name.replace(" ", "_"))


def run_tidemark(lake: Lake, work: Work) -> RunReport:
    """One run of the pipeline."""
    spec = {
        "name": "ours",
        "lake": str(lake.out),
        "source": {"table": str(lake.source), "event_time": "at", "key": ["user"]},
        "watermark": dict(work.watermark),
        "aggregates": {name: ours for name, (ours, _) in work.aggregates.items()},
        "windows": {"w": {**work.window, "change_feed": False}},
    }
    return run(lake.spark, load_pipeline(spec))


def recompute_all(lake: Lake, work: Work) -> None:
    """Everything again: scan, groupBy, overwrite."""
    events = lake.spark.read.format("delta").load(str(lake.source))
    windows = aggregate_events(events, work)
    windows.write.format("delta").mode("overwrite").save(str(lake.out / "recomputed"))


def run_structured_streaming(lake: Lake, work: Work) -> None:
    """Spark's window() with state in RocksDB, availableNow, and a MERGE of each batch's updates."""
    spark, target = lake.spark, str(lake.out / "streaming")
    stream = spark.readStream.format("delta").load(str(lake.source)).withWatermark("at", "2 days")
    updates = aggregate_events(stream, work)
    if not DeltaTable.isDeltaTable(spark, target):
        builder = DeltaTable.createIfNotExists(spark).location(target)
        builder = builder.addColumns(updates.schema)
        builder.property("delta.enableDeletionVectors", "true").execute()
    checkpoint = str(lake.out / "streaming_checkpoint")
    writer = updates.writeStream.outputMode("update").option("checkpointLocation", checkpoint)
    writer = writer.trigger(availableNow=True)
    writer = writer.foreachBatch(lambda rows, _: merge_batch(spark, rows, target))
    writer.start().awaitTermination()


def merge_batch(spark: SparkSession, rows: DataFrame, target: str) -> None:
    """The MERGE a data engineer would write.

    It has literal time bounds and updates or inserts everything else.
    """
    kept = rows.localCheckpoint()
    low, high = kept.agg(F.min("window_start"), F.max("window_start")).collect()[0]
    if low is None:
        return
    # With literal bounds Delta skips the files of other times.
    same = (
        f"t.window_start between timestamp'{low}' and timestamp'{high}' and t.user = s.user and "
        f"t.window_start = s.window_start"
    )
    merge = DeltaTable.forPath(spark, target).alias("t").merge(kept.alias("s"), same)
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def aggregate_events(events: DataFrame, work: Work) -> DataFrame:
    """The windows of the peers in Tidemark's columns."""
    made = [F.expr(theirs).alias(name) for name, (_, theirs) in work.aggregates.items()]
    grouped = events.groupBy(F.expr(work.grouped_by).alias("window"), "user").agg(*made)
    start = F.col("window.start").alias("window_start")
    end = F.col("window.end").alias("window_end")
    return grouped.select("user", start, end, *work.aggregates)


@dataclass(frozen=True)
class Contender:
    """How a table is brought up to date, and where it lies in the lake's directory."""

    update: Callable[[Lake, Work], object]
    table: str


CONTENDERS = {
    TIDEMARK: Contender(run_tidemark, "ours/w"),
    STREAMING: Contender(run_structured_streaming, "streaming"),
    RECOMPUTE: Contender(recompute_all, "recomputed"),
}


def bind_contenders(
    lake: Lake, work: Work, names: Sequence[str]
) -> dict[str, Callable[[], object]]:
    """Each contender as an action on this lake."""

    def bind(contender: Contender) -> Callable[[], object]:
        return lambda: contender.update(lake, work)

    return {name: bind(CONTENDERS[name]) for name in names}


def read_table(lake: Lake, contender: str) -> DataFrame:
    """The table of a contender."""
    return lake.spark.read.format("delta").load(str(lake.out / CONTENDERS[contender].table))


def digest_rows(rows: DataFrame, columns: Sequence[str]) -> tuple[int, int]:
    """Rows and a digest of them, in these columns."""
    # The order of rows does not matter to an XOR of their hashes.
    digest = F.bit_xor(F.xxhash64(*columns))
    count, xor = rows.agg(F.count("*"), digest).collect()[0]
    return count, xor


def check_tables(lake: Lake, work: Work, names: Sequence[str]) -> None:
    """Ends the program where the contenders' tables differ."""
    digests = {name: digest_rows(read_table(lake, name), work.columns) for name in names}
    if len(set(digests.values())) != 1:
        raise SystemExit(f"the tables differ: {digests}")
