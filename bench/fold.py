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

from bench.contenders import START_US
from jobs.console import Printer
from jobs.session import spark_session
from windowing.columns import BASE, END, INDEX, ORDER, START, TIME
from windowing.merge.frame import lower_partials
from windowing.panes.frame import algebras_of, parts_of
from windowing.spec.kinds import EventDriven
from windowing.spec.load import load_pipeline
from windowing.windows.ordered import cut_windows

SECOND_US = 1_000_000
SHAPES = {
    "1 key x 100,000 events": (1, 100_000, 99),
    "1,000 keys x 100 events": (1_000, 100, 9),
}
"""Keys, events of each, and the delta: a window is delta + 1 events long."""
COLUMNS = f"user long, {START} timestamp, {END} timestamp, {INDEX} long, n long, total long"


@dataclass(frozen=True)
class Load:
    """The events of one shape, and the delta of the window."""

    spark: SparkSession
    events: DataFrame
    delta: int


def make_load(spark: SparkSession, keys: int, each: int, delta: int) -> Load:
    """`keys` times `each` events, a second apart, whose attribute grows by one.

    The rows are shuffled and in memory.
    """
    nth = F.col("id") % each
    key = F.floor(F.col("id") / each)
    time_us = F.lit(START_US) + nth * SECOND_US
    # These are the columns that the engine has of an event when it makes order-dependent windows.
    rows = spark.range(keys * each).select(
        key.cast("long").alias("user"),
        time_us.alias(TIME),
        F.struct(time_us.alias("at0")).alias(ORDER),
        nth.alias("attr"),
        F.pmod(F.xxhash64("id"), F.lit(1_000)).alias("amount"),
        F.lit(0).cast("long").alias(BASE),
    )
    cached = rows.orderBy(F.xxhash64("id")).repartition(2).cache()
    cached.count()
    return Load(spark, cached, delta)


def fold_events(load: Load) -> DataFrame:
    """The engine's own windows."""
    spec = {
        "name": "fold",
        "lake": "/nowhere",
        "source": {"table": "/nowhere/events", "event_time": "at", "key": ["user"]},
        "aggregates": {"n": "count()", "total": "sum(amount)"},
        "windows": {"grown": {"kind": "delta", "attribute": "attr", "delta": load.delta}},
    }
    pipeline = load_pipeline(spec)
    (window,) = (each for each in pipeline.ordered if isinstance(each, EventDriven))
    made = algebras_of(pipeline, window.aggregates, load.events.schema)
    partials = cut_windows(load.events, window, ["user"], parts_of(made.values()))
    found = lower_partials(partials, ["user", START, END, INDEX], made)
    return found.drop("__overflow")


def cut_with_pandas(load: Load) -> DataFrame:
    """The same windows by a loop over each key's events."""
    delta = load.delta

    # Spark sends this function to its Python workers, so it refers to no Spark object.
    def cut_windows(rows: pd.DataFrame) -> pd.DataFrame:
        ordered = rows.sort_values(TIME)
        index = []
        first_value = None
        number = -1
        for value in ordered["attr"].tolist():
            if first_value is None or value - first_value > delta:
                first_value = value
                number += 1
            index.append(number)
        grouped = ordered.assign(**{INDEX: index}).groupby(INDEX)
        found = grouped.agg(
            first_us=(TIME, "min"),
            last_us=(TIME, "max"),
            n=(TIME, "size"),
            total=("amount", "sum"),
        ).reset_index()
        start = pd.to_datetime(found["first_us"], unit="us", utc=True)
        # The end of such a window is 1 microsecond after its last event.
        end = pd.to_datetime(found["last_us"] + 1, unit="us", utc=True)
        complete = found.assign(**{"user": rows["user"].iloc[0], START: start, END: end})
        return complete[["user", START, END, INDEX, "n", "total"]]

    events = load.events.select("user", TIME, "attr", "amount")
    return events.groupBy("user").applyInPandas(cut_windows, COLUMNS)


CONTENDERS: dict[str, Callable[[Load], DataFrame]] = {
    "fold": fold_events,
    "applyInPandas": cut_with_pandas,
}


def measure_once(load: Load, make: Callable[[Load], DataFrame]) -> tuple[float, float]:
    """Wall seconds and CPU seconds, Python workers included, until every window is made."""
    wall_before = time.monotonic()
    cpu_before = cpu_seconds(load.spark)
    # The format noop computes every row and writes none.
    make(load).write.format("noop").mode("overwrite").save()
    wall = time.monotonic() - wall_before
    return wall, cpu_seconds(load.spark) - cpu_before


def cpu_seconds(spark: SparkSession) -> float:
    """CPU seconds so far of the JVM and of the processes it started."""
    jvm = psutil.Process(int(spark._jvm.java.lang.ProcessHandle.current().pid()))  # type: ignore[union-attr]
    times = [p.cpu_times() for p in (jvm, *jvm.children(recursive=True))]
    return float(sum(t.user + t.system for t in times))


def digest_windows(made: DataFrame) -> tuple[int, int]:
    """Windows and a digest of them."""
    # The order of rows does not matter to an XOR of their hashes.
    digest = F.bit_xor(F.xxhash64(*sorted(made.columns)))
    return tuple(made.agg(F.count("*"), digest).collect()[0])


def measure_contenders(load: Load, rounds: int) -> list[list[object]]:
    """One row for each contender: the least of the rounds, after one that does not count.

    Each round begins with another contender.
    """
    digests = {name: digest_windows(make(load)) for name, make in CONTENDERS.items()}
    if len(set(digests.values())) != 1:
        sys.exit(f"the windows differ: {digests}")
    names = list(CONTENDERS)
    least_wall = dict.fromkeys(names, float("inf"))
    least_cpu = dict.fromkeys(names, float("inf"))
    for n in range(rounds + 1):
        for name in names[n % 2 :] + names[: n % 2]:
            wall, cpu = measure_once(load, CONTENDERS[name])
            # The first round warms the JVM up, so it does not count.
            if n > 0:
                least_wall[name] = min(least_wall[name], wall)
                least_cpu[name] = min(least_cpu[name], cpu)
    rows: list[list[object]] = []
    for name in names:
        wall = least_wall[name]
        cpu = least_cpu[name]
        ratios = [f"{wall / least_wall['fold']:.2f}", f"{cpu / least_cpu['fold']:.2f}"]
        rows.append([name, f"{wall:.2f}", f"{cpu:.2f}", *ratios])
    return rows


def main() -> int:
    """Prints a table for each shape."""
    parser = argparse.ArgumentParser(description="the fold of delta windows beside applyInPandas")
    parser.add_argument("--rounds", type=int, default=8)
    rounds = parser.parse_args().rounds
    spark = spark_session("fold")
    printer = Printer(as_json=False)
    heads = ["cut by", "wall s", "CPU s", "wall / fold", "CPU / fold"]
    for title, (keys, each, delta) in SHAPES.items():
        load = make_load(spark, keys, each, delta)
        printer.table(heads, measure_contenders(load, rounds), title)
    return 0


if __name__ == "__main__":
    sys.exit(main())
