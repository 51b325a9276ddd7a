"""A commit to a Delta table that this process writes by itself, as one file of the log.

delta-rs commits files that were added, but none that were removed or that tell a change feed what
has changed. Its own MERGE stores texts in a type of Arrow that readers can't filter by.
"""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from windowing.errors import Busy
from windowing.location import Location
from windowing.storage.file_statistics import read_statistics
from windowing.storage.files import locate_commit
from windowing.storage.footers import ParquetFile, describe_parquet
from windowing.storage.kept_open import keep_commit, keep_data
from windowing.storage.store import shared_store_of, store_of

CHANGES = "_change_data"
"""The directory of a table in which readers of its change feed find files."""

Action = Mapping[str, object]
"""A line of a commit."""


@dataclass(frozen=True)
class DataFile:
    """A file of a table by its name in the table's directory, and how large it is."""

    name: str
    bytes: int


def write_data_file(directory: Location, rows: pa.Table) -> ParquetFile:
    """Writes `rows` as a Parquet file in `directory`, which no commit names yet."""
    return _write_content(directory, _to_parquet(rows))


def write_kept_file(directory: Location, rows: pa.Table) -> ParquetFile:
    """`write_data_file` of rows that this command reads again, and then asks no store for."""
    content = _to_parquet(rows)
    written = _write_content(directory, content)
    keep_data(directory, written.path.name, content.to_pybytes())
    return written


def _to_parquet(rows: pa.Table) -> pa.Buffer:
    content = pa.BufferOutputStream()
    pq.write_table(rows, content, compression="zstd", compression_level=3)
    return content.getvalue()


def _write_content(directory: Location, content: pa.Buffer) -> ParquetFile:
    file = directory / f"part-{uuid4()}.zstd.parquet"
    store_of(file).create(file, content.to_pybytes())
    return describe_parquet(file, pa.BufferReader(content))


def add_file(file: ParquetFile, pruned: Collection[str]) -> Action:
    """The line that makes `file` a part of the table in whose directory it lies.

    The log has statistics of the columns `pruned`.
    """
    return {
        "add": {
            "path": file.path.name,
            "partitionValues": {},
            "size": file.bytes,
            "modificationTime": _milliseconds(),
            "dataChange": True,
            "stats": json.dumps(read_statistics(file, pruned)),
        }
    }


def note_transaction(application: str, number: int) -> Action:
    """The line after which `application` has committed `number`."""
    return {"txn": {"appId": application, "version": number, "lastUpdated": _milliseconds()}}


def remove_file(file: DataFile) -> Action:
    """The line after which `file` is no part of the table any more."""
    return {
        "remove": {
            "path": file.name,
            "deletionTimestamp": _milliseconds(),
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": file.bytes,
        }
    }


def tell_changes(file: ParquetFile) -> Action:
    """The line that makes `file`, in the directory CHANGES, the change feed of the commit."""
    path = f"{CHANGES}/{file.path.name}"
    sized = {"path": path, "partitionValues": {}, "size": file.bytes, "dataChange": False}
    return {"cdc": sized}


def without_change(action: Action) -> Action:
    """The same line of a file, which tells readers of changes that no row has changed."""
    return {kind: {**_as_dict(facts), "dataChange": False} for kind, facts in action.items()}


def _as_dict(facts: object) -> dict[str, object]:
    return dict(facts) if isinstance(facts, dict) else {}


def commit(home: Location, version: int, operation: str, actions: Sequence[Action]) -> None:
    """Makes `version` of the table in `home` of `actions`; Busy where another commit made it.

    The commit is there as a whole or not at all.
    """
    info = {
        "timestamp": _milliseconds(),
        "operation": operation,
        "operationParameters": {},
        "isBlindAppend": False,
        "engineInfo": "tidemark",
    }
    create_commit(home, version, render_actions([{"commitInfo": info}, *actions]))


def render_actions(actions: Sequence[Action]) -> bytes:
    """The lines of a commit as its file has them."""
    return "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in actions).encode()


def create_commit(home: Location, version: int, content: bytes) -> None:
    """Makes `version` of the table in `home` by the file of its commit; Busy where it was made."""
    file = locate_commit(home, version)
    shared = shared_store_of(home)
    if shared is None:
        if not store_of(home).create(file, content):
            raise superseded(home)
        return
    tag = shared.create_listed(file, content)
    if tag is None:
        raise superseded(home)
    keep_commit(home, version, content, tag)


def superseded(path: Location) -> Busy:
    """The error of a commit to the table at `path` that came second."""
    return Busy(f"{path}: another writer committed first; try again when it has finished")


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000
