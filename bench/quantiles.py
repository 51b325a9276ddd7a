"""Measures what exact quantiles cost, beside sketches of 200 values, which releases had before.

    python -m bench.quantiles [--rounds 5]

Windows have 10 to 1,000,000 values, and five panes each. Panes are computed and stored; then they
are merged, and windows get their quantile. In the last shapes each pane is in twelve windows. Both
ways take turns, and figures are the medians of their rounds; ratios are those of pairs of rounds.
Bytes are those of a pane before it is compressed; `stored` is the ratio of the files.
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
from pyspark.sql import types as T

from bench.fold import cpu_seconds
from bench.themes import temporary_directory
from jobs.console import Printer
from jobs.session import spark_session
from windowing.aggregates.algebra import Algebra, Input, Part
from windowing.aggregates.sketches import quantile

PANES = 5
RANK = 0.95
BEFORE, NOW = "before", "now"


@dataclass(frozen=True)
class Shape:
    """How many values a window has, how many there are, and in how many windows each pane is."""

    each: int
    values: int
    windows: int = 1


SHAPES = (
    Shape(10, 200_000),
    Shape(200, 500_000),
    Shape(2_000, 1_000_000),
    Shape(20_000, 1_000_000),
    Shape(1_000_000, 1_000_000),
    Shape(10, 100_000, windows=12),
    Shape(200, 200_000, windows=12),
)


@dataclass(frozen=True)
class Took:
    """CPU seconds of both steps, and the bytes of the panes: as they are and in files."""

    lift: float
    merge: float
    bytes: float
    stored: int


def make_algebras() -> dict[str, Algebra]:
    """The quantile as it was computed before, and as it is now."""

    def merge(sketches: Column) -> Column:
        return F.call_function("kll_merge_agg_double", sketches)

    lifted = F.call_function("kll_sketch_agg_double", F.col("value"))
    value = F.call_function("kll_sketch_get_quantile_double", F.col("v__kll"), F.lit(RANK))
    now = quantile(Input("v", F.col("value"), T.DoubleType(), (), RANK))
    return {BEFORE: Algebra((Part("v__kll", lifted, merge),), value), NOW: now}


def make_events(spark: SparkSession, shape: Shape) -> DataFrame:
    """The values in memory, skewed, with three places, in no order: [window, pane, value]."""
    nth = F.col("id")
    skewed = F.round(F.exp(F.randn(seed=1)) * 100, 3)
    rows = spark.range(0, shape.values, numPartitions=2).select(
        F.floor(nth / shape.each).alias("window"),
        (nth % PANES).alias("pane"),
        skewed.alias("value"),
    )
    cached = rows.cache()
    cached.count()
    return cached


def measure_once(
    spark: SparkSession, events: DataFrame, algebra: Algebra, windows: int, folder: Path
) -> Took:
    """One round of one way."""
    (part,) = algebra.parts
    path = str(folder / "panes")

    def store() -> None:
        panes = events.groupBy("window", "pane").agg(part.lifted())
        panes.write.option("compression", "zstd").mode("overwrite").parquet(path)

    def merge() -> None:
        later = F.sequence(F.col("window"), F.col("window") + windows - 1)
        panes = spark.read.parquet(path).withColumn("window", F.explode(later))
        found = panes.groupBy("window").agg(part.merged()).select("window", algebra.lower)
        # The format noop computes every row and writes none.
        found.write.format("noop").mode("overwrite").save()

    lift, merged = _time(spark, store), _time(spark, merge)
    ((size,),) = spark.read.parquet(path).agg(F.avg(F.octet_length(part.name))).collect()
    stored = sum(file.stat().st_size for file in Path(path).glob("*.parquet"))
    return Took(lift, merged, size, stored)


def _time(spark: SparkSession, action: Callable[[], None]) -> float:
    before = cpu_seconds(spark)
    action()
    # What the JVM's collector still has to do belongs to the action.
    time.sleep(0.1)
    return cpu_seconds(spark) - before


def measure_shape(spark: SparkSession, shape: Shape, rounds: int, folder: Path) -> list[object]:
    """The row of the table."""
    events = make_events(spark, shape)
    algebras = make_algebras()
    took: dict[str, list[Took]] = {name: [] for name in algebras}
    for n in range(rounds + 1):
        for name in list(algebras)[:: -1 if n % 2 else 1]:
            found = measure_once(spark, events, algebras[name], shape.windows, folder)
            # The first round warms the JVM up, so it does not count.
            if n:
                took[name].append(found)
    events.unpersist()
    before, now = took[BEFORE], took[NOW]
    pairs = list(zip(now, before, strict=True))
    return [
        f"{shape.each:,}" + (f", {shape.windows} windows a pane" if shape.windows > 1 else ""),
        f"{shape.values:,}",
        *(f"{statistics.median(t.lift + t.merge for t in of):.2f}" for of in (before, now)),
        f"{statistics.median(a.lift / b.lift for a, b in pairs):.2f}",
        f"{statistics.median(a.merge / b.merge for a, b in pairs):.2f}",
        *(f"{of[-1].bytes:,.0f}" for of in (before, now)),
        f"{now[-1].stored / before[-1].stored:.2f}",
    ]


def main() -> int:
    """Prints a table of all shapes."""
    parser = argparse.ArgumentParser(description="the cost of exact quantiles")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    spark = spark_session("quantiles")
    with temporary_directory("quantiles") as folder:
        rows = []
        for shape in SHAPES:
            rows.append(measure_shape(spark, shape, options.rounds, folder))
            print(*rows[-1], file=sys.stderr, flush=True)
    heads = ["window", "values", "CPU s before", "now", "lift", "merge", "bytes before", "now"]
    Printer(as_json=False).table([*heads, "stored"], rows, "quantiles")
    return 0


if __name__ == "__main__":
    sys.exit(main())
