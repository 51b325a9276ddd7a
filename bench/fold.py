"""Measures how delta windows are cut.

The fold over a key's sorted values in Spark expressions, beside the same cut in Python, key by key.

    python -m bench.fold [--rounds 8]

Both read the same cached events and make the same windows with a count and a sum; their tables are
compared before anything is timed.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.__main__ import START_US
from jobs.console import Printer
from jobs.session import spark_session
from windowing.columns import BASE, END, INDEX, ORDER, START, TIME
from windowing.merge.frame import lower_partials
from windowing.panes.frame import algebras_of, parts_of
from windowing.spec.load import load_pipeline
from windowing.windows.ordered import windows

SECOND_US = 1_000_000
SHAPES = {"1 key x 100,000 events": (1, 100_000, 99), "1,000 keys x 100 events": (1_000, 100, 9)}
"""Keys, events of each, and the delta: a window is delta + 1 events long."""
COLUMNS = f"user long, {START} timestamp, {END} timestamp, {INDEX} long, n long, total long"


@dataclass(frozen=True)
class Load:
    """The events of one shape, and the delta of the window."""

    spark: SparkSession
    events: DataFrame
    delta: int


def load(spark: SparkSession, keys: int, each: int, delta: int) -> Load:
    """`keys` times `each` events, a second apart, whose attribute grows by one.

    The rows are shuffled and in memory.
    """
    nth, key = F.col("id") % each, F.floor(F.col("id") / each)
    time_us = F.lit(START_US) + nth * SECOND_US
    row = spark.range(keys * each).select(
        key.cast("long").alias("user"), time_us.alias(TIME),
        F.struct(time_us.alias("at0")).alias(ORDER), nth.alias("attr"),
        F.pmod(F.xxhash64("id"), F.lit(1_000)).alias("amount"), F.lit(0).cast("long").alias(BASE),
    )  # fmt: skip
    cached = row.orderBy(F.xxhash64("id")).repartition(2).cache()
    cached.count()
    return Load(spark, cached, delta)


def fold(load: Load) -> DataFrame:
    """The engine's own windows."""
    spec = {
        "name": "fold",
        "lake": "/nowhere",
        "source": {"table": "/nowhere/events", "event_time": "at", "key": ["user"]},
        "aggregates": {"n": "count()", "total": "sum(amount)"},
        "windows": {"grown": {"kind": "delta", "attribute": "attr", "delta": load.delta}},
    }
    pipeline = load_pipeline(spec)
    (window,) = pipeline.counted
    made = algebras_of(pipeline, window.aggregates, load.events.schema)
    found = windows(load.events, window, ["user"], parts_of(made.values()))
    return lower_partials(found, ["user", START, END, INDEX], window.aggregates, made).drop(
        "__overflow"
    )


def pandas(load: Load) -> DataFrame:
    """The same windows by a loop over each key's events."""
    delta = load.delta

    def cut(rows: pd.DataFrame) -> pd.DataFrame:
        ordered = rows.sort_values(TIME)
        index, first, nth = [], None, -1
        for value in ordered["attr"].tolist():
            if first is None or value - first > delta:
                first, nth = value, nth + 1
            index.append(nth)
        grouped = ordered.assign(**{INDEX: index}).groupby(INDEX)
        found = grouped.agg(
            first_us=(TIME, "min"), last_us=(TIME, "max"), n=(TIME, "size"), total=("amount", "sum")
        ).reset_index()
        start, end = (
            pd.to_datetime(us, unit="us", utc=True)
            for us in (found["first_us"], found["last_us"] + 1)
        )
        return found.assign(**{"user": rows["user"].iloc[0], START: start, END: end})[
            ["user", START, END, INDEX, "n", "total"]
        ]

    return (
        load.events.select("user", TIME, "attr", "amount")
        .groupBy("user")
        .applyInPandas(cut, COLUMNS)
    )


CONTENDERS: dict[str, Callable[[Load], DataFrame]] = {"fold": fold, "applyInPandas": pandas}


def took(load: Load, make: Callable[[Load], DataFrame]) -> tuple[float, float]:
    """Wall seconds and CPU seconds, Python workers included, until every window is made."""
    wall, used = time.monotonic(), cpu(load.spark)
    make(load).write.format("noop").mode("overwrite").save()
    return time.monotonic() - wall, cpu(load.spark) - used


def cpu(spark: SparkSession) -> float:
    """CPU seconds so far of the JVM and of the processes it started."""
    jvm = psutil.Process(int(spark._jvm.java.lang.ProcessHandle.current().pid()))  # type: ignore[union-attr]
    times = [p.cpu_times() for p in (jvm, *jvm.children(recursive=True))]
    return float(sum(t.user + t.system for t in times))


def digest(made: DataFrame) -> tuple[int, int]:
    """Windows and a digest of them."""
    return tuple(made.agg(F.count("*"), F.bit_xor(F.xxhash64(*sorted(made.columns)))).collect()[0])


def measured(load: Load, rounds: int) -> list[list[object]]:
    """One row for each contender: the least of the rounds, after one that does not count.

    Each round begins with another contender.
    """
    digests = {name: digest(make(load)) for name, make in CONTENDERS.items()}
    if len(set(digests.values())) != 1:
        sys.exit(f"the windows differ: {digests}")
    names, best = list(CONTENDERS), {name: (float("inf"), float("inf")) for name in CONTENDERS}
    for n in range(rounds + 1):
        for name in names[n % 2 :] + names[: n % 2]:
            wall, used = took(load, CONTENDERS[name])
            best[name] = (
                best[name] if n == 0 else (min(best[name][0], wall), min(best[name][1], used))
            )
    ours = best["fold"]
    return [
        [name, f"{w:.2f}", f"{c:.2f}", f"{w / ours[0]:.2f}", f"{c / ours[1]:.2f}"]
        for name, (w, c) in best.items()
    ]


def main() -> int:
    """Prints a table for each shape."""
    asked = argparse.ArgumentParser(description="the fold of delta windows beside applyInPandas")
    asked.add_argument("--rounds", type=int, default=8)
    rounds = asked.parse_args().rounds
    spark, printer = spark_session("fold"), Printer(as_json=False)
    for title, (keys, each, delta) in SHAPES.items():
        rows = measured(load(spark, keys, each, delta), rounds)
        printer.table(["cut by", "wall s", "CPU s", "wall / fold", "CPU / fold"], rows, title)
    return 0


if __name__ == "__main__":
    sys.exit(main())
