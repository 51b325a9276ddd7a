"""Some columns of a version of any table, in the memory of this process and without Spark."""

from collections.abc import Sequence

import pyarrow as pa

from windowing.location import Location
from windowing.storage.control import (
    TableError,
    check_features,
    errors_explained,
    find_nearest,
    list_files,
    open_delta,
)
from windowing.storage.deletion_marks import pad_marks, read_marks
from windowing.storage.file_rows import fit_columns, to_micros
from windowing.storage.footers import open_parquet

_READ_BY_SPARK = {"columnMapping", "typeWidening", "typeWidening-preview"}
"""Features that change which columns and values the files of a table contain."""


def read_columns(path: Location, version: int, names: Sequence[str]) -> pa.Table:
    """The columns `names` of every row; times are whole microseconds, UTC.

    Raises as `read_values` does.
    """
    return to_micros(read_values(path, version, names))


def list_columns(path: Location, version: int) -> tuple[str, ...]:
    """The columns that a version has; TableError where it is lost."""
    with errors_explained(path):
        return tuple(pa.schema(open_delta(path, version).schema().to_arrow()).names)


def read_values(path: Location, version: int, names: Sequence[str]) -> pa.Table:
    """The columns `names` of every row, with the types that the table has.

    TableError where the table has a feature with which only Spark reads it, lacks a column, or has
    lost that version.
    """
    with errors_explained(path):
        table = open_delta(path, version)
        check_features(path, table, _READ_BY_SPARK)
        columns = pa.schema(table.schema().to_arrow())
        missing = {*names} - {*columns.names}
        if missing:
            raise TableError(path, f"there is no column {min(missing)}")
        wanted = pa.schema([columns.field(name) for name in names])
        kept = read_marks(table)
        parts = []
        for file in find_nearest(path, list_files(path, table)):
            rows = _read_file(file, wanted)
            marks = kept.get(file.name)
            parts.append(rows if marks is None else rows.filter(pad_marks(marks, rows.num_rows)))
        return pa.concat_tables([wanted.empty_table(), *parts])


def _read_file(file: Location, wanted: pa.Schema) -> pa.Table:
    """The rows of a file; a column that was added to the table later is null."""
    with open_parquet(file) as content:
        there = [name for name in wanted.names if name in content.schema_arrow.names]
        return fit_columns(content.read(columns=there, use_threads=False), wanted)
