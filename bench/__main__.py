"""Tumbling 1 hour over 5 M events, computed by three contenders.

Tidemark, Spark's own window() with RocksDB state and the same MERGE, and a batch recompute.

    python -m bench [--events 5000000] [--rounds 3]

Every contender reads the same Delta table and writes a durable Delta table; after each phase the
tables are compared row by row before a time counts. Times are wall seconds and CPU seconds of this
JVM, the least of the rounds; each round begins with another contender.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.console import Printer
from jobs.run import run
from jobs.session import spark_session
from windowing.spec.load import load_pipeline

DAY_US = 86_400_000_000
START_US = 1_700_006_400_000_000
KEYS = 20_000
LATE_SHARE = 0.01


@dataclass(frozen=True)
class Took:
    """What one phase of one contender cost."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Bench:
    """One round: a lake of its own with the same rows as every other round."""

    spark: SparkSession
    root: Path
    events: int

    @property
    def source(self) -> str:
        """The table every contender reads."""
        return str(self.root / "events")

    def land(self, first: int, rows: int, low_us: int, span_us: int) -> None:
        """Appends `rows` events: keys and times spread by a hash, whole-number values."""
        # Each column has a hash of its own, so that key, time and value are independent.
        key_hash = F.xxhash64("id")
        time_hash = F.xxhash64(key_hash)
        value_hash = F.xxhash64(key_hash, F.lit(1))
        time_us = F.lit(low_us) + F.pmod(time_hash, F.lit(span_us))
        ids = self.spark.range(first, first + rows, 1, 8)
        made = ids.select(
            F.pmod(key_hash, F.lit(KEYS)).cast("string").alias("user"),
            F.timestamp_micros(time_us).alias("at"),
            F.pmod(value_hash, F.lit(1_000)).alias("amount"),
        )
        made.write.format("delta").mode("append").save(self.source)


def run_tidemark(bench: Bench) -> None:
    """One run of the pipeline."""
    spec = {
        "name": "ours",
        "lake": str(bench.root),
        "source": {"table": bench.source, "event_time": "at", "key": ["user"]},
        "watermark": {"delay": "10 minutes", "allowed_lateness": "forever"},
        "aggregates": {"n": "count()", "total": "sum(amount)", "most": "max(amount)"},
        "windows": {"hourly": {"kind": "tumbling", "size": "1 hour", "change_feed": False}},
    }
    run(bench.spark, load_pipeline(spec))


def run_structured_streaming(bench: Bench) -> None:
    """Spark's window() with state in RocksDB, availableNow, and a MERGE of each batch's updates."""
    target = str(bench.root / "streaming")
    stream = bench.spark.readStream.format("delta").load(bench.source).withWatermark("at", "2 days")
    updates = flatten_windows(aggregate_hours(stream))
    if not DeltaTable.isDeltaTable(bench.spark, target):
        builder = DeltaTable.createIfNotExists(bench.spark).location(target)
        builder = builder.addColumns(updates.schema)
        builder.property("delta.enableDeletionVectors", "true").execute()
    checkpoint = str(bench.root / "streaming_checkpoint")
    writer = updates.writeStream.outputMode("update").option("checkpointLocation", checkpoint)
    writer = writer.trigger(availableNow=True)
    writer = writer.foreachBatch(lambda rows, _: merge_batch(bench.spark, rows, target))
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


def recompute_all(bench: Bench) -> None:
    """Everything again: scan, groupBy, overwrite."""
    events = bench.spark.read.format("delta").load(bench.source)
    windows = flatten_windows(aggregate_hours(events))
    windows.write.format("delta").mode("overwrite").save(str(bench.root / "recomputed"))


def aggregate_hours(events: DataFrame) -> DataFrame:
    """The aggregates of the peers by hour and user."""
    return events.groupBy(F.window("at", "1 hour"), "user").agg(
        F.count("*").alias("n"),
        F.sum("amount").alias("total"),
        F.max("amount").alias("most"),
    )


def flatten_windows(grouped: DataFrame) -> DataFrame:
    """Peers' rows in Tidemark's columns."""
    start = F.col("window.start").alias("window_start")
    end = F.col("window.end").alias("window_end")
    return grouped.select("user", start, end, "n", "total", "most")


