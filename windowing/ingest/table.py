"""What an ingest has taken, where broken records are, and the commit of rows to the source table.

All of it lies in the directory of the source table, in `_ingest`, so that the record of files is
moved, restored and deleted together with the rows.

files: which files were taken, and as what; a row for each, written before their rows
quarantine: records that are no rows, with file and reason
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import BATCH, FILE, RECORD, WHY
from windowing.ingest.rule import (
    APPLICATION,
    FILES,
    HOME,
    QUARANTINE,
    LandedFile,
    fence_number,
    rows_number,
)
from windowing.location import Location
from windowing.storage import compaction, control, delta, own_tables, staged_files, upkeep
from windowing.storage.commit_file import superseded
from windowing.storage.table_properties import CHANGE_FEED

_NEW_TABLE = {CHANGE_FEED: "true"}
"""What a source table is created with, so that corrections in it can be followed."""
_MOST_FILES = 50
"""How many files a record may have, of which each ingest opens all."""
_TIME = pa.timestamp("us", "UTC")
_RECORD = pa.schema(
    [
        (BATCH, pa.int64()),
        ("file", pa.string()),
        ("bytes", pa.int64()),
        ("modified", _TIME),
        ("rows", pa.int64()),
        ("quarantined", pa.int64()),
        ("taken_at", _TIME),
    ]
)
_BROKEN = f"{BATCH} bigint, {FILE} string, record string, reason string, taken_at timestamp"


@dataclass(frozen=True)
class TakenFile:
    """A file as it was taken, and how many of its records became rows, or were quarantined."""

    file: LandedFile
    rows: int
    quarantined: int


@dataclass(frozen=True)
class Record:
    """The record of files at `version`; -1 where there is none.

    `batch` is the last one, 0 before the first; `is_void` where it was fenced off. `before` are the
    files of all batches but the last.
    """

    version: int = -1
    batch: int = 0
    is_void: bool = False
    taken: Mapping[str, LandedFile] = field(default_factory=dict)
    before: Mapping[str, LandedFile] = field(default_factory=dict)


def home_of(table: Location) -> Location:
    """The directory of what an ingest keeps beside the rows of a source table."""
    return table / HOME


def read_record(table: Location) -> Record:
    """The files that were taken into a source table. The last batch may have been interrupted."""
    found = control.read_contents(home_of(table) / FILES)
    rows = [row for file in found.files for row in control.to_rows(file)]
    rows.sort(key=lambda row: (row[BATCH], row["taken_at"]))
    if not rows:
        return Record(found.version)
    last = rows[-1][BATCH]
    earlier = [row for row in rows if row[BATCH] < last]
    # Files that have changed since are recorded behind the row that says so.
    is_void = any(row["file"] is None for row in rows if row[BATCH] == last)
    return Record(found.version, last, is_void, _files_of(rows), _files_of(earlier))


def _files_of(rows: Sequence[control.Row]) -> dict[str, LandedFile]:
    """The files by name, as the last row of each has them."""
    return {
        row["file"]: LandedFile(row["file"], row["bytes"], row["modified"])
        for row in rows
        if row["file"] is not None
    }


def find_committed(table: Location) -> int:
    """The last number that an ingest has committed to a source table under; 0 for none."""
    return control.read_committed(table, APPLICATION) or 0


def record_files(
    table: Location, record: Record, batch: int, files: Sequence[TakenFile], at_us: int
) -> None:
    """Records files as those of a batch; Busy if it is not the next.

    Nothing of the batch may be in any table yet.
    """
    rows = [
        {
            BATCH: batch,
            "file": taken.file.name,
            "bytes": taken.file.bytes,
            "modified": taken.file.modified_us,
            "rows": taken.rows,
            "quarantined": taken.quarantined,
            "taken_at": at_us,
        }
        for taken in files
    ]
    control.append_rows(home_of(table) / FILES, _RECORD, rows, record.version)


def void_batch(table: Location, batch: int, at_us: int) -> None:
    """Replaces the files of a batch by a row without one, which says that the batch is void."""
    void = {BATCH: batch, "taken_at": at_us}
    control.replace_rows(home_of(table) / FILES, _RECORD, [void], f"{BATCH} = {batch}")


def compact_record(table: Location) -> None:
    """Makes one file of the many that a record has after many ingests; no row changes."""
    compaction.compact_files(home_of(table) / FILES, _MOST_FILES)


def drop_leftovers(table: Location) -> None:
    """Deletes what killed ingests were writing to their tables; nobody may write there meanwhile.

    Those are files without a name of their own yet. One whose JVM alone was killed may still be
    writing, and finds that its file is gone.
    """
    for name in (FILES, QUARANTINE):
        staged_files.drop_staged(home_of(table) / name)


def create_table(spark: SparkSession, table: Location, columns: T.StructType) -> None:
    """Creates the source table unless it exists; its directory may have files already."""
    if not delta.exists(spark, table):
        delta.append_to_source(delta.no_rows(spark, columns), table, properties=_NEW_TABLE)


def find_schema(spark: SparkSession, table: Location) -> T.StructType | None:
    """The columns of the source table; None where there is no table yet."""
    return delta.read(spark, table).schema if delta.exists(spark, table) else None


def append_rows(rows: DataFrame, table: Location, batch: int) -> None:
    """Appends the rows of a batch, once; the table gets the columns that it lacks.

    Busy where another ingest has fenced the batch off.
    """
    fitting = rows.where(F.col(WHY).isNull()).drop(WHY, RECORD)
    delta.append_to_source(fitting, table, (APPLICATION, rows_number(batch)))
    # Delta passes over the number of a batch that was fenced off, without an error.
    if find_committed(table) != rows_number(batch):
        raise superseded(table)


def fence_batch(spark: SparkSession, table: Location, batch: int) -> None:
    """Commits without rows; whoever still wants to commit those of the batch is refused then."""
    nothing = delta.no_rows(spark, delta.read(spark, table).schema)
    delta.append_to_source(nothing, table, (APPLICATION, fence_number(batch)))


def quarantine_rows(rows: DataFrame, table: Location, batch: int, at_us: int) -> None:
    """Stores the records that are no rows. [source_file, __record, __why] -> quarantine."""
    broken = rows.where(F.col(WHY).isNotNull()).select(
        F.lit(batch).cast("bigint").alias(BATCH),
        F.col(FILE),
        F.col(RECORD).alias("record"),
        F.col(WHY).alias("reason"),
        F.timestamp_micros(F.lit(at_us)).alias("taken_at"),
    )
    place = home_of(table) / QUARANTINE
    own_tables.append_many(broken, own_tables.open_snapshot(place))


def withdraw_quarantined(spark: SparkSession, table: Location, batch: int) -> None:
    """Deletes the records that a batch has quarantined. There is a quarantine then.

    Whoever slept over the batch could still make one, and store its records there.
    """
    place = home_of(table) / QUARANTINE
    if delta.exists(spark, place):
        upkeep.delete_where(spark, place, F.col(BATCH) == batch)
    else:
        nothing = delta.no_rows(spark, delta.parse_columns(_BROKEN))
        own_tables.append_many(nothing, own_tables.open_snapshot(place))
