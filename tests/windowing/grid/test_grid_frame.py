"""The grid's expressions, row by row, against its rule."""

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.windowing.cases import DAY, HOUR, MINUTE
from windowing.grid import frame, rule
from windowing.grid.range import Range
from windowing.grid.rule import Grid
from windowing.grid.zone import micros

NEW_YORK, BERLIN = "America/New_York", "Europe/Berlin"
SPRING = micros(datetime(2025, 3, 9, 7, tzinfo=UTC))
"""New York's clock goes forward."""
LOW, HIGH = SPRING - 40 * DAY, SPRING + 40 * DAY
INSTANTS = [SPRING + d for d in (-1, 0, 1, -HOUR, HOUR, -DAY, DAY)] + list(
    range(LOW, HIGH, 37 * HOUR + 11 * MINUTE)
)
GRIDS = [
    Grid(HOUR),
    Grid(HOUR, 0, 0, None, 25 * MINUTE),
    Grid(DAY, 0, 3 * MINUTE, NEW_YORK),
    Grid(DAY, 0, 0, NEW_YORK, 7 * HOUR),
    Grid(2 * DAY, 0, 5 * HOUR, NEW_YORK, 13 * HOUR),
    Grid(0, 1, 0, BERLIN),
    Grid(0, 1, 0, BERLIN, 5 * DAY),
]


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_columns_say_what_the_rule_does(grid: Grid, spark: SparkSession) -> None:
    t, k = F.col("t"), F.col("k")
    rows = spark.createDataFrame([(t,) for t in INSTANTS], "t bigint").withColumn(
        "k", frame.index(grid, t, Range(LOW, HIGH))
    )
    found = rows.select(
        "t", "k", frame.start(grid, t, Range(LOW, HIGH)), frame.boundary(grid, k, Range(LOW, HIGH))
    ).collect()
    expected = [
        (t, k, start, start)
        for t in INSTANTS
        for k in (rule.index(grid, t),)
        for start in (rule.boundary(grid, k),)
    ]
    assert [tuple(row) for row in found] == expected
