"""One batch of files: read, recorded, its broken records stored, its rows appended, in this order.

record of files -> quarantine -> source table: what a crash leaves is told by the last of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.landing.look import list_files
from jobs.landing.pinning import Pinned, pin_columns
from jobs.landing.reading import (
    Sorted,
    file_changed,
    find_damaged,
    leave_strangers,
    read_records,
    sort_files,
)
from windowing.columns import FILE, RECORD, RESCUED, WHY
from windowing.crash import crashpoint
from windowing.errors import SpecError, UsageError
from windowing.ingest import table
from windowing.ingest.fit import find_rescued, fit_rows
from windowing.ingest.rule import LandedFile, describe_names
from windowing.ingest.table import Record, TakenFile
from windowing.location import Location
from windowing.spec.pipeline import Files
from windowing.storage import delta
from windowing.storage.pinned_rows import pin_rows
from windowing.storage.spark_internals import SPARK_ERRORS

_ADDED = "source_file string, rescued string"
MOST_NAMES = 1_000
"""How many names that are not pinned are told; records may have data for names."""
_HELPERS = f"{RECORD} string, {WHY} string"


@dataclass(frozen=True)
class Batch:
    """A batch of files that was taken: by which columns, and each file with its counts.

    `not_pinned` are names whose values are in `rescued`, those of fields with points between.
    """

    pinned: Pinned
    files: tuple[TakenFile, ...]
    not_pinned: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Counted:
    """The files with their counts, and how many records have something in `rescued`."""

    files: tuple[TakenFile, ...]
    rescued: int


def take_batch(
    spark: SparkSession,
    source: Location,
    files: Files,
    record: Record,
    landed: Sequence[LandedFile],
    at_us: int,
) -> Batch:
    """Takes files whole, in a batch that follows the last one of the `record`.

    Every record becomes a row of the source or of the quarantine. UsageError where a file is
    written to meanwhile; nothing was taken then.
    """
    pinned, rows = _read_batch(spark, files, landed)
    _check_types(spark, source, pinned, files)
    counted = _count(rows, landed)
    not_pinned = _find_not_pinned(rows, pinned) if counted.rescued else ()
    crashpoint("ingest.counted")
    _check_unchanged(files, landed)
    crashpoint("ingest.read")
    table.create_table(spark, source, _columns(pinned))
    batch = record.batch + 1
    table.record_files(source, record, batch, counted.files, at_us)
    crashpoint("ingest.recorded")
    if any(file.quarantined for file in counted.files):
        table.quarantine_rows(rows, source, batch, at_us)
    crashpoint("ingest.quarantined")
    table.append_rows(rows, source, batch)
    crashpoint("ingest.appended")
    return Batch(pinned, counted.files, not_pinned)


def _read_batch(
    spark: SparkSession, files: Files, landed: Sequence[LandedFile]
) -> tuple[Pinned, DataFrame]:
    """The columns, and the rows of all files as they are now, computed once."""
    found = sort_files(files, landed)
    try:
        return _read_sorted(spark, files, found)
    except SPARK_ERRORS:
        _check_unchanged(files, landed)
        # Spark does not tell which file it could not read.
        damaged = find_damaged(spark, files, found.files)
        if not damaged:
            raise
        left = [file for file in landed if file.name not in damaged]
        rest = sort_files(files, left)
        return _read_sorted(
            spark, files, Sorted(rest.groups, {**rest.unreadable, **damaged}, rest.lines)
        )


def _read_sorted(spark: SparkSession, files: Files, found: Sorted) -> tuple[Pinned, DataFrame]:
    pinned = pin_columns(spark, files, found)
    known = leave_strangers(found, pinned.sources, files)
    parts = [
        fit_rows(records, pinned.columns, pinned.types, files.csv, files.on_unfit_value)
        for records in read_records(spark, files, known, pinned.sources)
    ]
    parts.append(_broken_files(spark, known, pinned))
    return pinned, pin_rows(reduce(DataFrame.unionByName, parts))


def _broken_files(spark: SparkSession, found: Sorted, pinned: Pinned) -> DataFrame:
    """A record without text for each file that is none of its format."""
    helpers = delta.parse_columns(_HELPERS).fields
    schema = T.StructType([*_columns(pinned).fields, *helpers])
    values = [{FILE: name, WHY: why} for name, why in found.unreadable.items()]
    return delta.typed_rows(spark, values, schema)


def _columns(pinned: Pinned) -> T.StructType:
    """The columns of the source table that an ingest writes."""
    return T.StructType([*pinned.types.fields, *delta.parse_columns(_ADDED).fields])


def _count(rows: DataFrame, landed: Sequence[LandedFile]) -> _Counted:
    """Each file with the number of its records by their outcome."""
    per_file = rows.groupBy(FILE).agg(
        F.count_if(F.col(WHY).isNull()).alias("rows"),
        F.count_if(F.col(WHY).isNotNull()).alias("quarantined"),
        F.count(RESCUED).alias("rescued"),
    )
    found = {row[FILE]: row for row in per_file.collect()}
    strangers = found.keys() - {file.name for file in landed}
    if strangers:
        raise UsageError(f"internal error: rows of {describe_names(sorted(strangers))} were read")
    counts = {name: (row["rows"], row["quarantined"]) for name, row in found.items()}
    files = tuple(TakenFile(file, *counts.get(file.name, (0, 0))) for file in landed)
    return _Counted(files, sum(row["rescued"] for row in found.values()))


def _find_not_pinned(rows: DataFrame, pinned: Pinned) -> tuple[str, ...]:
    """Names that are not pinned, of values that rows keep in `rescued`; some where they are many.

    Rows were computed, so no file is read again.
    """
    names = find_rescued(rows, pinned.columns, pinned.types).limit(MOST_NAMES)
    return tuple(sorted(row["name"] for row in names.collect()))


def _check_unchanged(files: Files, landed: Sequence[LandedFile]) -> None:
    """Raises where a file is not as it was listed before it was read."""
    now = {file.name: file for file in list_files(files.folder)}
    for file in landed:
        if now.get(file.name) != file:
            raise file_changed(files, file.name)


def _check_types(spark: SparkSession, source: Location, pinned: Pinned, files: Files) -> None:
    """Raises SpecError where a column of the source has another type than the pinned one."""
    stored = table.find_schema(spark, source)
    known = {} if stored is None else {field.name.lower(): field for field in stored.fields}
    for field in _columns(pinned).fields:
        there = known.get(field.name.lower())
        if there is None:
            continue
        kind, wanted = there.dataType.simpleString(), field.dataType.simpleString()
        if there.name != field.name or kind != wanted:
            raise SpecError(
                f"columns.{field.name}",
                f"is {wanted} here, and {there.name} {kind} in {source}; pin what the table has, "
                "or change the table",
                files.columns.text,
            )
