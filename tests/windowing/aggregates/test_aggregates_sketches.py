"""How far off the sketches are, over 200,000 events merged in several orders.

`pytest -s` prints what docs/aggregates.md states.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from math import sqrt
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import TIME
from windowing.location import Location
from windowing.panes.frame import algebras_of
from windowing.spec.duration import HOUR
from windowing.spec.kinds import Aggregate
from windowing.spec.pipeline import EventTime, Pipeline, Source, Watermark

EVENTS, PIECES = 200_000, 64
PIPELINE = Pipeline(
    "p",
    Location("/lake"),
    Source(Location("/source"), EventTime("ts"), ("key",)),
    Watermark(0, 0, HOUR),
    (),
)
SCHEMA = T.StructType(
    [
        T.StructField("value", T.LongType()),
        T.StructField("piece", T.LongType()),
        T.StructField(TIME, T.LongType()),
    ]
)
BOUND = 3.5 / 2_048
"""Of the events: a sketch that tracks 1,024 values has 2,048 places."""
SHARES = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999]
LEVELS: dict[str, list[Callable[[Column], Column]]] = {
    "one lift": [],
    "all at once": [lambda piece: F.lit(0)],
    "eight by eight": [lambda piece: piece % 8, lambda piece: F.lit(0)],
    "half by half": [lambda piece, n=n: piece % n for n in (32, 16, 8, 4, 2, 1)],
    "one long, one short": [
        lambda piece: F.when(piece < PIECES - 1, 0).otherwise(1),
        lambda piece: F.lit(0),
    ],
}


def _events(spark: SparkSession, values: list[int], split: str) -> DataFrame:
    """`values` in pieces: at random, or each piece with its own range of values."""
    rng = Random(1)
    at = [
        rng.randrange(PIECES) if split == "random" else n * PIECES // len(values)
        for n in range(len(values))
    ]
    columns = pa.table({"value": values, "piece": at, TIME: range(len(values))})
    return spark.createDataFrame(columns, SCHEMA).coalesce(2).cache()


def _merged(events: DataFrame, aggregates: list[Aggregate]) -> dict[str, list[Any]]:
    """The aggregates of all events, by merge order."""
    of = algebras_of(PIPELINE, aggregates, SCHEMA)
    kept = list({p.name: p for a in of.values() for p in a.parts}.values())
    lifts = [p.lift.alias(p.name) for p in kept]
    pieces = events.groupBy("piece").agg(*lifts).cache()
    found = {}
    for order, levels in LEVELS.items():
        partials = pieces if levels else events.groupBy(F.lit(0).alias("piece")).agg(*lifts)
        for level in levels:
            partials = partials.groupBy(level(F.col("piece")).alias("piece")).agg(
                *(p.merged() for p in kept)
            )
        found[order] = list(partials.select(*(of[a.name].lower for a in aggregates)).collect()[0])
    return found


def _values(shape: str) -> list[int]:
    match shape:
        case "uniform":
            return Random(2).sample(range(10**9), EVENTS)
        case "few":
            return _zipf(1_000)
        case "long-tailed":
            return _zipf(50_000)
        case "flat":  # twenty values of 0.5 % each, all others once
            return [-(n % 20) if n < EVENTS // 10 else n for n in range(EVENTS)]
        case _:
            return list(range(EVENTS))


def _zipf(distinct: int) -> list[int]:
    return Random(3).choices(range(distinct), [1 / n for n in range(1, distinct + 1)], k=EVENTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "distinct",
    [4_000, 5_000, *(pytest.param(n, marks=pytest.mark.deep) for n in (20_000, 200_000))],
)
def test_count_distinct_is_the_same_in_every_merge_order_and_near(
    spark: SparkSession, distinct: int
) -> None:
    values = [n * 7919 % distinct for n in range(EVENTS)]
    found = _merged(_events(spark, values, "random"), [Aggregate("a", "count_distinct", "value")])
    estimates = {row[0] for row in found.values()}
    off = max(abs(e / distinct - 1) for e in estimates)
    print(f"count_distinct of {distinct:,}: {sorted(estimates)}, off by {off:.2%}")
    assert len(estimates) == 1, found
    assert off <= (0 if distinct <= 4_096 else 3 / sqrt(4_096))


@pytest.mark.parametrize(
    "shape",
    [*(pytest.param(s, marks=pytest.mark.deep) for s in ("uniform", "long-tailed")), "sorted"],
)
def test_quantiles_are_near_in_rank(spark: SparkSession, shape: str) -> None:
    values = _values(shape)
    events = _events(spark, values, "range" if shape == "sorted" else "random")
    found = _merged(
        events, [Aggregate(f"a{n}", "quantile", "value", p) for n, p in enumerate(SHARES)]
    )
    ranked = sorted(values)
    errors = [
        _rank_error(ranked, q, p)
        for row in found.values()
        for q, p in zip(row, SHARES, strict=True)
    ]
    mean = sum(errors) / len(errors)
    print(f"quantile of {shape}: rank off by at most {max(errors):.2%}, mean {mean:.2%}")
    assert max(errors) <= 0.002


def _rank_error(ranked: list[int], found: int, p: float) -> float:
    """How far `p` lies outside the ranks that `found` has."""
    low, high = bisect_left(ranked, found) / len(ranked), bisect_right(ranked, found) / len(ranked)
    return max(low - p, p - high, 0.0)


@pytest.mark.parametrize(
    "shape", ["few", pytest.param("long-tailed", marks=pytest.mark.deep), "flat"]
)
def test_top_k_is_exact_for_few_values_and_near_for_many(spark: SparkSession, shape: str) -> None:
    values = _values(shape)
    found = _merged(_events(spark, values, "random"), [Aggregate("a", "top_k", "value", 100)])
    counts = Counter(values)
    exact = sorted(counts.items(), key=lambda c: (-c[1], c[0]))[:100]
    shown = [{item["value"]: item["count"] for item in items} for (items,) in found.values()]
    off = max(abs(count - counts[value]) for items in shown for value, count in items.items())
    missed = max(
        (count for items in shown for value, count in exact if value not in items), default=0
    )
    missed_share = f"most frequent value missed {missed / EVENTS:.3%}"
    print(f"top_k of {shape}: count off by at most {off / EVENTS:.3%}, {missed_share}")
    assert off <= BOUND * EVENTS
    assert missed <= 2 * BOUND * EVENTS
    if shape == "few":
        assert [list(items.items()) for items in shown] == [exact] * len(LEVELS)
