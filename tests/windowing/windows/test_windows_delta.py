"""Delta windows over decimals of as many digits as there are: differences by hand."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windowing.aggregates.algebra import rows_part
from windowing.columns import BASE, ORDER, TIME
from windowing.spec.kinds import Delta
from windowing.windows import ordered

NINES = "9" * 35
ZEROS = "0" * 36
WIDE: list[tuple[int, str, list[str], list[int]]] = [
    # The third value is 10.0000000001 above the first.
    (10, "10", ["0", "10", "10.0000000001"], [2, 1]),
    (10, "0", ["1.0000000001", "1.0000000001", "1.0000000002", "-5"], [2, 2]),
    (10, "5", ["-" + "9" * 28, "9" * 28, "-" + "9" * 28], [1, 2]),
    # A step of more places than the values: 0.0000001 is not above it, 0.0000002 is.
    (7, "0.00000019", ["0", "0.0000001", "0.0000002"], [2, 1]),
    # The differences are 0.5, 0.5 and a last place, and more than 19.
    (
        37,
        "0.5",
        [f"-9.9{NINES}9", f"-9.4{NINES}9", f"-9.4{NINES}8", f"9.9{NINES}9"],
        [2, 1, 1],
    ),
    # The differences are 0.5, 0.5 and a last place, and from there less than 0.5.
    (38, "0.5", ["0", "0.5", f"0.5{ZEROS}1", f"0.99{NINES}9"], [2, 2]),
    # The differences are a last place less than 1, 1, and a last place more than 1.
    (38, "1", [f"-0.99{NINES}9", "0", f"0.0{ZEROS}1", f"0.0{ZEROS}2"], [3, 1]),
]


@pytest.mark.parametrize(("places", "step", "values", "sizes"), WIDE)
def test_differences_of_decimals_with_38_digits_are_exact(
    places: int, step: str, values: list[str], sizes: list[int], spark: SparkSession
) -> None:
    rows = ", ".join(f"('a', {n}L, '{value}')" for n, value in enumerate(values))
    level = F.col("level").cast(f"decimal(38,{places})")
    events = spark.sql(f"select * from values {rows} as t(key, {TIME}, level)").withColumns(
        {"level": level, ORDER: F.struct(TIME), BASE: F.lit(0).cast("bigint")}
    )
    window = Delta("w", "level", step, None, ())
    found = ordered.cut_windows(events, window, ("key",), [rows_part()])
    counts = found.orderBy("window_index").select("window_index", "rows").collect()
    assert [tuple(row) for row in counts] == list(enumerate(sizes))
