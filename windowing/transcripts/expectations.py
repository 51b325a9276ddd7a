"""Whether what a transcript expects can be compared: tables and columns exist, times are times.

It needs no Spark, so that wrong transcripts are refused before Spark starts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from windowing.errors import SpecError
from windowing.spec.times import INSTANT_FORM, instant
from windowing.spec.words import join_names, quote_value, suggest_name
from windowing.transcripts.document import WATERMARK, Transcript

Columns = Mapping[str, Sequence[str]]
"""Table that may be expected -> its columns."""
_TIMES = ("window_start", "window_end", "last_event", "event_time", "watermark")


def check_expected(transcript: Transcript, tables: Columns) -> None:
    """Raises SpecError for the first table, column or time of an `expect` that can't be right."""
    for i, step in enumerate(transcript.steps):
        for name, rows in step.expect.items():
            where = f"steps[{i}].expect.{name}"
            if name == WATERMARK:
                _check_watermark(where, rows)
            else:
                _check_table(where, name, rows, tables)


def _check_watermark(where: str, value: Any) -> None:
    if not _is_time_or_null(value):
        raise SpecError(
            where, f"{quote_value(value)} is not {INSTANT_FORM}; null says there is none yet"
        )


def _is_time_or_null(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, str) and instant(value) is not None


def _check_table(where: str, name: str, rows: Any, tables: Columns) -> None:
    if name not in tables:
        known = [*tables, WATERMARK]
        hint = suggest_name(name, known)
        raise SpecError(
            where, f"is not a table of this pipeline{hint}; allowed: {join_names(known)}"
        )
    columns = tables[name]
    if not isinstance(rows, list):
        raise SpecError(
            where,
            f"{quote_value(rows)} is not a list of rows; write all rows of {name}, "
            "or [] if it has none",
        )
    for n, row in enumerate(rows):
        if not isinstance(row, dict) or not row:
            raise SpecError(
                f"{where}[{n}]",
                f"{quote_value(row)} is not a row; "
                f"write a mapping with some of {join_names(columns)}",
            )
        _check_row(f"{where}[{n}]", name, row, columns)


def _check_row(where: str, table: str, row: Mapping[Any, Any], columns: Sequence[str]) -> None:
    for name, value in row.items():
        if name not in columns:
            hint = suggest_name(str(name), columns)
            raise SpecError(
                f"{where}.{name}",
                f"is not a column of {table}{hint}; allowed: {join_names(columns)}",
            )
        if name in _TIMES and not _is_time_or_null(value):
            raise SpecError(f"{where}.{name}", f"{quote_value(value)} is not {INSTANT_FORM}")
