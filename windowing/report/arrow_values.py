"""Rows of a table as Arrow has them -> plain values, the same that `frame.records` makes by Spark.

rows[any] -> dicts of text, numbers, booleans, aware times, lists and dicts
"""

import json
from base64 import b64encode
from datetime import datetime
from math import isfinite, isnan
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from windowing.report.text import moment_or_none

_SECOND, _MILLISECOND = 1_000_000, 1_000
"""In microseconds."""
_Unit = Literal["s", "ms", "us", "D"]


def plain_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Every row. Times beyond the years of a datetime are text, nested values lists and dicts."""
    columns = {name: _to_plain(rows[name]) for name in rows.column_names}
    return [{name: columns[name][place] for name in columns} for place in range(rows.num_rows)]


def _to_plain(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column, None where it has none."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        write = _write_clock if kind.tz is None else _read_instant
        in_us = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        return [None if us is None else write(us) for us in in_us.to_pylist()]
    if pa.types.is_nested(kind) or pa.types.is_date(kind):
        return [_to_json(value) for value in column]
    found: list[Any] = column.to_pylist()
    return found


def _to_json(value: pa.Scalar) -> Any:
    """A nested value, or one inside of it, as Spark writes it: a null field is left out."""
    kind = value.type
    if not value.is_valid:
        return None
    if pa.types.is_map(kind):
        return {str(_to_json(pair[0])): _to_json(pair[1]) for pair in value.values}
    if pa.types.is_struct(kind):
        fields = {field.name: value[place] for place, field in enumerate(kind)}
        return {name: _to_json(each) for name, each in fields.items() if each.is_valid}
    if pa.types.is_nested(kind):
        return [_to_json(each) for each in value.values]
    if pa.types.is_timestamp(kind):
        milliseconds = _to_us(value) // _MILLISECOND
        text = _write_time(milliseconds, "ms").replace(" ", "T")
        return text if kind.tz is None else f"{text}Z"
    if pa.types.is_date(kind):
        return _write_date(value)
    if pa.types.is_decimal(kind):
        return json.loads(f"{value.as_py():f}")
    if pa.types.is_floating(kind):
        return _write_float(value)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return b64encode(value.as_py()).decode()
    return value.as_py()


def _to_us(value: pa.Scalar) -> int:
    """An instant, or a time on a clock, as whole microseconds since 1970."""
    return int(value.cast(pa.timestamp("us", value.type.tz)).value)


def _read_instant(us: int) -> datetime | str:
    at = moment_or_none(us)
    return f"{us} us since 1970" if at is None else at


def _write_clock(us: int) -> str:
    """A time without a zone, without a fraction that is 0."""
    if us % _SECOND == 0:
        return _write_time(us // _SECOND, "s")
    return _write_time(us, "us").rstrip("0")


def _write_date(value: pa.Scalar) -> str:
    return _write_time(value.cast(pa.date32()).value, "D")


def _write_time(number: int, unit: _Unit) -> str:
    """So many units since 1970; a year of more than four digits has a sign."""
    text = str(np.datetime64(number, unit)).replace("T", " ")
    return text if text.startswith("-") or text.index("-") <= 4 else f"+{text}"


def _write_float(value: pa.Scalar) -> float | str:
    """A number; JSON has no others than finite ones."""
    number = float(value.as_py())
    if isnan(number):
        return "NaN"
    if not isfinite(number):
        return "Infinity" if number > 0 else "-Infinity"
    # A number of 32 bits has fewer digits than one of Python.
    return float(str(np.float32(number))) if pa.types.is_float32(value.type) else number
