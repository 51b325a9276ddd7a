"""Files of one batch -> their records, group by group of files with the same columns.

A file that is none of its format is left out here, with the reason.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from windowing.errors import UsageError
from windowing.ingest import frame
from windowing.ingest.frame import Records
from windowing.ingest.header import BEGINNING, read_header
from windowing.ingest.quotes import NOT_CLOSED, is_left_open
from windowing.ingest.rule import GZIP, LandedFile, Shape, describe_names, group_by_shape
from windowing.location import Location
from windowing.spec.pipeline import CsvForm, Files
from windowing.storage import landed_files
from windowing.storage.landed_files import UnreadableFile

_ANY = Shape()
"""The columns of JSON files, of which each record has its own."""


@dataclass(frozen=True)
class Sorted:
    """Files by their columns, and the reason for each file that is none.

    `lines` are, by file, the lines of CSV files that have the names of their columns.
    """

    groups: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    unreadable: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of the columns of all groups, in their order."""
        return [name for names, _ in self.groups for name in names]

    @property
    def files(self) -> list[str]:
        """The names of the files of all groups."""
        return [file for _, files in self.groups for file in files]


def sort_files(files: Files, landed: Sequence[LandedFile]) -> Sorted:
    """The files by their columns, which their first lines, or their footers, tell."""
    shapes: dict[str, Shape] = {}
    unreadable: dict[str, str] = {}
    lines: dict[str, str] = {}
    for file in landed:
        try:
            found, line = _read_shape(files, file.name)
        except UnreadableFile as error:
            unreadable[file.name] = error.reason
            continue
        except FileNotFoundError:
            raise file_changed(files, file.name) from None
        except PermissionError as error:
            raise UsageError(
                f"{files.folder / file.name} can't be read ({error.strerror}); let the user of "
                "this process read it, or take it out of the folder"
            ) from error
        if line is not None:
            lines[file.name] = line
        if found is not None:
            shapes[file.name] = found
    return Sorted(tuple(group_by_shape(shapes)), unreadable, lines)


def file_changed(files: Files, name: str) -> UsageError:
    """What is said of a file that is not as it was listed before it was read."""
    return UsageError(
        f"{files.folder / name} was written to or removed while it was read, so nothing of it was "
        "taken; write a file under a name that begins with a dot, and rename it when it is whole"
    )


def _read_shape(files: Files, name: str) -> tuple[Shape | None, str | None]:
    """The columns of a file, None where it has no record, and the line that they stand in."""
    place = files.folder / name
    if files.format == "parquet":
        return Shape(*landed_files.read_parquet_columns(place)), None
    is_gzip = name.endswith(GZIP)
    beginning = landed_files.read_beginning(place, BEGINNING, is_gzip=is_gzip)
    if files.format == "json":
        return (_ANY if beginning.strip() else None), None
    try:
        header = read_header(beginning, files.csv)
    except csv.Error:
        raise UnreadableFile(
            "has a value of more than 131,072 characters in its first record, as where a quote is "
            "not closed"
        ) from None
    if files.multiline and _is_left_open(place, files.csv, is_gzip=is_gzip):
        raise UnreadableFile(NOT_CLOSED)
    return (Shape(header.names) if header.names else None), header.line


def _is_left_open(place: Location, form: CsvForm, *, is_gzip: bool) -> bool:
    # Spark takes all that is behind an open quote into one value, and does not tell.
    return is_left_open(landed_files.read_text_lines(place, form.encoding, is_gzip=is_gzip), form)


def find_damaged(spark: SparkSession, files: Files, names: Iterable[str]) -> Mapping[str, str]:
    """The files that can't be read to their end, each with the reason; takes as long as reading."""
    found: dict[str, str] = {}
    for name in names:
        try:
            if files.format == "parquet":
                landed_files.check_parquet(spark, files.folder / name)
            elif name.endswith(GZIP):
                landed_files.check_gzip(files.folder / name)
        except UnreadableFile as error:
            found[name] = error.reason
    return found


def leave_strangers(found: Sorted, pinned: Sequence[str], files: Files) -> Sorted:
    """Without files that have none of the columns, as where the header is missing.

    `pinned` are the names of the columns in files.
    """
    if files.format == "json":
        return found
    known = set(pinned)
    strangers = {
        name: f"has none of the columns in {files.columns.name} ({describe_names(names)})"
        for names, some in found.groups
        if not known & set(names)
        for name in some
    }
    groups = tuple(group for group in found.groups if known & set(group[0]))
    return Sorted(groups, {**found.unreadable, **strangers}, found.lines)


def read_records(
    spark: SparkSession, files: Files, found: Sorted, pinned: Sequence[str]
) -> list[Records]:
    """The records of all groups; `pinned` are the names in files that have a column."""
    return [_read_group(spark, files, found, names, some, pinned) for names, some in found.groups]


def _read_group(
    spark: SparkSession,
    files: Files,
    found: Sorted,
    names: tuple[str, ...],
    some: tuple[str, ...],
    pinned: Sequence[str],
) -> Records:
    if files.format == "parquet":
        return frame.take_parquet(landed_files.read_parquet(spark, files.folder, some), pinned)
    if files.format == "json" and files.multiline:
        whole = landed_files.read_whole(spark, files.folder, some)
        return frame.split_spanning_json(whole, pinned, files.records)
    if files.format == "csv" and files.multiline:
        options = frame.csv_options(files.csv, spans=True)
        rows = landed_files.read_spanning_csv(spark, files.folder, some, len(names), options)
        return frame.split_spanning_csv(rows, names, pinned, files.csv)
    lines = landed_files.read_lines(spark, files.folder, some)
    if files.format == "json":
        return frame.split_json(lines, pinned)
    headers = [found.lines[name] for name in some if name in found.lines]
    return frame.split_csv(lines, names, headers, pinned, files.csv)
