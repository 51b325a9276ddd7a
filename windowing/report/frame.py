"""Rows of a table -> plain values, whatever the columns hold: rows[any] -> dicts of text, numbers, booleans, aware times and lists."""

import json
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.report.text import moment_or_none

_NESTED = (T.ArrayType, T.StructType, T.MapType)
_AS_THEY_ARE = (T.StringType, T.BooleanType, T.IntegralType, T.FractionalType, T.BinaryType)


def records(rows: DataFrame, limit: int) -> list[dict[str, Any]]:
    """The first `limit` rows. Times beyond the years a datetime has come as text, nested values as lists and dicts."""
    fields = rows.schema.fields
    found = rows.limit(limit).select(*(_carried(f).alias(f.name) for f in fields)).collect()
    return [{f.name: _value(row[i], f.dataType) for i, f in enumerate(fields)} for row in found]


def _carried(field: T.StructField) -> Column:
    column = F.col(f"`{field.name}`")
    match field.dataType:
        case T.TimestampType():
            return F.unix_micros(column)
        case kind if isinstance(kind, _NESTED):
            return F.to_json(column)
        case kind if isinstance(kind, _AS_THEY_ARE):
            return column
    return column.cast("string")


def _value(value: Any, kind: T.DataType) -> Any:
    if value is None:
        return None
    if isinstance(kind, T.TimestampType):
        return moment_or_none(value) or f"{value} us since 1970"
    return json.loads(value) if isinstance(kind, _NESTED) else value
