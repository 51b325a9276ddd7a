"""Whether the files of a batch show that nothing is wrong with any row, and when the rows happened.

Spark would take a job and decode every column that can be wrong. Footers tell most of it, and Arrow
reads the few columns that they do not describe. What no file can show is left to Spark.

files, demands -> CleanBatch, or None where Spark has to look at the rows
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import types as T

from windowing.aggregates.algebra import FRACTIONS, INTEGERS
from windowing.grid.zone import FIRST_US, LAST_US, micros
from windowing.location import Location
from windowing.panes.frame import column_that_may_be_bad
from windowing.source.frame import UNITS
from windowing.spec.description import describe_window
from windowing.spec.expressions.parse import may_lose
from windowing.spec.pipeline import Pipeline
from windowing.storage.footers import ColumnFacts, Kind, ParquetFile, read_columns, read_footer

MOST_FILES = 200
"""How many files are opened at most, because each takes a millisecond."""
MOST_VALUES = 50_000_000
"""How many values are read at most: this process reads alone what Spark reads in parallel."""
_MODERN_US = micros(datetime(1900, 1, 1, tzinfo=UTC))
"""From here on every calendar that a writer may have used names the same instants."""


@dataclass(frozen=True)
class Time:
    """The column of event times: instants, or whole numbers of `unit_us` microseconds each."""

    column: str
    kind: Kind
    unit_us: int


@dataclass(frozen=True)
class Demands:
    """What must be true of every row so that nothing is wrong with it.

    Columns that are `never_null` have a value, and fractions that are `finite` are neither NaN nor
    infinite. The `time`, if it is in a column, is from `FIRST_US` to `last_us`, both inside. Where
    it is in none, every row happens at `arrival_us`.
    """

    never_null: frozenset[str]
    finite: frozenset[str]
    time: Time | None
    last_us: int
    arrival_us: int


@dataclass(frozen=True)
class CleanBatch:
    """A batch with nothing wrong: how many rows it has, and when the first and the last happened.

    There is no such time where it has no row.
    """

    rows: int
    low_us: int | None
    high_us: int | None


def find_demands(pipeline: Pipeline, schema: T.StructType, arrival_us: int) -> Demands | None:
    """What `check_rows` demands of every row; None where files can't show all of it.

    `schema` is that of the source with its computed columns, of which files show nothing: neither
    of what is made of other columns, nor of a part of a struct.
    """
    source = pipeline.source
    if source.where is not None or any(map(may_lose, source.computed.values())):
        # Rows that are no events, and values that were lost, have to be counted.
        return None
    types = {field.name: field.dataType for field in schema.fields}
    time = None
    if source.event_time.column is not None:
        time = _describe_time(source.event_time.column, source.event_time.unit, types)
        if time is None:
            return None
    attributes = [describe_window(window).attribute for window in pipeline.windows]
    bounding = {column.name for column in attributes if column is not None}
    finite = {name for name in bounding if isinstance(types[name], FRACTIONS)}
    if source.on_bad_value != "null":
        checked = [column_that_may_be_bad(each, schema) for each in pipeline.aggregates]
        finite.update(name for name in checked if name is not None)
    if not all(isinstance(types[name], FRACTIONS) for name in finite):
        # A text may be no number.
        return None
    times = set() if time is None else {time.column}
    never_null = {*source.key, *bounding, *times}
    if source.computed.keys() & (never_null | finite):
        # A file may have a column of such a name that the table has dropped.
        return None
    return Demands(
        never_null=frozenset(never_null),
        finite=frozenset(finite),
        time=time,
        last_us=min(LAST_US, arrival_us + pipeline.watermark.max_future_us),
        arrival_us=arrival_us,
    )


def _describe_time(name: str, unit: str | None, types: Mapping[str, T.DataType]) -> Time | None:
    """None for texts, fractions, and times of a zone."""
    if unit is None:
        is_instant = isinstance(types[name], T.TimestampType)
        return Time(name, Kind.INSTANT, 1) if is_instant else None
    return Time(name, Kind.INTEGER, UNITS[unit]) if isinstance(types[name], INTEGERS) else None


def find_clean_batch(paths: Sequence[Location], demands: Demands) -> CleanBatch | None:
    """The rows of the files, where every row meets the demands; None where one may not.

    The files contain the rows of a batch and no others, under the names that the source has.
    """
    if len(paths) > MOST_FILES:
        return None
    try:
        files = [read_footer(path) for path in paths]
        unknown = {file.path: _list_unknown(file, demands) for file in files}
        if sum(file.rows * len(unknown[file.path]) for file in files) > MOST_VALUES:
            return None
        files = [read_columns(file, unknown[file.path]) for file in files]
    except (OSError, pa.ArrowException):
        # Spark explains what is wrong with a file.
        return None
    filled = [file for file in files if file.rows]
    if not all(_is_clean(file, demands) for file in filled):
        return None
    return _place_in_time(filled, demands)


def _list_unknown(file: ParquetFile, demands: Demands) -> list[str]:
    """The columns of the file that have to be read, because its footer tells too little of them."""
    unknown = set(demands.finite)
    for name in demands.never_null:
        column = file.columns.get(name)
        is_time = demands.time is not None and name == demands.time.column
        if column is None or column.nulls is None or (is_time and column.ends is None):
            unknown.add(name)
    return sorted(unknown & file.columns.keys())


def _is_clean(file: ParquetFile, demands: Demands) -> bool:
    """Whether the file shows that every row of it meets the demands, but for the times."""
    columns = file.columns
    if not columns.keys() >= demands.never_null | demands.finite:
        # The file is older than the column, or the column is not stored in it.
        return False
    if any(columns[name].nulls != 0 for name in demands.never_null):
        return False
    return all(columns[name].is_finite for name in demands.finite)


def _place_in_time(files: Sequence[ParquetFile], demands: Demands) -> CleanBatch | None:
    """The batch of files with rows, where all its times are known and allowed."""
    rows = sum(file.rows for file in files)
    if not files:
        return CleanBatch(0, None, None)
    if demands.time is None:
        return CleanBatch(rows, demands.arrival_us, demands.arrival_us)
    spans = [_find_span(file.columns[demands.time.column], demands.time) for file in files]
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    low_us, high_us = min(low for low, _ in known), max(high for _, high in known)
    if not FIRST_US <= low_us <= high_us <= demands.last_us:
        return None
    return CleanBatch(rows, low_us, high_us)


def _find_span(column: ColumnFacts, time: Time) -> tuple[int, int] | None:
    """The first and the last time of a column; None where Spark may read other ones."""
    if column.kind is not time.kind or column.ends is None:
        return None
    low_us, high_us = (end * time.unit_us for end in column.ends)
    if time.kind is Kind.INSTANT and low_us < _MODERN_US:
        return None
    return low_us, high_us
