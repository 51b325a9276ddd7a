"""Quantiles do not depend on where, in which parts or how often they are computed.

Up to `EXACT` values they are those of a plain loop, of more within their error.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tests.windowing.aggregates.events import PIPELINE
from tests.windowing.aggregates.plain import quantile
from windowing.aggregates.algebra import Algebra, Part
from windowing.aggregates.sketches import EMPTY, EXACT, FEW
from windowing.columns import TIME
from windowing.merge.frame import lower_partials
from windowing.panes.frame import algebras_of, parts_of
from windowing.spec.kinds import Aggregate

RANKS = (0.0, 0.001, 0.05, 0.07, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0)
SIZES = (1, 2, 20, 100, 199, 200, 201, 1_000, EXACT - 1, EXACT)
ROUNDS = 8
"""Each has other pieces and another order of merging."""
SCHEMA = T.StructType(
    [
        T.StructField("window", T.LongType()),
        T.StructField("whole", T.LongType()),
        T.StructField("real", T.DoubleType()),
        T.StructField(TIME, T.LongType()),
    ]
)
AGGREGATES = [
    Aggregate(f"{column}_{n}", "quantile", column, rank)
    for column in ("whole", "real")
    for n, rank in enumerate(RANKS)
]
Row = tuple[int, int, float]
"""The window of an event, and its two values."""


@dataclass(frozen=True)
class Pieces:
    """How events are lifted, and the partials of each window in each round."""

    algebras: dict[str, Algebra]
    parts: list[Part]
    partials: DataFrame


def make_rows(sizes: Sequence[int]) -> list[Row]:
    """A window of each size; some values are frequent, some negative, some far from all others."""
    rng = Random(sum(sizes))
    return [
        (window, rng.choice((-3, 0, rng.randrange(10**15), rng.randrange(50))), rng.gauss(1e9, 1))
        for window, size in enumerate(sizes)
        for _ in range(size)
    ]


def frame(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    """The rows as events, each with a time of its own."""
    windows, whole, real = zip(*rows, strict=True)
    columns = {"window": windows, "whole": whole, "real": real, TIME: range(len(rows))}
    return spark.createDataFrame(pa.table({n: list(v) for n, v in columns.items()}), SCHEMA)


def merge_in_rounds(spark: SparkSession, rows: Sequence[Row]) -> Pieces:
    """Events lifted in 1 to 40 pieces of each window, which are merged in two steps."""
    algebras = algebras_of(PIPELINE, AGGREGATES, SCHEMA)
    parts = parts_of(algebras.values())
    merged = [part.merged() for part in parts]
    rounds = F.explode(F.sequence(F.lit(0), F.lit(ROUNDS - 1)))
    events = frame(spark, rows).withColumn("round", rounds)
    piece = _draw(1 + _draw(F.lit(40), "round"), TIME, "round")
    pieces = events.groupBy("round", "window", piece.alias("piece")).agg(
        *(part.lifted() for part in parts)
    )
    some = _draw(F.lit(3), "piece", "round").alias("some")
    partials = pieces.groupBy("round", "window", some).agg(*merged)
    return Pieces(algebras, parts, partials.groupBy("round", "window").agg(*merged))


def _draw(below: Column, *names: str) -> Column:
    return F.pmod(F.xxhash64(*names), below)


def values_of(pieces: Pieces) -> dict[int, list[dict[str, Any]]]:
    """The rows of each window, one for each round."""
    lowered = lower_partials(pieces.partials, ["window"], pieces.algebras)
    found = defaultdict(list)
    for row in lowered.collect():
        found[row["window"]].append(row.asDict())
    return found


def test_up_to_the_size_of_a_sketch_every_way_of_merging_gives_the_exact_value(
    spark: SparkSession,
) -> None:
    rows = make_rows(SIZES)
    found = values_of(merge_in_rounds(spark, rows))
    assert len(found) == len(SIZES)
    for window, of_rounds in found.items():
        values = {
            "whole": [whole for at, whole, _ in rows if at == window],
            "real": [real for at, _, real in rows if at == window],
        }
        assert len(of_rounds) == ROUNDS
        for aggregate in AGGREGATES:
            expected = quantile(values[aggregate.column or ""], aggregate.argument or 0.0)
            got = {row[aggregate.name] for row in of_rounds}
            assert got == {expected}, (SIZES[window], aggregate)
            near = {row.get(f"__low_{aggregate.name}") for row in of_rounds}
            assert near == {None}, "an exact value has no other that is as good"


def test_of_more_values_each_computation_is_as_good_as_any_other(spark: SparkSession) -> None:
    sizes = (EXACT + 1, 8 * EXACT)
    found = values_of(merge_in_rounds(spark, make_rows(sizes)))
    for window, of_rounds in found.items():
        for aggregate in AGGREGATES:
            values = [row[aggregate.name] for row in of_rounds]
            if aggregate.argument in (0.0, 1.0):
                assert len(set(values)) == 1
                continue
            for row in of_rounds:
                low, high = row[f"__low_{aggregate.name}"], row[f"__high_{aggregate.name}"]
                assert low <= min(values) <= max(values) <= high, (sizes[window], aggregate)


@pytest.mark.parametrize("each", [FEW, FEW + 1, 3_000])
def test_sketches_of_earlier_releases_are_merged_with_those_of_today(
    spark: SparkSession, each: int
) -> None:
    """Those that contain all their values are as good as new; others keep the error they had."""
    rng = Random(each)
    values = [rng.randrange(10**9) for _ in range(3 * each)]
    rows = [(0, value, float(value)) for value in values]
    algebras = algebras_of(PIPELINE, AGGREGATES[: len(RANKS)], SCHEMA)
    (part,) = [part for part in parts_of(algebras.values()) if part.name == "whole__kll"]
    # Without an argument Spark's sketches have the size that they had before.
    earlier = F.call_function("kll_sketch_agg_bigint", F.col("whole")).alias(part.name)
    events = frame(spark, rows).withColumn("piece", F.pmod(F.col(TIME), F.lit(3)))
    stored = events.where("piece > 0").groupBy("piece").agg(earlier)
    fresh = events.where("piece = 0").groupBy("piece").agg(part.lifted())
    for partials in (stored.unionByName(fresh), fresh.unionByName(stored)):
        merged = partials.agg(part.merged())
        found = merged.select(*(algebras[name].lower.alias(name) for name in algebras)).collect()[0]
        for aggregate in AGGREGATES[: len(RANKS)]:
            rank = aggregate.argument or 0.0
            expected = quantile(values, rank)
            if each <= FEW:
                assert found[aggregate.name] == expected
            else:
                at = sum(value <= found[aggregate.name] for value in values) / len(values)
                assert abs(at - max(rank, 1 / len(values))) <= 0.03


@pytest.mark.parametrize("kind", ["bigint", "double"])
def test_a_pane_of_few_values_is_as_small_to_merge_as_it_was(
    spark: SparkSession, kind: str
) -> None:
    """A merge allocates what fits into each sketch that it reads."""
    made = f"kll_sketch_agg_{kind}(cast(null as {kind}), {FEW})"
    assert bytes(spark.sql(f"select {made} as empty").collect()[0]["empty"]) == EMPTY
    column = "whole" if kind == "bigint" else "real"
    aggregates = [Aggregate("a", "quantile", column, 0.5)]
    (part,) = [p for a in algebras_of(PIPELINE, aggregates, SCHEMA).values() for p in a.parts]
    sizes = (1, 2, FEW, FEW + 1)
    rows = [(window, n, float(n)) for window, size in enumerate(sizes) for n in range(size)]
    events = frame(spark, rows)
    as_it_was = F.call_function(f"kll_sketch_agg_{kind}", F.col(column)).alias("earlier")
    found = {
        row["window"]: row
        for row in events.groupBy("window").agg(part.lifted(), as_it_was).collect()
    }
    for window, size in enumerate(sizes):
        now, earlier = bytes(found[window][part.name]), bytes(found[window]["earlier"])
        places = int.from_bytes(now[4:6], "little")
        assert places == (FEW if size <= FEW else EXACT)
        assert len(now) == len(earlier) or size > FEW
