"""Measures what exact quantiles cost, by sketches of several sizes.

    python -m bench.quantiles [--sizes 200 4096] [--rounds 5]

A million values lie in windows of 10, 200, 2,000, 20,000 and 1,000,000, each of which has five
panes. Panes are computed and stored; then they are merged, and windows get their value. A sketch of
200 is what releases before this one stored. The sizes take turns, and the figures are the medians
of their rounds. `bytes` are those of all panes before they are compressed, `stored` those of files.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.fold import cpu_seconds
from bench.themes import temporary_directory
from jobs.console import Printer
from jobs.session import spark_session
from windowing.aggregates.sketches import EXACT

VALUES = 1_000_000
PANES = 5
SHAPES = (10, 200, 2_000, 20_000, VALUES)
"""Values in each window."""
RANK = 0.95


@dataclass(frozen=True)
class Took:
    """CPU seconds of both steps, and the bytes of the panes: as they are and in files."""

    lift: float
    merge: float
    bytes: int
    stored: int


def make_events(spark: SparkSession, each: int) -> DataFrame:
    """`VALUES` values in windows of `each`, in memory: [window, pane, value].

    Values are skewed, have three places, and come in no order.
    """
    nth = F.col("id")
    skewed = F.round(F.exp(F.randn(seed=1)) * 100, 3)
    rows = spark.range(0, VALUES, numPartitions=2).select(
        F.floor(nth / each).alias("window"), (nth % PANES).alias("pane"), skewed.alias("value")
    )
    cached = rows.cache()
    cached.count()
    return cached


def lift_panes(events: DataFrame, size: int) -> DataFrame:
    """The panes of `events` by sketches of `size`."""
    sketch = F.call_function("kll_sketch_agg_double", F.col("value"), F.lit(size))
    return events.groupBy("window", "pane").agg(sketch.alias("sketch"))


def value_windows(panes: DataFrame, size: int) -> DataFrame:
    """The quantile of each window of stored `panes`."""
    merged = F.call_function("kll_merge_agg_double", F.col("sketch"), F.lit(size))
    value: Column = F.call_function("kll_sketch_get_quantile_double", "sketch", F.lit(RANK))
    return panes.groupBy("window").agg(merged.alias("sketch")).select("window", value)


def measure_size(spark: SparkSession, events: DataFrame, size: int, folder: Path) -> Took:
    """One round of one size."""
    path = str(folder / str(size))

    def store() -> None:
        lift_panes(events, size).write.option("compression", "zstd").mode("overwrite").parquet(path)

    def merge() -> None:
        # The format noop computes every row and writes none.
        found = value_windows(spark.read.parquet(path), size)
        found.write.format("noop").mode("overwrite").save()

    lift, merged = _time(spark, store), _time(spark, merge)
    (counted,) = spark.read.parquet(path).agg(F.sum(F.octet_length("sketch"))).collect()
    stored = sum(file.stat().st_size for file in Path(path).glob("*.parquet"))
    return Took(lift, merged, counted[0], stored)


def _time(spark: SparkSession, action: Callable[[], None]) -> float:
    before = cpu_seconds(spark)
    action()
    # What the JVM's collector still has to do belongs to the action.
    time.sleep(0.1)
    return cpu_seconds(spark) - before


def measure_shape(
    spark: SparkSession, each: int, sizes: list[int], rounds: int, folder: Path
) -> list[list[object]]:
    """One row for each size, with ratios to the first of them."""
    events = make_events(spark, each)
    took: dict[int, list[Took]] = {size: [] for size in sizes}
    for n in range(rounds + 1):
        for size in sizes[n % len(sizes) :] + sizes[: n % len(sizes)]:
            found = measure_size(spark, events, size, folder)
            # The first round warms the JVM up, so it does not count.
            if n:
                took[size].append(found)
    events.unpersist()
    rows: list[list[object]] = []
    for size in sizes:
        lift = statistics.median(each.lift for each in took[size])
        merge = statistics.median(each.merge for each in took[size])
        pairs = zip(took[size], took[sizes[0]], strict=True)
        ratio = statistics.median((a.lift + a.merge) / (b.lift + b.merge) for a, b in pairs)
        last, first = took[size][-1], took[sizes[0]][-1]
        panes = VALUES // each * PANES
        rows.append(
            [
                f"{size:,}",
                f"{lift:.2f}",
                f"{merge:.2f}",
                f"{ratio:.2f}",
                f"{last.bytes / panes:,.0f}",
                f"{last.bytes / first.bytes:.2f}",
                f"{last.stored / first.stored:.2f}",
            ]
        )
    return rows


def main() -> int:
    """Prints a table for each shape."""
    parser = argparse.ArgumentParser(description="the cost of quantiles by sketches of any size")
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, EXACT])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    spark = spark_session("quantiles")
    heads = ["size", "lift CPU s", "merge CPU s", "ratio", "bytes/pane", "ratio", "stored"]
    with temporary_directory("quantiles") as folder:
        for each in SHAPES:
            rows = measure_shape(spark, each, options.sizes, options.rounds, folder)
            title = f"windows of {each:,} values, {PANES} panes each"
            Printer(as_json=False).table(heads, rows, title)
    return 0


if __name__ == "__main__":
    sys.exit(main())
