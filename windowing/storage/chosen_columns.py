"""Some columns of a version of any table, in the memory of this process and without Spark."""

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from windowing.location import Location
from windowing.storage.control import (
    TableError,
    errors_explained,
    find_nearest,
    list_files,
    open_delta,
)
from windowing.storage.footers import open_parquet

_READ_BY_SPARK = {"columnMapping", "typeWidening", "typeWidening-preview"}
"""Features that change which columns and values the files of a table contain."""
_DELETION_VECTORS = "deletionVectors"


def read_columns(path: Location, version: int, names: Sequence[str]) -> pa.Table:
    """The columns `names` of every row; times are whole microseconds, UTC.

    TableError where the table has a feature with which only Spark reads it, lacks a column, or has
    lost that version.
    """
    with errors_explained(path):
        table = open_delta(path, version)
        features = {*(table.protocol().reader_features or ())}
        unsupported = _READ_BY_SPARK & features
        if unsupported:
            raise TableError(path, f"the table feature {min(unsupported)} is not supported")
        columns = pa.schema(table.schema().to_arrow())
        missing = {*names} - {*columns.names}
        if missing:
            raise TableError(path, f"there is no column {min(missing)}")
        wanted = pa.schema([columns.field(name) for name in names])
        kept = _read_vectors(table) if _DELETION_VECTORS in features else {}
        parts = []
        for file in find_nearest(path, list_files(path, table)):
            rows = _read_file(file, wanted)
            parts.append(_keep_rows(rows, kept[file.name]) if file.name in kept else rows)
        return to_micros(pa.concat_tables([wanted.empty_table(), *parts]))


def _read_vectors(table: DeltaTable) -> Mapping[str, pa.Array]:
    """By the name of a file whether each of its rows is there, where some of them are not."""
    kept = {}
    for batch in table.deletion_vectors():
        rows = pa.record_batch(batch)
        names = rows.column("filepath").to_pylist()
        for name, vector in zip(names, rows.column("selection_vector"), strict=True):
            kept[unquote(name).rpartition("/")[2]] = vector.values
    return kept


def _keep_rows(rows: pa.Table, kept: pa.Array) -> pa.Table:
    """The rows that are there; those after the end of the vector are."""
    rest = pa.repeat(pa.scalar(value=True), rows.num_rows - len(kept))
    return rows.filter(pa.concat_arrays([kept, rest]))


def to_micros(rows: pa.Table) -> pa.Table:
    """The rows with times as whole microseconds since 1970."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            whole = rows.column(place).cast(pa.timestamp("us", field.type.tz)).cast(pa.int64())
            rows = rows.set_column(place, field.name, whole)
    return rows


def _read_file(file: Location, wanted: pa.Schema) -> pa.Table:
    """The rows of a file; a column that was added to the table later is null."""
    with open_parquet(file) as content:
        there = [name for name in wanted.names if name in content.schema_arrow.names]
        # Without a column a reader would not know how many rows there are.
        rows = content.metadata.num_rows
        found = content.read(columns=there, use_threads=False)
    columns = []
    for field in wanted:
        if field.name in there:
            columns.append(found[field.name].cast(field.type))
        else:
            columns.append(pa.nulls(rows, field.type))
    return pa.table(columns, schema=wanted)
