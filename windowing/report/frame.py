"""Rows of a table -> plain values, whatever types the columns have.

rows[any] -> dicts of text, numbers, booleans, aware times and lists
"""

import json
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.report.text import moment_or_none
from windowing.rows import column_named

_NESTED = (T.ArrayType, T.StructType, T.MapType)
_AS_THEY_ARE = (T.StringType, T.BooleanType, T.IntegralType, T.FractionalType, T.BinaryType)


def records(rows: DataFrame, limit: int) -> list[dict[str, Any]]:
    """The first `limit` rows.

    Times beyond the years of a datetime are text, nested values are lists and dicts.
    """
    fields = rows.schema.fields
    columns = [_collectable_column(field).alias(field.name) for field in fields]
    found = []
    for row in rows.limit(limit).select(*columns).collect():
        values = {}
        for i, field in enumerate(fields):
            values[field.name] = _plain_value(row[i], field.dataType)
        found.append(values)
    return found


def _collectable_column(field: T.StructField) -> Column:
    """The column in a form that PySpark collects without loss."""
    column = column_named(field.name)
    match field.dataType:
        case T.TimestampType():
            return F.unix_micros(column)
        case kind if isinstance(kind, _NESTED):
            return F.to_json(column)
        case kind if isinstance(kind, _AS_THEY_ARE):
            return column
    return column.cast("string")


def _plain_value(value: Any, kind: T.DataType) -> Any:
    if value is None:
        return None
    if isinstance(kind, T.TimestampType):
        moment = moment_or_none(value)
        return f"{value} us since 1970" if moment is None else moment
    if isinstance(kind, _NESTED):
        return json.loads(value)
    return value
