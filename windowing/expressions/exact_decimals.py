"""Decimals compared exactly: Spark rounds both sides where 38 digits can't hold the whole part of one and the places of the other."""

from decimal import ROUND_FLOOR, Context, Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

_WIDE = Context(prec=100)
PARTS = T.StructType(
    [T.StructField("whole", T.DecimalType(38, 0)), T.StructField("rest", T.DecimalType(38, 38))]
)
"""A number as its whole part, rounded down, and the rest from 0 to below 1; structs compare part by part."""


def rounded(number: Decimal, places: int, how: str) -> Decimal:
    """`number` with at most so many places, rounded by `how`, one of decimal's ROUND_ names."""
    return number.quantize(
        Decimal(1).scaleb(-max(min(places, -int(number.as_tuple().exponent)), 0)), how, _WIDE
    )


def exactly(number: Decimal, places: int, how: str = ROUND_FLOOR) -> Column:
    """`rounded` as a literal of as few digits as it has, which meets decimals of so many places without rounding them."""
    said = rounded(number, places, how)
    after = max(-int(said.as_tuple().exponent), 0)
    return F.lit(f"{said:f}").cast(T.DecimalType(max(len(said.as_tuple().digits), after, 1), after))


def parts(value: Column) -> Column:
    """A decimal or a whole number as PARTS; null stays null."""
    whole, rest = (
        F.floor(value).cast("decimal(38,0)"),
        F.pmod(value, F.lit(1)).cast("decimal(38,38)"),
    )
    return F.when(value.isNotNull(), F.struct(whole.alias("whole"), rest.alias("rest")))
