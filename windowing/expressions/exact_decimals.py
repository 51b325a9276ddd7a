"""Decimals compared exactly.

Spark rounds both sides where 38 digits can't have the whole part of one and the places of the
other.
"""

from decimal import Context, Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

MOST_DIGITS = 38
"""How many digits a decimal of Spark has at most."""
_WIDE = Context(prec=100)
_WHOLE = T.StructField("whole", T.DecimalType(38, 0))
_REST = T.StructField("rest", T.DecimalType(38, 38))
PARTS = T.StructType([_WHOLE, _REST])
"""A number as its whole part, rounded down, and the rest from 0 to below 1.

Structs compare part by part, so they compare as the numbers do.
"""


def round_number(number: Decimal, places: int, how: str) -> Decimal:
    """`number` with at most so many places, rounded by `how`, one of decimal's ROUND_ names."""
    # No number gets more places than it has, because each place needs one of 38 digits.
    kept_places = max(min(places, _places_of(number)), 0)
    return number.quantize(Decimal(1).scaleb(-kept_places), how, _WIDE)


def exactly(number: Decimal, places: int, how: str) -> Column:
    """`round_number` as a literal of as few digits as it has.

    So decimals of as many places are not rounded where they are compared with it.
    """
    shortest = round_number(number, places, how)
    scale = max(_places_of(shortest), 0)
    precision = max(len(shortest.as_tuple().digits), scale, 1)
    return F.lit(f"{shortest:f}").cast(T.DecimalType(precision, scale))


def split_decimal(value: Column) -> Column:
    """A decimal or a whole number as PARTS; null stays null."""
    whole = F.floor(value).cast("decimal(38,0)")
    rest = F.pmod(value, F.lit(1)).cast("decimal(38,38)")
    whole_and_rest = F.struct(whole.alias("whole"), rest.alias("rest"))
    return F.when(value.isNotNull(), whole_and_rest)


def loses_places(kind: T.DataType) -> bool:
    """Whether Spark rounds the difference of two values of this type.

    A difference needs a digit more than its values. Where they have 38 already, Spark leaves out
    places, down to 6 of them.
    """
    return isinstance(kind, T.DecimalType) and kind.precision == MOST_DIGITS and kind.scale > 6


def subtract_parts(minuend: Column, subtrahend: Column) -> Column:
    """The difference of two PARTS as PARTS, exact where both have at most 37 places."""
    rest = minuend["rest"] - subtrahend["rest"]
    # The rest of the difference may be negative, and then one is borrowed from its whole part.
    whole = minuend["whole"] - subtrahend["whole"] + F.floor(rest)
    return F.struct(
        whole.cast("decimal(38,0)").alias("whole"),
        F.pmod(rest, F.lit(1)).cast("decimal(38,38)").alias("rest"),
    )


def _places_of(number: Decimal) -> int:
    """Digits after the point; below 0 where digits before the point are left out, as in 1E2."""
    return -int(number.as_tuple().exponent)
