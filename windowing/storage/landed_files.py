"""Files that land in a folder: listed, looked into, and read by Spark.

None of them is written here. What they contain is for windowing/ingest.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader, TextIOWrapper

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from windowing.columns import FILE, RECORD
from windowing.location import Location
from windowing.storage.spark_internals import SPARK_ERRORS
from windowing.storage.store import StoredFile, shared_store_of, store_of

_AT_ONCE = 1 << 20
_HADOOP_PATTERN = "?*[]{}\\"
"""What Hadoop takes for a pattern in a path unless a backslash stands before it."""


class UnreadableFile(Exception):
    """Raised when a file is not what its name says; `reason` is half a sentence."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def has_folder(folder: Location) -> bool:
    """Whether there is such a directory; on S3 there always is."""
    shared = shared_store_of(folder)
    return folder.local.is_dir() if shared is None else shared.is_directory(folder)


def list_landed(folder: Location) -> Mapping[str, StoredFile]:
    """All files below a folder by their paths from there."""
    return store_of(folder).list_files(folder)


def read_beginning(file: Location, most: int, *, is_gzip: bool) -> bytes:
    """At most so many bytes from the beginning of a file; UnreadableFile where gzip is broken."""
    with store_of(file).open(file) as content:
        if not is_gzip:
            return bytes(content.read(most))
        with _unpacked(content) as unpacked:
            return unpacked.read(most)


def read_text_lines(file: Location, encoding: str, *, is_gzip: bool) -> Iterator[str]:
    """The lines of a text file with their ends; UnreadableFile where gzip is broken."""
    with store_of(file).open(file) as content:
        if not is_gzip:
            yield from _decode_lines(BufferedReader(content, _AT_ONCE), encoding)
            return
        with _unpacked(content) as unpacked:
            yield from _decode_lines(unpacked, encoding)


def _decode_lines(content: BufferedReader | gzip.GzipFile, encoding: str) -> Iterator[str]:
    yield from TextIOWrapper(content, encoding, errors="replace", newline="")


def check_gzip(file: Location) -> None:
    """Reads a file to its end; UnreadableFile where it is not what gzip has written."""
    with store_of(file).open(file) as content, _unpacked(content) as unpacked:
        while unpacked.read(_AT_ONCE):
            pass


@contextmanager
def _unpacked(content: pa.NativeFile) -> Iterator[gzip.GzipFile]:
    """What gzip has compressed, in one part or more."""
    try:
        # By itself it reads a few thousand bytes at once, each time by a request to other storage.
        with gzip.open(BufferedReader(content, _AT_ONCE)) as unpacked:
            yield unpacked
    except EOFError:
        raise UnreadableFile("ends in the middle of what gzip has compressed") from None
    except (gzip.BadGzipFile, zlib.error):
        raise UnreadableFile("is not compressed by gzip, as its name says") from None


def read_parquet_columns(file: Location) -> tuple[tuple[str, ...], str]:
    """The names of a Parquet file's columns, and their types; UnreadableFile where it is none."""
    with (
        _told_of_content("is not a Parquet file, or is not complete"),
        store_of(file).open(file) as content,
    ):
        opened = pq.ParquetFile(content)
        schema = opened.schema_arrow.remove_metadata()
        stored = [opened.schema.column(n) for n in range(len(opened.schema))]
        if any("nanoseconds" in str(column.logical_type) for column in stored):
            raise UnreadableFile(
                "has times in nanoseconds, which Spark does not read; write them as us"
            )
        if not _are_apart(schema):
            raise UnreadableFile("has names that differ by case alone, which Spark does not read")
        return tuple(schema.names), str(schema)


@contextmanager
def _told_of_content(reason: str) -> Iterator[None]:
    """UnreadableFile where Arrow finds that a file has not the content of a Parquet file."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        # Errors of the system have a number; those of Arrow about a footer have none.
        if getattr(error, "errno", None) is not None:
            raise
        raise UnreadableFile(reason) from None


def _are_apart(fields: Iterable[pa.Field]) -> bool:
    """Whether no two of these fields, or of the fields inside, have names that differ by case."""
    known = list(fields)
    names = {field.name.lower() for field in known}
    return len(names) == len(known) and all(
        _are_apart(field.type.field(n) for n in range(field.type.num_fields)) for field in known
    )


def check_parquet(spark: SparkSession, file: Location) -> None:
    """Reads every value of a Parquet file; UnreadableFile where that fails."""
    with (
        _told_of_content("is a Parquet file with damaged pages"),
        store_of(file).open(file) as content,
    ):
        for _ in pq.ParquetFile(content).iter_batches():
            pass
    try:
        spark.read.parquet(*_spell_paths(file.parent, [file.name]))
    except SPARK_ERRORS:
        raise UnreadableFile("has a column of a type that Spark does not read") from None


def read_lines(spark: SparkSession, folder: Location, files: Sequence[str]) -> DataFrame:
    """The lines of files with [source_file, __record]; those compressed by gzip are unpacked."""
    return _read_texts(spark.read.format("text"), folder, files)


def read_whole(spark: SparkSession, folder: Location, files: Sequence[str]) -> DataFrame:
    """Each file as one record, with [source_file, __record]."""
    return _read_texts(spark.read.format("text").option("wholetext", "true"), folder, files)


def read_spanning_csv(
    spark: SparkSession,
    folder: Location,
    files: Sequence[str],
    width: int,
    options: Mapping[str, str],
) -> DataFrame:
    """Records of CSV that may span lines: [source_file, c0, c1, ..., __broken].

    All values are text. `__broken` is the text of a record that has not just so many values.
    """
    columns = ", ".join([*(f"c{n} string" for n in range(width)), "__broken string"])
    reader = spark.read.format("csv").schema(columns).options(**options)
    return _name_files(reader.load(_spell_paths(folder, files)), folder)


def read_parquet(spark: SparkSession, folder: Location, files: Sequence[str]) -> DataFrame:
    """The rows of Parquet files that have the same columns: [source_file, __fields].

    `__fields` is a struct of all columns, so none of them has the place of another.
    """
    rows = spark.read.format("parquet").load(_spell_paths(folder, files))
    return rows.select(_relative_path(folder).alias(FILE), F.struct("*").alias("__fields"))


def read_json(
    spark: SparkSession, folder: Location, files: Sequence[str], *, spans: bool
) -> DataFrame:
    """The records of JSON files, in columns with the types that Spark infers from all of them."""
    reader = spark.read.format("json").option("multiLine", spans)
    return reader.load(_spell_paths(folder, files))


def _read_texts(reader: DataFrameReader, folder: Location, files: Sequence[str]) -> DataFrame:
    rows = _name_files(reader.load(_spell_paths(folder, files)), folder)
    return rows.select(FILE, F.col("value").alias(RECORD))


def _name_files(rows: DataFrame, folder: Location) -> DataFrame:
    """Adds `source_file`, which is what a file's path is without that of the folder."""
    return rows.withColumn(FILE, _relative_path(folder))


def _relative_path(folder: Location) -> Column:
    # Spark spells the path as a URI, in which a plus sign stands for itself.
    uri = F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B"))
    path = F.regexp_replace(F.url_decode(uri), "^file:/+", "/")
    return F.substring(path, len(folder.hadoop.rstrip("/")) + 2, 1 << 20)


def _spell_paths(folder: Location, files: Iterable[str]) -> list[str]:
    """The paths as Spark takes them, in which no character stands for others."""
    escaped = str.maketrans({character: f"\\{character}" for character in _HADOOP_PATTERN})
    return [(folder / file).hadoop.translate(escaped) for file in files]
