"""Writes one table of windows in one commit.

The commit is an append when no stored row changes, else one MERGE with literal bounds. It follows
the version that the rows were compared with.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import OP, RUN, START
from windowing.crash import crashpoint
from windowing.grid.frame import instant
from windowing.merge.frame import BEGUN, DELETE, INSERT, LOST, OVERFLOW, UPDATE
from windowing.merge.rule import Target
from windowing.storage import delta, own_tables, table_figures
from windowing.storage.arrow_merge import Clauses
from windowing.storage.merges import Merged, merge_rows
from windowing.storage.own_tables import Snapshot
from windowing.storage.pinned_rows import pin_rows
from windowing.storage.plain_table import Bounds


@dataclass(frozen=True)
class Changes:
    """How many rows of a table were inserted, updated and deleted.

    `overflow` is how many of all computed rows contain a sum that left its type.
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    overflow: int = 0


@dataclass(frozen=True)
class Output:
    """A table of windows and the version of it that is compared with what was computed."""

    target: Target
    snapshot: Snapshot


def open_output(target: Target) -> Output:
    """The newest version of a table of windows."""
    return Output(target, own_tables.open_snapshot(target.path))


def is_new(spark: SparkSession, output: Output) -> bool:
    """Whether the table was created and never written to."""
    return own_tables.is_new(spark, output.snapshot)


def read_output(
    spark: SparkSession, output: Output, within: Bounds = own_tables.EVERY_ROW
) -> DataFrame:
    """The stored rows; those that are not `within` may be left out."""
    return own_tables.read_snapshot(spark, output.snapshot, within)


def create_table(spark: SparkSession, target: Target, schema: T.StructType) -> None:
    """Creates the empty table unless it exists."""
    own_tables.create(spark, target.path, schema, _build_properties(target, schema))


def recreate_table(spark: SparkSession, target: Target, schema: T.StructType) -> None:
    """Replaces the table by an empty one with other columns."""
    delta.replace(spark, target.path, schema, _build_properties(target, schema))


def _build_properties(target: Target, schema: T.StructType) -> dict[str, str]:
    return {
        **delta.properties(schema),
        "delta.enableChangeDataFeed": str(target.change_feed).lower(),
        "delta.deletedFileRetentionDuration": "interval 30 days",
    }


@dataclass(frozen=True)
class ComputedChanges:
    """What is to change in a table: `rows` [op, row], which are computed, and how many there are.

    `lost` is how many of them are not written because only a sum left its type. `extent` are the
    first and the last start, stored or new, of the rows to update or delete, in microseconds; None
    where there is none.
    """

    rows: DataFrame
    counts: Changes
    lost: int
    extent: tuple[int, int] | None


def compute_changes(changed: DataFrame, run: int) -> ComputedChanges:
    """Computes `changed` [op, row] for `write_changes`; stores nothing."""
    observed = Observation()
    stamped = changed.withColumn(RUN, F.lit(run).cast("bigint"))
    # The rows were compared with the table that is about to change, so they are computed once.
    frozen = pin_rows(stamped.observe(observed, *_summarize_changes()))
    found = observed.get
    extent = None if found["low"] is None else (found["low"], found["high"])
    counts = Changes(found["inserted"], found["updated"], found["deleted"], found["overflow"])
    return ComputedChanges(frozen, counts, found["lost"], extent)


def _summarize_changes() -> list[Column]:
    """The counts and the extent of `ComputedChanges` by their names."""
    stored = f"{OP} in ('{UPDATE}', '{DELETE}')"
    expressions = {
        "inserted": f"count_if({OP} = '{INSERT}')",
        "updated": f"count_if({OP} = '{UPDATE}')",
        "deleted": f"count_if({OP} = '{DELETE}')",
        "overflow": f"count_if({OVERFLOW})",
        "lost": f"count_if({OP} = '{LOST}')",
        "low": f"unix_micros(min(if({stored}, least({START}, {BEGUN}), null)))",
        "high": f"unix_micros(max(if({stored}, greatest({START}, {BEGUN}), null)))",
    }
    # As text each is one call to the JVM.
    return [F.expr(f"{text} as {name}") for name, text in expressions.items()]


def write_changes(output: Output, changed: ComputedChanges) -> Changes:
    """Applies `changed` to the table; stores nothing when there is nothing to change."""
    target, counts = output.target, changed.counts
    due = changed.rows.where(F.col(OP) != LOST) if changed.lost else changed.rows
    if counts.updated or counts.deleted:
        clauses = Clauses(target.identity, OP, INSERT, DELETE, START, changed.extent)
        merged = Merged(counts.updated, counts.deleted, counts.inserted)
        merge_rows(due.select(*target.columns, OP), output.snapshot, clauses, merged)
    elif counts.inserted:
        inserts = due.select(*target.columns)
        own_tables.append(inserts, output.snapshot, START, counts.inserted)
    crashpoint("output.corrected")
    return counts


def insert_rows(output: Output, new: DataFrame, run: int, most: int | None) -> Changes:
    """Appends `new` [row, revision, overflow] to the table; stores nothing where it has no row.

    Large files keep the order of the rows; in order of their start they make later reads cheap.
    There are at `most` so many; None where that is not known.
    """
    stamped = new.withColumn(RUN, F.lit(run).cast("bigint"))
    rows = stamped.select(*output.target.columns, OVERFLOW)
    found = own_tables.append_counted(rows, output.snapshot, START, OVERFLOW, most)
    if found is None:
        counts = _insert_many(output, stamped)
    else:
        inserted, overflow = found
        counts = Changes(inserted, overflow=overflow)
    crashpoint("output.corrected")
    return counts


def _insert_many(output: Output, new: DataFrame) -> Changes:
    """Counts the rows while they are written, so that they are computed once and kept nowhere."""
    observed = Observation()
    counted = new.observe(observed, F.count("*").alias("n"), F.count_if(OVERFLOW).alias("lost"))
    own_tables.append_many(counted.select(*output.target.columns), output.snapshot)
    return Changes(inserted=observed.get["n"], overflow=observed.get["lost"])


def count_stored_bytes(output: Output, low_us: int, high_us: int) -> int | None:
    """How large the files are that may have windows which begin from `low_us` to `high_us`.

    Both are inside. None where only Spark can tell.
    """
    return table_figures.count_bytes(output.target.path, {START: (low_us, high_us)})


def read_between(spark: SparkSession, output: Output, low_us: int, high_us: int) -> DataFrame:
    """The rows of a table whose window begins from `low_us` to `high_us`, both inside.

    The bounds prune files.
    """
    begins_within = F.col(START).between(instant(low_us), instant(high_us))
    return read_output(spark, output, {START: (low_us, high_us)}).where(begins_within)
