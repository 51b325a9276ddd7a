"""The data files of a version of a table, as plain files that any reader of Parquet understands.

Most are plain as they lie there. Others are written anew: files of which a deletion vector marks
rows, and files with types that not every reader has. The name of a plain file follows from what
it contains alone, so whoever has a file of that name has that file.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import Schema

from windowing.location import Location
from windowing.storage.control import (
    TableError,
    errors_explained,
    list_added,
    open_delta,
    open_version,
)
from windowing.storage.deletion_marks import MARKED, Marks, pad_marks, read_marks
from windowing.storage.file_rows import fit_columns
from windowing.storage.files import locate_uri
from windowing.storage.footers import ParquetFile, describe_parquet, open_parquet, read_footer
from windowing.storage.store import store_of
from windowing.storage.table_properties import STORED_NAME

_PLAIN = ".plain"
"""What the name of a file has that was written anew because of its types."""
_AT_ONCE = 200_000
"""How many rows of a file that is written anew are in memory at once."""
_PLAINEST = {"metadata": {}, "nullable": True, "containsNull": True, "valueContainsNull": True}
"""What a column or a nested one is in a copy, where it is described at all."""


@dataclass(frozen=True)
class PlainFile:
    """A file of a version by its name as a plain one, and where its content comes from.

    `kept` says which rows of the original are still there; None where all are.
    """

    name: str
    original: Location
    rows: int
    kept: Marks | None = None


@dataclass(frozen=True)
class VersionFiles:
    """A version of a table: its columns and settings as the log has them, and its files."""

    table: Location
    version: int
    schema_json: str
    settings: Mapping[str, str]
    files: tuple[PlainFile, ...]

    @property
    def rows(self) -> int:
        """How many rows that version has."""
        return sum(file.rows for file in self.files)

    def list_without(self, other: "VersionFiles") -> list[PlainFile]:
        """The files with rows that another version has not."""
        names = {file.name for file in other.files}
        return [file for file in self.files if file.rows and file.name not in names]

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Arrow has them."""
        return pa.schema(Schema.from_json(self.schema_json).to_arrow())


def list_version(path: Location, version: int) -> VersionFiles:
    """What a version of the table at `path` consists of.

    TableError where the log has no statistics of a file, that version has been removed, or columns
    have other names in its files.
    """
    with errors_explained(path):
        table = open_version(path, version)
        added = list_added(table)
        is_marked = MARKED in (table.protocol().reader_features or ())
        metadata, schema_json = table.metadata(), str(table.schema().to_json())
        # Of the table that is open the log alone may be read.
        marks = read_marks(open_delta(path, version)) if is_marked else {}
    return VersionFiles(
        path,
        version,
        _drop_notes(path, schema_json),
        dict(metadata.configuration),
        tuple(_describe(path, row, marks) for row in _list_rows(added)),
    )


def _list_rows(added: pa.Table) -> list[dict[str, Any]]:
    return added.select(["path", "num_records"]).to_pylist() if added.num_rows else []


def _describe(path: Location, row: Mapping[str, Any], marks: Mapping[str, Marks]) -> PlainFile:
    name, rows = unquote(row["path"]), row["num_records"]
    if rows is None:
        raise TableError(path, "a file has no statistics")
    # The path of a file that lies elsewhere, as those of a clone do, is a whole one.
    original = locate_uri(name) if ":" in name.split("/")[0] else path / name
    marked = marks.get(original.name)
    if marked is None:
        return PlainFile(original.name, original, rows)
    kept = pad_marks(marked, rows)
    digest = hashlib.blake2b(np.packbits(kept).tobytes(), digest_size=8).hexdigest()
    stem = original.name.removesuffix(".parquet")
    return PlainFile(f"{stem}.{digest}.parquet", original, int(kept.sum()), kept)


def _drop_notes(path: Location, schema_json: str) -> str:
    """The columns without what the log notes of them: a copy has nothing but names and types.

    A table with columns that are never null asks more of whoever writes to it.
    """
    fields = json.loads(schema_json)
    _check_names(path, fields)
    return json.dumps(_without_notes(fields), separators=(",", ":"))


def _check_names(path: Location, value: object) -> None:
    if isinstance(value, dict):
        physical = value.get("metadata", {}).get(STORED_NAME)
        if physical not in (None, value.get("name")):
            raise TableError(path, "the table feature columnMapping is not supported")
        for each in value.values():
            _check_names(path, each)
    elif isinstance(value, list):
        for each in value:
            _check_names(path, each)


def _without_notes(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _PLAINEST.get(name, _without_notes(each)) for name, each in value.items()}
    return [_without_notes(each) for each in value] if isinstance(value, list) else value


def name_rewritten(file: PlainFile) -> str:
    """The name of a file that has to be written anew because of its types."""
    return f"{file.name.removesuffix('.parquet')}{_PLAIN}.parquet"


def write_plain(file: PlainFile, version: VersionFiles, target: Location) -> ParquetFile:
    """Writes the rows of `file` that are still there as a file with the types of its version.

    A file that is there already stays, because it has the same content. TableError where the table
    of that version has lost the original.
    """
    with errors_explained(version.table):
        written = _render_plain(file, version.schema)
    if not store_of(target).create(target, written.to_pybytes()):
        return read_footer(target)
    return describe_parquet(target, pa.BufferReader(written))


def _render_plain(file: PlainFile, schema: pa.Schema) -> pa.Buffer:
    content = pa.BufferOutputStream()
    with pq.ParquetWriter(content, schema, compression="zstd", compression_level=3) as writer:
        for rows in _iterate_rows(file, schema):
            writer.write_table(rows)
    return content.getvalue()


def read_plain(file: PlainFile, schema: pa.Schema) -> pa.Table:
    """The rows of `file` that are still there, with the columns of `schema`."""
    return pa.concat_tables([schema.empty_table(), *_iterate_rows(file, schema)])


def _iterate_rows(file: PlainFile, schema: pa.Schema) -> Iterator[pa.Table]:
    first = 0
    with open_parquet(file.original) as opened:
        for batch in opened.iter_batches(_AT_ONCE):
            rows = pa.Table.from_batches([batch])
            if file.kept is not None:
                rows = rows.filter(pa.array(file.kept[first : first + rows.num_rows]))
            first += batch.num_rows
            if rows.num_rows:
                yield fit_columns(rows, schema)