CONTENDERS: dict[str, tuple[Callable[[Bench], None], str]] = {
    "tidemark": (run_tidemark, "ours/hourly"),
    "window() + RocksDB + MERGE": (run_structured_streaming, "streaming"),
    "batch recompute": (recompute_all, "recomputed"),
}
"""Name -> how the contender brings its table up to date, and which table that is."""


def cpu_seconds(spark: SparkSession) -> float:
    """CPU seconds of this JVM so far."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    used = psutil.Process(int(pid)).cpu_times()
    return float(used.user + used.system)


def run_phase(bench: Bench, first: int) -> dict[str, Took]:
    """Every contender brings its table up to date, the one numbered `first` before the others.

    All tables must be equal afterwards.
    """
    took = {}
    names = list(CONTENDERS)
    for name in names[first:] + names[:first]:
        bring_up_to_date, _ = CONTENDERS[name]
        bench.spark.catalog.clearCache()
        wall_before = time.monotonic()
        cpu_before = cpu_seconds(bench.spark)
        bring_up_to_date(bench)
        wall = time.monotonic() - wall_before
        took[name] = Took(wall, cpu_seconds(bench.spark) - cpu_before)
    digests = {}
    for name, (_, table) in CONTENDERS.items():
        digests[name] = digest_table(bench, table)
    if len(set(digests.values())) != 1:
        sys.exit(f"the tables differ: {digests}")
    return took


def digest_table(bench: Bench, table: str) -> tuple[int, int]:
    """Rows and a digest of one contender's table."""
    rows = bench.spark.read.format("delta").load(str(bench.root / table))
    rows = rows.select("user", "window_start", "window_end", "n", "total", "most")
    # The order of rows does not matter to an XOR of their hashes.
    digest = F.bit_xor(F.xxhash64(*rows.columns))
    return tuple(rows.agg(F.count("*"), digest).collect()[0])


def run_round(spark: SparkSession, events: int, number: int) -> dict[str, dict[str, Took]]:
    """First load, then 1 % more of which a tenth is up to a day late."""
    root = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        bench = Bench(spark, root, events)
        more = int(events * LATE_SHARE)
        late = more // 10
        bench.land(0, events, START_US, DAY_US)
        first_load = run_phase(bench, number % 3)
        bench.land(events, more - late, START_US + DAY_US, DAY_US // 48)
        bench.land(events + more, late, START_US, DAY_US)
        return {"first load": first_load, "1 % more": run_phase(bench, number % 3)}
    finally:
        shutil.rmtree(root, ignore_errors=True)


def main() -> int:
    """Prints the table of ratios; the tables of all contenders were equal whenever it prints."""
    parser = argparse.ArgumentParser(
        description="ratios against Spark's own window() and a batch recompute"
    )
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    spark = spark_session("bench", **PEER_SETTINGS)
    rounds = [run_round(spark, options.events, n) for n in range(1, options.rounds + 1)]
    printer = Printer(as_json=False)
    heads = ["contender", "wall s", "CPU s", "wall / tidemark", "CPU / tidemark"]
    for phase in rounds[0]:
        took = [each[phase] for each in rounds]
        rows = [_format_row(contender, took) for contender in CONTENDERS]
        printer.table(heads, rows, f"{phase}, {options.events:,} events")
    return 0


PEER_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def _format_row(contender: str, took: list[dict[str, Took]]) -> list[object]:
    """The least times of a contender, and their ratios to those of Tidemark."""
    least = _find_least(contender, took)
    ours = _find_least("tidemark", took)
    return [
        contender,
        f"{least.wall:.1f}",
        f"{least.cpu:.1f}",
        f"{least.wall / ours.wall:.2f}",
        f"{least.cpu / ours.cpu:.2f}",
    ]


def _find_least(contender: str, took: list[dict[str, Took]]) -> Took:
    wall = min(each[contender].wall for each in took)
    cpu = min(each[contender].cpu for each in took)
    return Took(wall, cpu)


if __name__ == "__main__":
    sys.exit(main())
