"""Several tables of a pipeline with the same columns, read by one query of Spark.

A scan costs Spark some milliseconds of planning, however few rows it reads.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.storage import own_tables
from windowing.storage.own_tables import Snapshot
from windowing.storage.plain_table import MOST_FILES, Bounds

_NAME = re.compile(r"[A-Za-z0-9._=-]+")
"""Names of files that are the same in a URI and in Spark's text."""


@dataclass(frozen=True)
class Numbered:
    """A table to read, and the number that its rows get; those not `within` may be left out."""

    number: int
    snapshot: Snapshot
    within: Bounds


def read_together(
    spark: SparkSession, tables: Sequence[Numbered], names: Sequence[str], number: str
) -> DataFrame:
    """The columns `names` of tables that all have them, and the tables' numbers as `number`.

    Plain tables are read by one scan, which tells by the names of the files which table a row is
    of. There is one table at least.
    """
    found: list[DataFrame] = []
    numbers: dict[str, int] = {}
    paths: list[str] = []
    columns: T.StructType | None = None
    for table in tables:
        snapshot = table.snapshot
        files = own_tables.choose_files(snapshot, table.within) or []
        files_there = [file.name for file in files]
        own = None if snapshot.plain is None else own_tables.schema_of(snapshot.plain)
        is_alike = own is not None and columns in (None, own)
        is_few = len(numbers) + len(files_there) <= MOST_FILES
        if files_there and is_alike and is_few and _are_new_names(files_there, numbers):
            columns = own
            numbers |= dict.fromkeys(files_there, table.number)
            paths += own_tables.locate_files(spark, snapshot, files)
        else:
            rows = own_tables.read_snapshot(spark, snapshot, table.within)
            found.append(rows.select(*names, F.lit(table.number).alias(number)))
    if columns is not None:
        listed = ", ".join(f"'{name}', {place}" for name, place in numbers.items())
        file_name = "_metadata.file_name"
        table_of_file = F.expr(f"map({listed})[{file_name}]").alias(number)
        rows = own_tables.read_files(spark, columns, paths)
        found.append(rows.select(*names, table_of_file))
    return reduce(DataFrame.unionByName, found)


def _are_new_names(names: Sequence[str], others: Collection[str]) -> bool:
    """Whether files can be told apart from others by their names, in Spark's text for them.

    Writers draw names at random, but anybody may copy a file.
    """
    return all(_NAME.fullmatch(name) and name not in others for name in names)
