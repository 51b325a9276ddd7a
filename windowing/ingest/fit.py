"""Values of records -> columns with the pinned types, or the reason why a record has none.

What does not fit is never changed until it does: a number with more decimals than its column, a
time without a zone for an instant, and a whole number with decimals are refused.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import FILE, RECORD, RESCUED, WHY
from windowing.ingest.columns import PinnedColumn
from windowing.ingest.frame import Records, map_of_texts
from windowing.ingest.inference import thousands_pattern
from windowing.spec.pipeline import CsvForm

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_NUMBERS = (*_WHOLE, T.FloatType, T.DoubleType, T.DecimalType)
_NESTED = (T.StructType, T.ArrayType, T.MapType)
_DATED = r"^[+-]?\d{4}-"
"""How a text that names a day begins; Spark would read a time of day alone as one of today."""
_ZONED = r":[\s\S]*[A-Za-z+-]"
"""A text that ends with `Z`, an offset or the name of a zone."""
_JAVA_SUFFIX = r"[dDfF]$"
"""What Java takes for a part of a number."""


def fit_rows(
    records: Records,
    columns: Sequence[PinnedColumn],
    types: T.StructType,
    csv: CsvForm,
    on_unfit_value: str,
) -> DataFrame:
    """The rows of the source table, and for those that are none the reason.

    Records -> [columns..., source_file, rescued, __record, __why]. With `on_unfit_value` rescue, a
    value that does not fit is NULL in its column and kept in `rescued`.
    """
    fitted: dict[str, Column] = {}
    unfit: dict[str, tuple[Column, Column]] = {}
    for column, field in zip(columns, types.fields, strict=True):
        value = records.values.get(column.source)
        if value is None:
            fitted[column.name] = F.lit(None).cast(field.dataType)
            continue
        text, typed = _fit(records, column, field.dataType, value, csv)
        fitted[column.name] = typed
        unfit[column.source] = (text.isNotNull() & typed.isNull(), text)
    whys = [F.col(WHY)]
    rest = records.rest
    if on_unfit_value == "rescue":
        texts = {
            name: F.when(is_wrong, text.cast("string")) for name, (is_wrong, text) in unfit.items()
        }
        rest = F.map_concat(rest, map_of_texts(texts))
    else:
        kinds = {column.source: column.type for column in columns}
        whys += [
            F.when(wrong, describe_unfit(name, kinds[name])) for name, (wrong, _) in unfit.items()
        ]
    kept = F.map_filter(rest, lambda _, value: value.isNotNull())
    rescued = F.when(F.size(kept) > 0, F.to_json(kept))
    return records.rows.select(
        *(value.alias(name) for name, value in fitted.items()),
        F.col(FILE),
        rescued.alias(RESCUED),
        F.col(RECORD),
        F.coalesce(*whys, F.lit(None).cast("string")).alias(WHY),
    )


def describe_unfit(source: str, kind: str) -> str:
    """Why a record is quarantined whose value of a column in files is not of the type."""
    return f"{source} is no {kind}"


def _fit(
    records: Records, column: PinnedColumn, kind: T.DataType, value: Column, csv: CsvForm
) -> tuple[Column, Column]:
    """The value as it came, NULL for none, and as one of the type; NULL where it is none."""
    if records.types is not None:
        return value, _fit_typed(value, records.types[column.source], kind)
    text = F.when(~F.trim(value).isin(list(csv.nulls)), value) if csv.nulls else value
    if isinstance(kind, T.StringType):
        return text, text
    # Blanks are no value of any other type.
    trimmed = F.nullif(F.trim(text), F.lit(""))
    return trimmed, _read_text(trimmed, kind, column.format, csv)


def _fit_typed(value: Column, stored: str, kind: T.DataType) -> Column:
    """A value that has a type already; NULL where the other type would change it."""
    if stored == kind.simpleString():
        return value
    cast = value.try_cast(kind)
    return F.when(cast.try_cast(stored).eqNullSafe(value), cast)


def _read_text(text: Column, kind: T.DataType, pattern: str | None, csv: CsvForm) -> Column:
    if isinstance(kind, _NUMBERS):
        return _read_number(_plain_number(text, csv), kind)
    if isinstance(kind, _NESTED):
        return F.from_json(text, kind.simpleString())
    if isinstance(kind, (T.DateType, T.TimestampType, T.TimestampNTZType)):
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
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return F.when(~text.rlike(_JAVA_SUFFIX), text.try_cast(kind))
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
