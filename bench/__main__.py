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
from pyspark.sql import Column, DataFrame, SparkSession
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
        h = F.xxhash64("id")
        row = self.spark.range(first, first + rows, 1, 8).select(
            F.pmod(h, F.lit(KEYS)).cast("string").alias("user"),
            F.timestamp_micros(F.lit(low_us) + F.pmod(F.xxhash64(h), F.lit(span_us))).alias("at"),
            F.pmod(F.xxhash64(h, F.lit(1)), F.lit(1_000)).alias("amount"),
        )
        row.write.format("delta").mode("append").save(self.source)


def tidemark(bench: Bench) -> None:
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


def structured_streaming(bench: Bench) -> None:
    """Spark's window() with state in RocksDB, availableNow, and a MERGE of each batch's updates."""
    target = str(bench.root / "streaming")
    stream = bench.spark.readStream.format("delta").load(bench.source).withWatermark("at", "2 days")
    updates = flat(stream.groupBy(F.window("at", "1 hour"), "user").agg(*measures()))
    if not DeltaTable.isDeltaTable(bench.spark, target):
        builder = (
            DeltaTable.createIfNotExists(bench.spark).location(target).addColumns(updates.schema)
        )
        builder.property("delta.enableDeletionVectors", "true").execute()
    writer = updates.writeStream.outputMode("update").option(
        "checkpointLocation", str(bench.root / "streaming_checkpoint")
    )
    query = (
        writer.trigger(availableNow=True)
        .foreachBatch(lambda rows, _: merge(bench.spark, rows, target))
        .start()
    )
    query.awaitTermination()


def merge(spark: SparkSession, rows: DataFrame, target: str) -> None:
    """The MERGE a data engineer would write.

    It has literal time bounds and updates or inserts everything else.
    """
    kept = rows.localCheckpoint()
    low, high = kept.agg(F.min("window_start"), F.max("window_start")).collect()[0]
    if low is None:
        return
    same = (
        f"t.window_start between timestamp'{low}' and timestamp'{high}' and t.user = s.user and "
        f"t.window_start = s.window_start"
    )
    merged = DeltaTable.forPath(spark, target).alias("t").merge(kept.alias("s"), same)
    merged.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def recompute(bench: Bench) -> None:
    """Everything again: scan, groupBy, overwrite."""
    grouped = (
        bench.spark.read.format("delta")
        .load(bench.source)
        .groupBy(F.window("at", "1 hour"), "user")
        .agg(*measures())
    )
    flat(grouped).write.format("delta").mode("overwrite").save(str(bench.root / "recomputed"))


def measures() -> list[Column]:
    """The aggregates of the peers."""
    return [F.count("*").alias("n"), F.sum("amount").alias("total"), F.max("amount").alias("most")]


def flat(grouped: DataFrame) -> DataFrame:
    """Peers' rows in Tidemark's columns."""
    bounds = [F.col(f"window.{end}").alias(f"window_{end}") for end in ("start", "end")]
    return grouped.select("user", *bounds, "n", "total", "most")


CONTENDERS: dict[str, tuple[Callable[[Bench], None], str]] = {
    "tidemark": (tidemark, "ours/hourly"),
    "window() + RocksDB + MERGE": (structured_streaming, "streaming"),
    "batch recompute": (recompute, "recomputed"),
}


def cpu(spark: SparkSession) -> float:
    """CPU seconds of this JVM so far."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    used = psutil.Process(int(pid)).cpu_times()
    return float(used.user + used.system)


def phase(bench: Bench, first: int) -> dict[str, Took]:
    """Every contender brings its table up to date, the one numbered `first` before the others.

    All tables must be equal afterwards.
    """
    took, names = {}, list(CONTENDERS)
    for name in names[first:] + names[:first]:
        bring, _ = CONTENDERS[name]
        bench.spark.catalog.clearCache()
        wall, used = time.monotonic(), cpu(bench.spark)
        bring(bench)
        took[name] = Took(time.monotonic() - wall, cpu(bench.spark) - used)
    prints = {name: fingerprint(bench, table) for name, (_, table) in CONTENDERS.items()}
    if len(set(prints.values())) != 1:
        sys.exit(f"the tables differ: {prints}")
    return took


def fingerprint(bench: Bench, table: str) -> tuple[int, int]:
    """Rows and a digest of one contender's table."""
    rows = (
        bench.spark.read.format("delta")
        .load(str(bench.root / table))
        .select("user", "window_start", "window_end", "n", "total", "most")
    )
    return tuple(rows.agg(F.count("*"), F.bit_xor(F.xxhash64(*rows.columns))).collect()[0])


def one_round(spark: SparkSession, events: int, number: int) -> dict[str, dict[str, Took]]:
    """First load, then 1 % more of which a tenth is up to a day late."""
    root = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        bench, more = Bench(spark, root, events), int(events * LATE_SHARE)
        bench.land(0, events, START_US, DAY_US)
        first = phase(bench, number % 3)
        bench.land(events, more - more // 10, START_US + DAY_US, DAY_US // 48)
        bench.land(events + more, more // 10, START_US, DAY_US)
        return {"first load": first, "1 % more": phase(bench, number % 3)}
    finally:
        shutil.rmtree(root, ignore_errors=True)


def main() -> int:
    """Prints the table of ratios; the tables of all contenders were equal whenever it prints."""
    asked = argparse.ArgumentParser(
        description="ratios against Spark's own window() and a batch recompute"
    )
    asked.add_argument("--events", type=int, default=5_000_000)
    asked.add_argument("--rounds", type=int, default=3)
    given = asked.parse_args()
    spark = spark_session("bench", **PEER_SETTINGS)
    rounds = [one_round(spark, given.events, n) for n in range(1, given.rounds + 1)]
    printer = Printer(as_json=False)
    for name in rounds[0]:
        rows = [_row(contender, [r[name] for r in rounds]) for contender in CONTENDERS]
        printer.table(
            ["contender", "wall s", "CPU s", "wall / tidemark", "CPU / tidemark"],
            rows,
            f"{name}, {given.events:,} events",
        )
    return 0


PEER_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def _row(contender: str, took: list[dict[str, Took]]) -> list[object]:
    wall, used = min(t[contender].wall for t in took), min(t[contender].cpu for t in took)
    ours = min(t["tidemark"].wall for t in took), min(t["tidemark"].cpu for t in took)
    return [
        contender,
        f"{wall:.1f}",
        f"{used:.1f}",
        f"{wall / ours[0]:.2f}",
        f"{used / ours[1]:.2f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
