"""Values without parts -> values of a type; NULL where they would have to be changed for it.

Refused are a number with more decimals than its type, a local time or a number for an instant, an
instant for a local time, and a number with decimals for a whole one. So is a number beyond those of
a double, which would be infinite; `Infinity` itself is a value.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.ingest.inference import thousands_pattern
from windowing.rows import is_infinite, is_number_of_java
from windowing.spec.pipeline import CsvForm

FLOATING = (T.FloatType, T.DoubleType)
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_NUMBERS = (*_WHOLE, *FLOATING, T.DecimalType)
_TIMES = (T.DateType, T.TimestampType, T.TimestampNTZType)
WRITTEN = (*_NUMBERS, *_TIMES)
"""Types that texts have to be read as by rule, because Spark's casts read more than it allows."""
_FAMILIES = (
    (*_NUMBERS, T.BooleanType),
    (T.DateType, T.TimestampNTZType),
    (T.TimestampType,),
    (T.BinaryType,),
)
"""Types whose values may be those of each other. Spark raises for most others, but takes a number,
a date or a local time for an instant by the zone of its session."""
_KNOWN = {T.StringType, *(kind for family in _FAMILIES for kind in family)}
_DATED = r"^[+-]?\d{4}-"
"""How a text that names a day begins; Spark would read a time of day alone as one of today."""
_ZONED = r":[\s\S]*[A-Za-z+-]"
"""A text that ends with `Z`, an offset or the name of a zone."""
_JAVA_SUFFIX = r"[dDfF]$"
"""What Java takes for a part of a number."""


def cast_exactly(value: Column, stored: T.DataType, kind: T.DataType) -> Column:
    """A value that has the type `stored` already; NULL where the other type would change it."""
    if stored == kind:
        return value
    both = {type(stored), type(kind)}
    if both <= _KNOWN and not any(both <= {T.StringType, *family} for family in _FAMILIES):
        return F.lit(None).cast(kind)
    cast = value.try_cast(kind)
    return F.when(cast.try_cast(stored).eqNullSafe(value), cast)


def read_text(text: Column, kind: T.DataType, pattern: str | None, csv: CsvForm) -> Column:
    """The value of a type that a text is, times by the pattern; NULL where it is none."""
    if isinstance(kind, _NUMBERS):
        return _read_number(_plain_number(text, csv), kind)
    if isinstance(kind, _TIMES):
        return _read_time(text, kind, pattern)
    return text.try_cast(kind)


def _plain_number(text: Column, csv: CsvForm) -> Column:
    """The number with a point before its decimals and nothing between its digits."""
    if csv.thousands is not None:
        grouped = text.rlike(f"^{thousands_pattern(csv)}$")
        plain = F.replace(text, F.lit(csv.thousands), F.lit(""))
        text = F.when(grouped, plain).otherwise(text)
    # A point that is still there would be one between thousands, or a mistake.
    return F.translate(text, ".,", "?.") if csv.decimal == "," else text


def _read_number(text: Column, kind: T.DataType) -> Column:
    if isinstance(kind, FLOATING):
        number = text.try_cast(kind)
        is_beyond = is_infinite(number) & text.rlike(r"\d")
        is_none = text.rlike(_JAVA_SUFFIX) | is_number_of_java(text)
        return F.when(~is_none & ~is_beyond, number)
    if isinstance(kind, T.DecimalType):
        decimals = F.length(F.regexp_extract(text, r"\.(\d*?)0*$", 1))
        # Spark rounds what has more decimals, and reads powers of ten, which are not looked at.
        is_exact = (decimals <= kind.scale) & ~text.rlike("[eE]")
        return F.when(is_exact, text.try_cast(kind))
    return text.try_cast(kind)


def _read_time(text: Column, kind: T.DataType, pattern: str | None) -> Column:
    if pattern is not None:
        return F.try_to_timestamp(text, F.lit(pattern)).cast(kind)
    is_zoned = text.rlike(_ZONED)
    is_right = is_zoned if isinstance(kind, T.TimestampType) else ~is_zoned
    if isinstance(kind, T.DateType):
        is_right = text.rlike(r"^\d{4}-\d\d?-\d\d?$")
    return F.when(text.rlike(_DATED) & is_right, text.try_cast(kind))
