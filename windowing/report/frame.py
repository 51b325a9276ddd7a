"""Rows of a table -> plain values, whatever types the columns have.

rows[any] -> dicts of text, numbers, booleans, aware times and lists
"""

import json
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.report.arrow_values import plain_rows
from windowing.rows import column_named

_NESTED = (T.ArrayType, T.StructType, T.MapType)
_AS_THEY_ARE = (
    T.StringType,
    T.BooleanType,
    T.IntegralType,
    T.FractionalType,
    T.BinaryType,
    T.TimestampType,
)


def records(rows: DataFrame, limit: int) -> list[dict[str, Any]]:
    """The first `limit` rows.

    Times beyond the years of a datetime are text, nested values are lists and dicts.
    """
    fields = rows.schema.fields
    columns = [_collectable_column(field).alias(field.name) for field in fields]
    found = plain_rows(rows.limit(limit).select(*columns).toArrow())
    nested = [field.name for field in fields if isinstance(field.dataType, _NESTED)]
    for row in found:
        row |= {name: json.loads(row[name] or "null") for name in nested}
    return found


def _collectable_column(field: T.StructField) -> Column:
    """The column in a form that PySpark collects without loss."""
    column = column_named(field.name)
    match field.dataType:
        case kind if isinstance(kind, _NESTED):
            return F.to_json(column)
        case kind if isinstance(kind, _AS_THEY_ARE):
            return column
    return column.cast("string")
