"""The pinned columns of a pipeline's files: read, or inferred from the first files and written."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.landing.reading import Sorted, leave_strangers, read_records
from jobs.sessions.exact_session import copy_session
from windowing.columns import WHY
from windowing.errors import SpecError, UsageError
from windowing.ingest.columns import (
    PinnedColumn,
    add_columns,
    check_content,
    no_type,
    read_columns,
    render_columns,
)
from windowing.ingest.fit import find_new
from windowing.ingest.frame import Records
from windowing.ingest.inference import SAMPLE, TEXT, Guess, guess_type, infer_objects
from windowing.ingest.json_values import is_nested
from windowing.ingest.kinds import leave_impossible, write_kind
from windowing.ingest.names import name_columns
from windowing.ingest.rule import describe_names
from windowing.spec.pipeline import Files
from windowing.storage import delta, landed_files
from windowing.storage.store import store_of

_COMMENTS = (
    "Columns of the source table, and what is read into them from files that land.",
    "`tidemark ingest` has guessed them once; correct them and keep this file in version control.",
    "Types are Spark's. `from` is the name in files, `format` the pattern of times that are not",
    "ISO 8601. Times without a zone are timestamp_ntz; source.zone of the spec says where they are",
    "local.",
)


@dataclass(frozen=True)
class Pinned:
    """The columns that are pinned, with their types, and the names of those that were added now.

    `is_new`: whether they were inferred and written now.
    """

    columns: tuple[PinnedColumn, ...]
    types: T.StructType
    added: tuple[str, ...] = ()
    is_new: bool = False

    @property
    def sources(self) -> tuple[str, ...]:
        """The names that the columns have in files."""
        return tuple(column.source for column in self.columns)


def pin_columns(spark: SparkSession, files: Files, found: Sorted) -> Pinned:
    """The columns by which these files are read.

    Written where they were not pinned yet, and where files have more columns and these are to be
    added. SpecError for wrong columns, and for more columns where these are to fail.
    """
    if store_of(files.columns).read(files.columns) is None:
        inferred = _infer_columns(spark, files, found, ())
        if not inferred:
            raise UsageError(
                f"{files.folder} has no file whose columns can be told; "
                f"write them in {files.columns}, as in columns: {{price: double}}"
            )
        text = render_columns(inferred, _COMMENTS)
        _write(files, text)
        return Pinned(inferred, _read_types(inferred, files), is_new=True)
    columns = read_columns(files.columns.text)
    pinned = Pinned(columns, _read_types(columns, files))
    if files.on_new_column == "rescue":
        return pinned
    known = leave_strangers(found, pinned.sources, files)
    new = _find_new(spark, files, known, pinned)
    if not new:
        return pinned
    if files.on_new_column == "fail":
        raise SpecError(
            "source.files.on_new_column",
            f"files have columns that {files.columns} has not: {describe_names(new)}; pin them "
            "there, or say rescue or add",
        )
    return _add_columns(spark, files, known, pinned)


def _add_columns(spark: SparkSession, files: Files, found: Sorted, pinned: Pinned) -> Pinned:
    added = _infer_columns(spark, files, found, pinned.columns)
    content = store_of(files.columns).read(files.columns) or b""
    columns = (*pinned.columns, *added)
    _write(files, add_columns(content.decode("utf-8-sig"), pinned.columns, added))
    names = tuple(column.name for column in added)
    return Pinned(columns, _read_types(columns, files), added=names)


def _write(files: Files, text: str) -> None:
    """Writes the file that pins columns; SpecError where the next ingest could not read it."""
    content = text.encode()
    check_content(files.columns.text, content)
    try:
        store_of(files.columns).write(files.columns, content)
    except OSError as error:
        raise UsageError(
            f"{files.columns} can't be written ({error.strerror}); ingest once where it can be, "
            "and bring the file here, or name another place in source.files.columns"
        ) from error


def _read_types(columns: Sequence[PinnedColumn], files: Files) -> T.StructType:
    """The types of the columns as Spark knows them; SpecError for one that it does not know."""
    fields = []
    for column in columns:
        field = f"columns.{column.name}"
        try:
            kind = _read_type(column.type)
        except ParseException:
            wrong = no_type(field, column.type)
            raise SpecError(wrong.field, wrong.message, files.columns.text) from None
        if leave_impossible(kind).simpleString() != kind.simpleString():
            raise SpecError(
                field,
                f"{column.type!r} has a field that a table can't have: names of fields differ by "
                "more than case, and have no blanks and none of ,;{}()=; leave it out, and its "
                "values are kept in rescued",
                files.columns.text,
            )
        fields.append(T.StructField(column.name, kind))
    return T.StructType(fields)


def _read_type(text: str) -> T.DataType:
    return delta.parse_columns(f"c {text}").fields[0].dataType


def _write_possible(kind: T.DataType) -> str:
    """The text of a type that was inferred, as far as a table can have it."""
    return write_kind(leave_impossible(kind))


def _find_new(spark: SparkSession, files: Files, found: Sorted, pinned: Pinned) -> tuple[str, ...]:
    """The names in files that no column is read from, in their order, then those in structs.

    Names in structs are looked for where they are to fail, because only columns can be added.
    """
    names = [name for name in found.names if name not in pinned.sources]
    looked = pinned if files.on_new_column == "fail" else Pinned((), T.StructType())
    if files.format != "json" and not any(is_nested(field.dataType) for field in looked.types):
        return tuple(dict.fromkeys(names))
    new: set[str] = set()
    for records in read_records(spark, files, found, pinned.sources):
        rows = find_new(records, looked.columns, looked.types, files.csv)
        new.update(row["name"] for row in rows.toLocalIterator())
    return tuple(dict.fromkeys([*names, *sorted(new)]))


def _infer_columns(
    spark: SparkSession, files: Files, found: Sorted, pinned: Sequence[PinnedColumn]
) -> tuple[PinnedColumn, ...]:
    """A column for each name in files that none of the pinned ones is read from."""
    guesses = _guess_all(spark, files, found)
    taken = {column.source for column in pinned}
    sources = [source for source in guesses if source not in taken]
    names = name_columns(sources, (column.name for column in pinned))
    return tuple(
        PinnedColumn(name, guesses[source].type, source, guesses[source].format)
        for name, source in zip(names, sources, strict=True)
    )


def _guess_all(spark: SparkSession, files: Files, found: Sorted) -> dict[str, Guess]:
    """The types of all names in files, in the order in which these have them."""
    known = _infer_json(spark, files, found) if files.format == "json" else {}
    guesses = {name: Guess(kind) for name, kind in known.items()}
    guesses |= {name: Guess(TEXT) for name in found.names}
    texts: dict[str, list[str | None]] = {}
    for records in read_records(spark, files, found, list(guesses)):
        if files.format == "parquet" and records.types is not None:
            kinds = {name: _write_possible(records.types[name]) for name in records.values}
            guesses |= {name: Guess(kind) for name, kind in kinds.items()}
            continue
        for name, values in _sample(records, guesses).items():
            texts.setdefault(name, []).extend(values)
    guesses |= {name: guess_type(values, files.csv) for name, values in texts.items()}
    return guesses


def _infer_json(spark: SparkSession, files: Files, found: Sorted) -> dict[str, str]:
    if not found.files:
        return {}
    if files.records:
        return _infer_of_records(spark, files, found)
    # Elsewhere names that differ by case alone would be an error.
    exact = copy_session(spark, {"spark.sql.caseSensitive": "true"})
    try:
        records = landed_files.read_json(exact, files.folder, found.files, spans=files.multiline)
    except AnalysisException as error:
        # A record that has a name twice is none, so the others say the types.
        if error.getCondition() != "COLUMN_ALREADY_EXISTS":
            raise
        return _infer_of_records(spark, files, found)
    fields = [field for field in records.schema if field.name != "_corrupt_record"]
    return {field.name: _write_possible(field.dataType) for field in fields}


def _infer_of_records(spark: SparkSession, files: Files, found: Sorted) -> dict[str, str]:
    """The types of some of the records that are whole."""
    texts = []
    for records in read_records(spark, files, found, ()):
        right = records.rows.where(F.col(WHY).isNull()).select(F.to_json(records.rest))
        texts += right.limit(SAMPLE).toArrow().column(0).to_pylist()
    kinds = infer_objects(json.loads(text, parse_float=Decimal) for text in texts)
    return {name: _write_possible(_read_type(kind)) for name, kind in kinds.items()}


def _sample(records: Records, guesses: dict[str, Guess]) -> dict[str, list[str | None]]:
    """Values of the columns that are texts as far as is known."""
    names = [name for name in records.values if guesses[name].type == TEXT]
    values = [records.values[name].cast("string").alias(f"v{n}") for n, name in enumerate(names)]
    some = records.rows.where(F.col(WHY).isNull()).select(*values).limit(SAMPLE).toArrow()
    return {name: some.column(n).to_pylist() for n, name in enumerate(names)}
