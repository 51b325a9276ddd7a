"""What a new pipeline is proposed from: a file, or a Delta table that is there already. No JVM."""

import csv
import gzip
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from windowing.errors import UsageError
from windowing.ingest.header import BOM, split_lines
from windowing.ingest.inference import SAMPLE
from windowing.ingest.rule import GZIP, list_endings
from windowing.ingest.sniff import guess_form
from windowing.location import Location
from windowing.spec.places import Base, resolve_directory
from windowing.spec.words import join_names
from windowing.storage.control import errors_explained
from windowing.storage.kept_open import has_commit

_BYTES = 4_000_000
"""How much of a file is looked at, at most, if it has a record on each line."""
_DOCUMENT_FIELDS = {"multiline", "records"}
"""A form has one of these where a file is one document of JSON, which is read as a whole."""
_DOCUMENT_BYTES = 100_000_000
"""How large such a document may be."""
_SHORT = 10_000
"""How many bytes a document has at most that is looked at for whether it has records."""


@dataclass(frozen=True)
class FileSample:
    """What of a file is looked at, and how it is read: fields of `source.files`.

    `name` is what it is called when it is not compressed. Without a `file` the content is all.
    """

    name: str
    content: bytes
    form: Mapping[str, object]
    file: Path | None = None


@dataclass(frozen=True)
class TableSample:
    """A Delta table that others write to."""

    table: Location

    @property
    def name(self) -> str:
        """What it is called."""
        return self.table.name


Sample = FileSample | TableSample


def find_sample(text: str) -> Sample:
    """What --from names: a file, or a Delta table by its path or URL; UsageError for neither.

    SpecError for a path that the source of a pipeline can't have.
    """
    table = Location(resolve_directory("--from", text, Base(os.getcwd())))
    try:
        if table.is_local and Path(table.text).is_file():
            return sample_file(Path(table.text))
    except OSError as error:
        raise UsageError(f"--from {text}: can't be read ({error.strerror})") from error
    with errors_explained(table):
        if has_commit(table):
            return TableSample(table)
    is_missing = table.is_local and not Path(table.text).exists()
    what = "there is no such file or folder" if is_missing else "there is no Delta table"
    raise UsageError(f"--from {text}: {what}; name a file, or a Delta table by its path or URL")


def check_apart(folder: Path, sample: TableSample) -> None:
    """UsageError for a folder in the directory of the table, where a VACUUM deletes files."""
    if sample.table.contains(Location(str(folder.absolute()))):
        raise UsageError(f"{folder} lies in the table {sample.table}; name a folder elsewhere")


def sample_file(file: Path) -> FileSample:
    """Some thousand records from the beginning of a file.

    UsageError for one that is not read, and for one that has no record.
    """
    try:
        content, form = _read_sample(file)
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or "it is cut off or damaged"
        raise UsageError(f"--from {file}: can't be read ({why})") from error
    if form is None:
        endings = [ending for kind in ("csv", "json", "parquet") for ending in list_endings(kind)]
        raise UsageError(f"--from {file}: its name ends in none of {join_names(endings)}")
    lacking = _find_lacking(content, form)
    if lacking is not None:
        raise UsageError(f"--from {file}: {lacking}")
    return FileSample(file.name.removesuffix(GZIP), content, form, file)


def _read_sample(file: Path) -> tuple[bytes, Mapping[str, object] | None]:
    """Whole lines, a whole document of JSON, or the first rows of Parquet; how it is read."""
    if file.suffix == ".parquet":
        return _read_first_rows(file), guess_form(file.name, b"")
    with _open(file) as opened:
        beginning = opened.read(_BYTES)
    form = guess_form(file.name, beginning)
    if form is not None and _DOCUMENT_FIELDS & form.keys():
        return _read_document(file), form
    lines = beginning.splitlines(keepends=True)
    whole = lines if len(beginning) < _BYTES else lines[:-1]
    content = b"".join(whole[: SAMPLE + 1])
    return content, guess_form(file.name, content)


def _find_lacking(content: bytes, form: Mapping[str, object]) -> str | None:
    """What is wrong with a file that has no record, and what to do; None where it may have some."""
    if not content.removeprefix(BOM.encode()).strip():
        return "is empty; name a file that has some records"
    match form.get("format", "csv"):
        case "csv":
            is_header = form.get("header", True) and _is_one_row(content, form)
            return "has a header and no rows; name a file that has some" if is_header else None
        case "json":
            is_none = _has_no_object(content, form)
        case _:
            is_none = pq.ParquetFile(pa.BufferReader(content)).metadata.num_rows == 0
    return "has no record; name a file that has some" if is_none else None


def _is_one_row(content: bytes, form: Mapping[str, object]) -> bool:
    text = content.decode(str(form.get("encoding", "utf-8")), errors="replace")
    reader = csv.reader(split_lines(text), delimiter=str(form.get("delimiter", ",")))
    rows = (row for row in reader if any(value.strip() for value in row))
    try:
        next(rows, None)
        return next(rows, None) is None
    except csv.Error:  # a value that is longer than a reader takes
        return False


def _has_no_object(content: bytes, form: Mapping[str, object]) -> bool:
    """Whether lines, or a short document, have no object with a field."""
    content = content.removeprefix(BOM.encode())
    if not _DOCUMENT_FIELDS & form.keys():
        return all(line.strip() in (b"", b"{}") for line in content.splitlines())
    if len(content) > _SHORT:
        return False
    try:
        found = json.loads(content)
    except ValueError:
        return False
    if "records" in form:
        found = found.get(form["records"]) if isinstance(found, dict) else None
    return isinstance(found, list) and not any(found)


def _read_document(file: Path) -> bytes:
    with _open(file) as opened:
        content = opened.read(_DOCUMENT_BYTES + 1)
    if len(content) > _DOCUMENT_BYTES:
        raise UsageError(
            f"--from {file}: is one document of more than {_DOCUMENT_BYTES // 1_000_000} MB; name "
            "a smaller one like it"
        )
    return content


def _open(file: Path) -> IO[bytes]:
    # A file of gzip is one of bytes, which its type does not say.
    return cast("IO[bytes]", gzip.open(file)) if file.suffix == GZIP else file.open("rb")


def _read_first_rows(file: Path) -> bytes:
    content = pa.BufferOutputStream()
    try:
        opened = pq.ParquetFile(file)
        first = next(opened.iter_batches(SAMPLE), None)
        batches = [] if first is None else [first]
        pq.write_table(pa.Table.from_batches(batches, opened.schema_arrow), content)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise UsageError(f"--from {file}: is not a Parquet file") from error
    return bytes(content.getvalue().to_pybytes())
