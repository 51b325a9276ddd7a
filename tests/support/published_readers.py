"""What readers that know nothing of Tidemark find in a Delta table, without a JVM.

Rows are dictionaries in a fixed order, with times as microseconds, so that readers can be compared.
"""

import os
from collections.abc import Mapping
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable

from windowing.location import S3, Location
from windowing.storage.s3_settings import read_s3_settings

Row = Mapping[str, Any]
CHANGE = "_change_type"


def open_delta(table: Location) -> DeltaTable:
    """The table as delta-rs opens it."""
    return DeltaTable(table.text, storage_options=options_of(table))


def options_of(table: Location) -> dict[str, str] | None:
    """What delta-rs has to know of the storage that a table is on."""
    return read_s3_settings(os.environ).for_rust() if table.text.startswith(S3) else None


def to_rows(found: pa.Table) -> list[Row]:
    """Rows of Arrow in order of all their values."""
    columns = []
    for column in found.columns:
        is_time = pa.types.is_timestamp(column.type)
        columns.append(
            column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()) if is_time else column
        )
    rows: list[Row] = pa.table(columns, names=found.column_names).to_pylist()
    return sorted(rows, key=repr)


def read_by_each(table: Location, column: str, value: str) -> dict[str, list[Row]]:
    """By reader all rows; those that filter ask for a value of a column, and for all others."""
    opened = open_delta(table)
    schema = pa.schema(opened.schema().to_arrow())
    dataset = opened.to_pyarrow_dataset()
    duck = duckdb.from_arrow(dataset)
    literal = f"'{value}'"
    halves = {
        "PyArrow, filtered": [
            opened.to_pyarrow_table(filters=[(column, op, value)]) for op in ("=", "!=")
        ],
        "pandas, filtered": [
            pa.Table.from_pandas(opened.to_pandas(filters=[(column, op, value)]), schema=schema)
            for op in ("=", "!=")
        ],
        "DuckDB, filtered": [
            duck.filter(f"{column} {op} {literal}").to_arrow_table() for op in ("=", "<>")
        ],
    }
    whole = {
        "delta-rs": opened.to_pyarrow_table(),
        "pandas": pa.Table.from_pandas(opened.to_pandas(), schema=schema),
        "DuckDB": duck.to_arrow_table(),
    }
    if table.is_local or (" " not in table.text and not table.is_on_hdfs):
        # Polars does not read HDFS. On S3 it encodes a space twice, and finds no file.
        lazy = pl.scan_delta(opened)
        whole["Polars"] = lazy.collect().to_arrow()
        conditions = (pl.col(column) == value, pl.col(column) != value)
        halves["Polars, filtered"] = [lazy.filter(each).collect().to_arrow() for each in conditions]
    if table.is_local:
        # Trino and others read the files by themselves, with no other type than those of the log.
        # Spark leaves a column for its change feed in files that it rewrites.
        files = [uri.removeprefix("file://") for uri in opened.file_uris()]
        if files:
            found = duckdb.read_parquet(files, union_by_name=True).to_arrow_table()
            whole["Parquet by DuckDB"] = found.select(schema.names)
    combined = {
        name: pa.concat_tables([each.cast(schema) for each in parts])
        for name, parts in halves.items()
    }
    return {name: to_rows(found.cast(schema)) for name, found in (whole | combined).items()}


def read_feed(table: Location, since: int) -> list[Row]:
    """What the change feed tells of the versions after `since`, by delta-rs, in order."""
    opened = open_delta(table)
    if opened.version() == since:
        return []
    feed = pa.table(opened.load_cdf(starting_version=since + 1).read_all())
    return to_rows(feed.drop_columns(["_commit_version", "_commit_timestamp"]))


def tell_difference(before: list[Row], after: list[Row], identity: tuple[str, ...]) -> list[Row]:
    """What a change feed has to tell of two contents of a table, in order."""
    old, new = ({tuple(row[c] for c in identity): row for row in rows} for rows in (before, after))
    found = [row | {CHANGE: "delete"} for key, row in old.items() if key not in new]
    found += [row | {CHANGE: "insert"} for key, row in new.items() if key not in old]
    for key in old.keys() & new.keys():
        if old[key] != new[key]:
            found.append({**old[key], CHANGE: "update_preimage"})
            found.append({**new[key], CHANGE: "update_postimage"})
    return sorted(({**row} for row in found), key=lambda row: repr(order_of(row)))


def order_of(row: Row) -> list[tuple[str, Any]]:
    """What rows of a feed are sorted by."""
    return sorted(row.items())
