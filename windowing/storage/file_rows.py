"""Rows of files with the columns that a table has now, and with times as numbers. No Spark."""

import pyarrow as pa

from windowing.location import Location
from windowing.storage.footers import open_parquet


def read_file_as(path: Location, schema: pa.Schema) -> pa.Table:
    """The rows of one file with the columns of `schema`; those that the file lacks are null."""
    with open_parquet(path) as file:
        return fit_columns(file.read(), schema)


def fit_columns(found: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows with the columns of `schema`; those that they lack are null."""
    columns = [
        found[field.name].cast(field.type)
        if field.name in found.column_names
        else pa.nulls(found.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def to_micros(rows: pa.Table) -> pa.Table:
    """The rows with times as whole microseconds since 1970."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            whole = rows.column(place).cast(pa.timestamp("us", field.type.tz)).cast(pa.int64())
            rows = rows.set_column(place, field.name, whole)
    return rows
