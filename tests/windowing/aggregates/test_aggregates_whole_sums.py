"""Sums of 64-bit integers at the ends of their type, beside the integers of Python."""

import random
from decimal import Decimal

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import Input
from windowing.aggregates.sums import avg, sum_of

LEAST, MOST = -(1 << 63), (1 << 63) - 1


def draw_groups() -> list[list[int | None]]:
    """Groups whose sums are just inside of the type, just outside of it, and anywhere."""
    draw = random.Random(5)
    edges = [LEAST, LEAST + 1, -(1 << 32), -1, 0, 1, (1 << 32) - 1, 1 << 32, MOST - 1, MOST]
    groups: list[list[int | None]] = [[None], [None, 3], [LEAST, -1], [MOST, 1], [MOST, LEAST]]
    for _ in range(300):
        size = draw.randrange(1, 6)
        groups.append([draw.choice((*edges, draw.randrange(LEAST, MOST))) for _ in range(size)])
    return groups


def test_sums_are_those_of_whole_numbers_or_null(spark: SparkSession) -> None:
    groups = draw_groups()
    rows = [(number, value) for number, group in enumerate(groups) for value in group]
    events = spark.createDataFrame(rows, "number bigint, v bigint")
    of = Input("v", F.col("v"), T.LongType(), ())
    total, mean = sum_of(of), avg(of)
    parts = {part.name: part for part in (*total.parts, *mean.parts)}.values()
    merged = events.groupBy("number").agg(*(part.lift.alias(part.name) for part in parts))
    overflow = F.lit(False) if total.overflow is None else total.overflow
    found = merged.select("number", total.lower, overflow, mean.lower).collect()
    assert len(found) == len(groups)
    kinds = set()
    for number, value, is_lost, average in found:
        known = [v for v in groups[number] if v is not None]
        whole = sum(known)
        fits = LEAST <= whole <= MOST
        kinds.add(fits)
        assert value == (whole if known and fits else None), groups[number]
        assert bool(is_lost) == (bool(known) and not fits), groups[number]
        # Spark divides the nearest double by the number of values.
        assert average == (float(Decimal(whole)) / len(known) if known else None), groups[number]
    assert kinds == {True, False}


def test_a_sum_of_doubles_that_leaves_its_type_is_lost(spark: SparkSession) -> None:
    groups = [[1e308, 1e308], [1e308, -1e308, 1.0], [None], [-1e308, -1e308, 1e308, 1e308, 1e308]]
    # Each value is a partial of its own, so infinities of both signs can come together.
    rows = [(n, p, v) for n, group in enumerate(groups) for p, v in enumerate(group)]
    events = spark.createDataFrame(rows, "number bigint, piece bigint, v double")
    values = Input("v", F.col("v"), T.DoubleType(), ())
    total, mean = sum_of(values), avg(values)
    halves = events.groupBy("number", F.col("piece") < 2).agg(
        *(part.lift.alias(part.name) for part in total.parts)
    )
    merged = halves.groupBy("number").agg(
        *(part.merge(part.name).alias(part.name) for part in total.parts)
    )
    assert total.overflow is not None and mean.overflow is not None
    shown = (total.lower, total.overflow, mean.lower, mean.overflow)
    found = merged.select("number", *shown).orderBy("number").collect()
    assert [tuple(row)[1:] for row in found] == [
        (None, True, None, True),
        (1.0, False, 1.0 / 3, False),
        (None, False, None, False),
        (None, True, None, True),
    ]  # fmt: skip
