"""The rows of the files of a source, read by Arrow. No Spark.

It reads event times that are stored as times or whole numbers, in tables whose files have the names
that the table has. All else is left to Spark.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from windowing.advise.arrow_rows import CollectedRows, find_nulls, to_numpy
from windowing.advise.reading import Asked, NeedsSpark
from windowing.errors import UsageError
from windowing.grid.boundaries import Flags, Instants, find_instants
from windowing.grid.zone import LAST_US
from windowing.ledger.rule import LedgerExcerpt
from windowing.location import Location
from windowing.source.arrivals import Arrival, ArrivedFile
from windowing.source.frame import UNITS
from windowing.source.rule import CHANGE
from windowing.source.table import check
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import join_names, quote_value, suggest_name
from windowing.storage.control import TableError, errors_explained, open_delta, open_to_read
from windowing.storage.files import locate_uri
from windowing.storage.footers import open_parquet
from windowing.storage.table_properties import COLUMN_MAPPING

_INTEGERS = ("long", "integer", "short", "byte")
_NAIVE = ("timestamp_ntz", "date")
_UNGROUPED = ("binary", "variant")
"""Types without parts whose values are no text that tells groups apart."""


@dataclass(frozen=True)
class TimeColumn:
    """The column of event times, its type as the log names it, and the length of its unit."""

    name: str
    type: str
    unit_us: int


def find_time_column(pipeline: Pipeline, asked: Asked) -> TimeColumn:
    """The column of event times of a source whose rows can be read without Spark.

    There is a table. Raises NeedsSpark where they can't be read so, SpecError where its columns do
    not fit, and UsageError where events happen when they arrive or `by` names no column.
    """
    source = pipeline.source
    name = source.event_time.column
    if name is None:
        what = "event_time: arrival means that each event happens when it arrives"
        raise UsageError(f"{pipeline.name} has no late events, because {what}")
    types = _read_types(source.table, name)
    _check_stored(pipeline, name, asked)
    check_columns(pipeline, types)
    check_groups(asked, types)
    kind = types.get(name)
    unit = source.event_time.unit
    known = kind in _INTEGERS if unit else kind == "timestamp"
    if not known and not (kind in _NAIVE and source.zone and not unit):
        raise NeedsSpark(f"{quote_value(name)} is of type {kind}")
    return TimeColumn(name, str(kind), UNITS[unit] if unit else 1)


def check_columns(pipeline: Pipeline, columns: Mapping[str, object]) -> None:
    """SpecError, as of a run, where event time, key or id are no columns of the source that fit.

    `columns` are the types as the log names them, by name.
    """
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in columns.items()
    ]
    # Nothing is told of aggregates, nor of the order of events that happen at one time.
    told = replace(pipeline, windows=(), source=replace(pipeline.source, order_by=()))
    check(told, T.StructType.fromJson({"fields": fields}), LedgerExcerpt())


def check_groups(asked: Asked, columns: Mapping[str, object]) -> None:
    """Raises UsageError where `by` names no column of the source, or one that makes no groups.

    `columns` are the types as the log names them, by name.
    """
    for name in asked.by:
        if name not in columns:
            raise UsageError(
                f"--by: {quote_value(name)} is no column of the source; "
                f"it has {join_names(sorted(columns))}{suggest_name(name, list(columns))}"
            )
        kind = columns[name]
        if not isinstance(kind, str) or kind in _UNGROUPED:
            shown = kind["type"] if isinstance(kind, Mapping) else kind
            raise UsageError(
                f"--by: {quote_value(name)} is of type {shown}; events are grouped by columns of "
                "texts, numbers, booleans, dates and times"
            )


def _read_types(path: Location, time: str) -> dict[str, object]:
    """The type of each column as the log names it; NeedsSpark where Arrow can't read the files.

    They have no column that the table is partitioned by, which `time` must not be.
    """
    if path.is_in_catalog:
        raise NeedsSpark("the table is a name of Spark's catalog")
    try:
        with errors_explained(path):
            table = open_to_read(path) or open_delta(path)
            fields = json.loads(table.schema().to_json())["fields"]
            metadata = table.metadata()
    except TableError as error:
        raise NeedsSpark("its log is one that delta-rs can't read") from error
    if metadata.configuration.get(COLUMN_MAPPING, "none") != "none":
        raise NeedsSpark("its files have other names of columns")
    if time in metadata.partition_columns:
        raise NeedsSpark(f"{quote_value(time)} is a partition column")
    return {each["name"]: each["type"] for each in fields}


def _check_stored(pipeline: Pipeline, time: str, asked: Asked) -> None:
    source = pipeline.source
    if source.where is not None:
        raise NeedsSpark("source.where is evaluated by Spark")
    for name in (time, *source.key, source.event_id, *asked.by):
        if name in source.computed:
            raise NeedsSpark(f"{quote_value(name or '')} is computed")


def read_files(
    rows: CollectedRows, time: TimeColumn, table: Location, batch: int, new: Arrival
) -> bool:
    """Adds the rows of a commit; whether all of its files are still there, otherwise no row."""
    read = []
    for file in new.files:
        found = _read_file(rows, time, table, file)
        if found is None:
            return False
        read.append(found)
    for found in read:
        times, known = _read_times(time, rows.zone, found.column(time.name))
        values = {name: found.column(name) for name in rows.texts}
        rows.add(np.full(len(times), batch, np.int64), times, known, values)
    return True


def _read_file(
    rows: CollectedRows, time: TimeColumn, table: Location, file: ArrivedFile
) -> pa.Table | None:
    """The columns of a file; None where it is gone."""
    names = list(dict.fromkeys((time.name, *rows.texts)))
    path = locate_uri(file.path) if ":/" in file.path else table / file.path
    with errors_explained(table):
        try:
            with open_parquet(path) as opened:
                stored = {*opened.schema_arrow.names}
                wanted = [name for name in names if name in stored]
                found = opened.read(columns=[*wanted, CHANGE] if file.inserts_only else wanted)
        except FileNotFoundError:
            return None
    for place, field in enumerate(found.schema):
        if pa.types.is_string_view(field.type):
            # A merge of delta-rs has stored it so, and Arrow can't select of it.
            texts = found.column(place).cast(pa.string())
            found = found.set_column(place, field.name, texts)
    if file.inserts_only:
        found = found.filter(pc.equal(found.column(CHANGE), "insert"))
    return _add_missing(found, names, file)


def _add_missing(found: pa.Table, names: list[str], file: ArrivedFile) -> pa.Table:
    """With columns that the file has not: those of its partition, and later ones as nulls."""
    for name in names:
        if name not in found.column_names:
            value = pa.scalar(file.partition.get(name), pa.string())
            found = found.append_column(name, pa.repeat(value, found.num_rows))
    return found


def _read_times(
    time: TimeColumn, zone: str | None, values: pa.ChunkedArray
) -> tuple[Instants, Flags]:
    """Event times in microseconds, and which of them are known."""
    if pa.types.is_string(values.type):
        # The file is older than the column.
        return np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    known = ~find_nulls(values)
    if time.type in _INTEGERS:
        numbers = to_numpy(pc.fill_null(values.cast(pa.int64()), 0))
        limit = LAST_US // time.unit_us
        known &= (numbers <= limit) & (numbers >= -limit)
        return np.where(known, numbers, 0) * time.unit_us, known
    stored_zone = getattr(values.type, "tz", None)
    in_micros = values.cast(pa.timestamp("us", stored_zone), safe=False).cast(pa.int64())
    found = to_numpy(pc.fill_null(in_micros, 0))
    if time.type in _NAIVE:
        found, on_clock = find_instants(zone, found)
        known &= on_clock
    return found, known
