"""Sums of wide decimals against Python's integers.

They are exact in every order, and null where the result has more than 38 digits.
"""

import random
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import Algebra, Input
from windowing.aggregates.sums import sum_of

EXACT = Context(prec=60)
MOST = 10**38 - 1
SCALES = (0, 1, 6, 10, 14, 20, 27, 28, 29, 37, 38)


def algebra(scale: int) -> Algebra:
    return sum_of(Input("v", F.col("v"), T.DecimalType(38, scale), ()))


def stored(
    spark: SparkSession, scale: int, rows: Sequence[tuple[int, int, int | None]]
) -> DataFrame:
    """Partials of (group, piece, units of the last digit)."""
    schema = (
        T.StructType()
        .add("group", "integer")
        .add("piece", "integer")
        .add("v", T.DecimalType(38, scale))
    )
    values = [(g, p, None if u is None else EXACT.scaleb(Decimal(u), -scale)) for g, p, u in rows]
    given = spark.createDataFrame(values, schema).coalesce(1)
    return given.groupBy("group", "piece").agg(
        *(part.lift.alias(part.name) for part in algebra(scale).parts)
    )


def totals(partials: DataFrame, scale: int) -> dict[int, Any]:
    """By group the sum in units of the last digit, or None.

    It checks that null means overflow, and the result's type.
    """
    of = algebra(scale)
    merged = partials.groupBy("group").agg(*(part.merged() for part in of.parts))
    assert of.overflow is not None
    shown = merged.select("group", of.lower.alias("sum"), of.overflow.alias("lost"))
    assert shown.schema["sum"].dataType == T.DecimalType(38, scale)
    rows = shown.collect()
    assert all(row["lost"] == (row["sum"] is None) for row in rows)
    return {
        row["group"]: None if row["sum"] is None else int(EXACT.scaleb(row["sum"], scale))
        for row in rows
    }


def expected(rows: Sequence[tuple[int, int, int | None]]) -> dict[int, int | None]:
    sums: dict[int, int] = {}
    for group, _, units in rows:
        sums[group] = sums.get(group, 0) + (units or 0)
    return {group: total if abs(total) <= MOST else None for group, total in sums.items()}


def drawn(rng: random.Random) -> int:
    """Often at the edges: of 38 digits, of the two parts, of zero."""
    edge = rng.choice(
        [0, 1, 10**28, 10**28 - 1, 10**14, MOST, MOST // 2, 5 * 10**37, rng.randrange(MOST)]
    )
    near = min(max(edge + rng.choice([-2, -1, 0, 0, 1, 2]), 0), MOST)
    return rng.choice([-1, 1]) * near


@pytest.mark.parametrize("scale", SCALES)
def test_sums_are_those_of_integers_in_whatever_pieces(scale: int, spark: SparkSession) -> None:
    rng = random.Random(scale)
    rows = [
        (group, rng.randrange(4), drawn(rng))
        for group in range(150)
        for _ in range(rng.randrange(1, 9))
    ]
    whole = expected(rows)
    assert None in whole.values() and sum(total is not None for total in whole.values()) > 20
    assert totals(stored(spark, scale, rows), scale) == whole


def test_a_sum_that_leaves_38_digits_on_the_way_comes_back_in_every_order(
    spark: SparkSession,
) -> None:
    orders = [(1, 1, -1), (1, -1, 1), (-1, 1, 1)]
    rows = [
        (n, p if n % 2 else 0, sign * 9 * 10**37)
        for n, order in enumerate(orders)
        for p, sign in enumerate(order)
    ]
    assert totals(stored(spark, 0, rows), 0) == dict.fromkeys(range(3), 9 * 10**37)


@pytest.mark.parametrize("units", [MOST, -MOST, MOST + 1, -MOST - 1])
def test_overflow_begins_with_the_39th_digit(units: int, spark: SparkSession) -> None:
    half = abs(units) // 2
    sign = 1 if units > 0 else -1
    rows = [(0, 0, sign * half), (0, 1, sign * (abs(units) - half))]
    assert totals(stored(spark, 3, rows), 3) == {0: units if abs(units) <= MOST else None}


def test_nothing_to_add_up_is_not_lost(spark: SparkSession) -> None:
    partials = stored(spark, 2, [(0, 0, None), (0, 1, 5), (1, 0, None)])
    of = algebra(2)
    assert of.overflow is not None
    merged = partials.groupBy("group").agg(*(part.merged() for part in of.parts))
    rows = merged.select("group", of.lower.alias("sum"), of.overflow.alias("lost")).collect()
    assert {row["group"]: (row["sum"], row["lost"]) for row in rows} == {
        0: (Decimal("0.05"), False),
        1: (None, False),
    }


def of_0_1(
    spark: SparkSession, scale: int, rows: Sequence[tuple[int, int, int | None, int, int]]
) -> DataFrame:
    """Partials as release 0.1 stored them: (group, piece, sum, lost, n)."""
    schema = (
        T.StructType()
        .add("group", "integer")
        .add("piece", "integer")
        .add("v__sum", T.DecimalType(38, scale))
    )
    values = [
        (g, p, None if u is None else EXACT.scaleb(Decimal(u), -scale), lost, n)
        for g, p, u, lost, n in rows
    ]
    return spark.createDataFrame(values, schema.add("v__lost", "long").add("v__n", "long"))


@pytest.mark.parametrize("scale", [0, 10, 38])
def test_partials_of_release_0_1_are_read_on(scale: int, spark: SparkSession) -> None:
    rng = random.Random(scale)
    old = [(group, 10 + n, drawn(rng)) for group in range(60) for n in range(rng.randrange(1, 4))]
    new = [
        (group, rng.randrange(3), drawn(rng))
        for group in range(60)
        for _ in range(rng.randrange(1, 4))
    ]
    kept = of_0_1(spark, scale, [(*row, 0, 1) for row in old])
    both = kept.unionByName(stored(spark, scale, new).select(*kept.columns))
    assert totals(both, scale) == expected([*old, *new])
    assert totals(kept, scale) == expected(old)


def test_what_release_0_1_had_lost_stays_lost(spark: SparkSession) -> None:
    lost = of_0_1(
        spark,
        0,
        [
            (0, 9, None, 1, 2),
            (1, 9, None, 0, 0),
            (2, 9, None, 1, 2),
            (2, 8, None, 1, 2),
            (2, 7, None, 2, 4),
        ],
    )
    new = stored(spark, 0, [(group, 0, -5) for group in range(3)])
    assert totals(lost.unionByName(new.select(*lost.columns)), 0) == {0: None, 1: -5, 2: None}
