"""What Parquet files tell of their columns: by their footers, and where these are silent by values.

Only columns of the table are described, not the fields of structs.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowing.location import Location
from windowing.storage.store import store_of

_AT_ONCE = 1_000_000
"""How many rows are in memory at once."""


class Kind(Enum):
    """What the values of a column of a file are."""

    INSTANT = "microseconds since 1970"
    INTEGER = "whole numbers"
    OTHER = "anything else"


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of a column of a file. What is None is not known.

    `ends` are the least and the greatest value, where these are instants or whole numbers and there
    are any.
    """

    kind: Kind
    nulls: int | None = None
    ends: tuple[int, int] | None = None
    is_finite: bool | None = None


@dataclass(frozen=True)
class ParquetFile:
    """A file of so many bytes with so many rows, and its columns by name.

    `plain` is whether every reader takes its types. Many read times as INT96 as nanoseconds, which
    end in the year 2262, and PyArrow can't filter by texts in views.
    """

    path: Location
    bytes: int
    rows: int
    columns: Mapping[str, ColumnFacts]
    plain: bool = True


def read_footer(path: Location) -> ParquetFile:
    """What the footer of the file at `path` tells."""
    with store_of(path).open(path) as content:
        return describe_parquet(path, content)


def describe_parquet(path: Location, content: pa.NativeFile) -> ParquetFile:
    """What the footer of a file tells, whose `content` may not be at `path` yet."""
    file = _open_content(content)
    columns, rows = _describe_columns(file), file.metadata.num_rows
    return ParquetFile(path, content.size(), rows, columns, _has_plain_types(file))


def _has_plain_types(file: pq.ParquetFile) -> bool:
    stored = file.metadata.schema
    if any(stored.column(place).physical_type == "INT96" for place in range(len(stored))):
        return False
    return not any("view" in str(kind) for kind in file.schema_arrow.types)


@contextmanager
def open_parquet(path: Location) -> Iterator[pq.ParquetFile]:
    """The file at `path`, with times as microseconds."""
    with store_of(path).open(path) as content:
        yield _open_content(content)


def _open_content(content: pa.NativeFile) -> pq.ParquetFile:
    # Spark writes INT96 by default. As nanoseconds, such times would end in the year 2262.
    return pq.ParquetFile(content, coerce_int96_timestamp_unit="us")


def _describe_columns(file: pq.ParquetFile) -> dict[str, ColumnFacts]:
    footer, schema = file.metadata, file.schema_arrow
    columns = {}
    for place in range(footer.num_columns):
        column = footer.schema.column(place)
        # The path of a field of a struct may be the name of another column.
        if column.path == column.name:
            is_int96 = column.physical_type == "INT96"
            kind = Kind.INSTANT if is_int96 else _find_kind(schema.field(column.name).type)
            columns[column.name] = _describe_chunks(footer, place, kind)
    return columns


def _find_kind(kind: pa.DataType) -> Kind:
    if kind == pa.timestamp("us", "UTC"):
        return Kind.INSTANT
    return Kind.INTEGER if pa.types.is_signed_integer(kind) else Kind.OTHER


def _describe_chunks(footer: pq.FileMetaData, place: int, kind: Kind) -> ColumnFacts:
    """What the statistics of all chunks of a column tell."""
    chunks = [footer.row_group(n).column(place) for n in range(footer.num_row_groups)]
    known = [chunk.statistics for chunk in chunks if chunk.statistics is not None]
    if len(known) < len(chunks) or not all(each.has_null_count for each in known):
        return ColumnFacts(kind)
    nulls = sum(each.null_count for each in known)
    # A chunk of nulls alone has no least value.
    valued = [each for each in known if each.num_values]
    if kind is Kind.OTHER or not valued or not all(each.has_min_max for each in valued):
        return ColumnFacts(kind, nulls)
    ends = min(each.min_raw for each in valued), max(each.max_raw for each in valued)
    return ColumnFacts(kind, nulls, ends)


def read_columns(file: ParquetFile, names: Sequence[str]) -> ParquetFile:
    """The same file, with everything known of the columns `names`, whose values are read."""
    if not names:
        return file
    found = dict(file.columns)
    with open_parquet(file.path) as opened:
        for name in names:
            found[name] = _describe_values(opened, name, file.columns[name].kind)
    return replace(file, columns=found)


def _describe_values(opened: pq.ParquetFile, name: str, kind: Kind) -> ColumnFacts:
    """What the values of a column tell: nulls, and ends or whether they are finite."""
    nulls, is_finite = 0, True
    ends: list[int] = []
    for batch in opened.iter_batches(_AT_ONCE, columns=[name]):
        # Arrow also reads a field of a struct whose path is this name.
        values = batch.column(name)
        nulls += values.null_count
        if pa.types.is_floating(values.type):
            is_finite = is_finite and pc.all(pc.is_finite(values), min_count=0).as_py()
        elif kind is not Kind.OTHER:
            found = pc.min_max(values.cast(pa.int64())).as_py()
            ends += [end for end in found.values() if end is not None]
    return ColumnFacts(kind, nulls, (min(ends), max(ends)) if ends else None, is_finite)
