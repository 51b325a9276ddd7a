"""Windows that are cut by a fold over a key's events, compared with the oracle's plain loop."""

import random
from collections.abc import Iterator
from time import monotonic

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests import oracle
from windowing.aggregates.algebra import rows_part
from windowing.columns import BASE, ORDER, START, TIME
from windowing.spec.kinds import CappedSession, Delta
from windowing.windows import fold, ordered

SECOND = 1_000_000
DELTA = Delta("w", "attr", "4", None, ())
CAPPED = CappedSession("w", 3 * SECOND, 5 * SECOND, ())
PLAIN: dict[Delta | CappedSession, oracle.Window] = {
    DELTA: oracle.Delta("w", 4),
    CAPPED: oracle.Session("w", 3 * SECOND, 5 * SECOND),
}
KINDS = {"delta": DELTA, "capped session": CAPPED}
FEW = 24_000
"""Events at which the square of the number of windows is far more than the rest of the work."""
Cut = list[tuple[str, int, int]]


def draw_events(sizes: list[int], seed: int) -> Iterator[oracle.Event]:
    """One key for each size, with so many events; some of them at the same time."""
    draw = random.Random(seed)
    for size in sizes:
        t = 0
        for n in range(size):
            t += draw.choice((0, 1, 2, 2, 3, 4)) * SECOND
            yield oracle.Event(f"{size}", t, attr=draw.randrange(12), order=n)


def frame_of(spark: SparkSession, events: list[oracle.Event]) -> DataFrame:
    shuffled = random.Random(0).sample(events, len(events))
    rows = [(e.key, e.t, e.order, e.attr) for e in shuffled]
    frame = spark.createDataFrame(rows, f"key string, {TIME} bigint, nth bigint, attr bigint")
    return frame.withColumns({ORDER: F.struct(TIME, "nth"), BASE: F.lit(0).cast("bigint")})


def cut_by_engine(events: DataFrame, window: Delta | CappedSession) -> Cut:
    """(key, start, number of events) of each window."""
    found = ordered.cut_windows(events, window, ["key"], [rows_part()])
    start_us = F.unix_micros(START).alias("start_us")
    return sorted(tuple(row) for row in found.select("key", start_us, "rows").collect())


def cut_by_loop(events: list[oracle.Event], window: Delta | CappedSession) -> Cut:
    found: Cut = []
    for key in {e.key for e in events}:
        mine = sorted(e for e in events if e.key == key)
        for held, _ in oracle.in_turn(PLAIN[window], mine):
            found.append((str(key), held[0].t or 0, len(held)))
    return sorted(found)


@pytest.mark.parametrize("kind", KINDS)
def test_windows_of_keys_of_any_length_are_those_of_a_plain_loop(
    kind: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold, "BLOCK", 3)
    monkeypatch.setattr(fold, "LARGE_BLOCK", 9)
    for seed in range(3):
        events = list(draw_events(list(range(1, 40)), seed))
        found = cut_by_engine(frame_of(spark, events), KINDS[kind])
        assert found == cut_by_loop(events, KINDS[kind]), seed


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_windows_at_the_limits_of_blocks_are_those_of_a_plain_loop(
    kind: str, spark: SparkSession
) -> None:
    sizes = []
    for limit in (fold.BLOCK, 2 * fold.BLOCK, fold.LARGE_BLOCK):
        sizes += [limit - 1, limit, limit + 1]
    events = list(draw_events(sizes, seed=1))
    found = cut_by_engine(frame_of(spark, events), KINDS[kind])
    assert found == cut_by_loop(events, KINDS[kind])


@pytest.mark.slow
def test_a_key_with_many_windows_costs_little_more_than_one_with_a_single_window(
    spark: SparkSession,
) -> None:
    single = Delta("w", "attr", f"{FEW}", None, ())
    many = Delta("w", "attr", "0.5", None, ())
    numbers = spark.range(FEW).select(F.lit("a").alias("key"), F.col("id").alias("attr"))
    times = numbers.withColumns({TIME: F.col("attr") * SECOND, BASE: F.lit(0).cast("bigint")})
    events = times.withColumn(ORDER, F.struct(TIME)).cache()
    try:
        # The first round warms the JVM up, so it does not count.
        rounds = [(measure_cut(events, single), measure_cut(events, many)) for _ in range(4)][1:]
    finally:
        events.unpersist()
    in_one = min(seconds for seconds, _ in rounds)
    in_many = min(seconds for _, seconds in rounds)
    # It is less than twice as much. Where each window cost a copy of all before it, it was seven
    # times as much.
    assert in_many < 4 * in_one, (in_one, in_many)


def measure_cut(events: DataFrame, window: Delta | CappedSession) -> float:
    """The seconds until every window is made; none is kept."""
    begun = monotonic()
    found = ordered.cut_windows(events, window, ["key"], [rows_part()])
    found.write.format("noop").mode("overwrite").save()
    return monotonic() - begun
