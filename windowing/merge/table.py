"""Writes one table of windows in one commit.

The commit is an append when no stored row changes, else one MERGE with literal bounds. It follows
the version that the rows were compared with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.closed.frame import OF_OUTPUT, OF_RESTATED, overlay, place_changes
from windowing.closed.rule import DELETED
from windowing.closed.table import Closed, find_closed, locate_restated, read_overlaid
from windowing.columns import DELETE, END, INSERT, OP, REVISION, RUN, START, UPDATE, WINDOW
from windowing.crash import crashpoint
from windowing.grid.frame import instant
from windowing.grid.range import Range
from windowing.merge.frame import BEGUN, LOST, OVERFLOW, is_hidden, mark_inserts
from windowing.merge.rule import Target
from windowing.storage import delta, own_tables, table_figures
from windowing.storage.arrow_merge import Clauses
from windowing.storage.few_rows import Collected, collect
from windowing.storage.joint_read import Numbered, read_together
from windowing.storage.merges import Merged, merge_rows
from windowing.storage.own_tables import Rows, Snapshot
from windowing.storage.pinned_rows import pin_rows
from windowing.storage.plain_table import Bounds
from windowing.storage.table_properties import CHANGE_FEED, LONG_KEPT_FILES


@dataclass(frozen=True)
class Changes:
    """How many rows of a table were inserted, updated and deleted.

    `overflow` is how many of all computed rows contain a sum that left its type, and `restated` how
    many changes of a closed output were written beside it. `starts` are the first and the last
    start, stored or new, of the changed rows, in microseconds; None where there is none.
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    overflow: int = 0
    restated: int = 0
    starts: tuple[int, int] | None = None


@dataclass(frozen=True)
class Output:
    """A table of windows and the version of it that is compared with what was computed.

    `closed` is what is closed of it; None where nothing is.
    """

    target: Target
    snapshot: Snapshot
    closed: Closed | None = None


def open_output(target: Target) -> Output:
    """The newest version of a table of windows."""
    snapshot = own_tables.open_snapshot(target.path)
    closed = find_closed(snapshot, target.identity, target.shown, target.chain)
    return Output(target, snapshot, closed)


def is_new(spark: SparkSession, output: Output) -> bool:
    """Whether the table was created and never written to."""
    return own_tables.is_new(spark, output.snapshot)


def read_output(
    spark: SparkSession, output: Output, within: Bounds = own_tables.EVERY_ROW
) -> DataFrame:
    """The rows that new ones are compared with; those that are not `within` may be left out.

    They are the stored ones. Of an output that is closed they are those that it would have if it
    were not.
    """
    return read_overlaid(spark, output.snapshot, output.closed, within)


def read_version(
    spark: SparkSession, target: Target, version: int, restated: int | None
) -> DataFrame:
    """The rows of a version of the table, as if nothing were closed.

    `restated` is the version of the table of its restated rows that belongs to it, or None.
    """
    stored = delta.read(spark, target.path, version)
    if restated is None:
        return stored
    beside = delta.read(spark, locate_restated(target.path), restated)
    return overlay(stored, beside, target.identity)


def create_table(spark: SparkSession, target: Target, schema: T.StructType) -> None:
    """Creates the empty table unless it exists."""
    own_tables.create(spark, target.path, schema, _build_properties(target, schema))


def recreate_table(spark: SparkSession, target: Target, schema: T.StructType) -> None:
    """Replaces the table by an empty one with other columns."""
    delta.replace(spark, target.path, schema, _build_properties(target, schema))


def _build_properties(target: Target, schema: T.StructType) -> dict[str, str]:
    return {
        **delta.properties(schema),
        CHANGE_FEED: str(target.change_feed).lower(),
        **LONG_KEPT_FILES,
    }


@dataclass(frozen=True)
class ComputedChanges:
    """What is to change in a table: `rows` [op, row], which are computed, and how many there are.

    Few of them are in this process.

    `lost` is how many of them are not written because only a sum left its type. `extent` are the
    first and the last start, stored or new, of the rows to update or delete, in microseconds; None
    where there is none.
    """

    rows: Rows
    counts: Changes
    lost: int
    extent: tuple[int, int] | None


def compute_changes(changed: DataFrame, run: int, most: int | None = None) -> ComputedChanges:
    """Computes `changed` [op, row] for `write_changes`; stores nothing.

    There are at `most` so many rows; None where that is not known.
    """
    stamped = _stamp(changed, run)
    # The rows were compared with the table that is about to change, so they are computed once.
    collected = collect(stamped, most)
    if collected is not None:
        return _summarize_collected(collected)
    observed = Observation()
    pinned = pin_rows(stamped.observe(observed, *_summarize_changes()))
    return _summarize_found(pinned, observed.get)


def _summarize_found(rows: DataFrame, found: Mapping[str, Any]) -> ComputedChanges:
    """Computed changes of which Spark has found what `_summarize_changes` asks."""
    extent = None if found["low"] is None else (found["low"], found["high"])
    starts = None if found["lowest"] is None else (found["lowest"], found["highest"])
    named = {name: found[name] for name in ("inserted", "updated", "deleted", "overflow")}
    return ComputedChanges(rows, Changes(**named, starts=starts), found["lost"], extent)


def compute_changes_of_each(
    changed: DataFrame, run: int, most: int | None, tables: int
) -> list[ComputedChanges] | None:
    """`compute_changes` of so many `tables` by one query: [window, op, row].

    The column `__window` has the place of a row's table. None where the rows are not few, and
    nothing is computed.
    """
    collected = collect(_stamp(changed, run), most)
    if collected is None:
        return None
    places = collected.rows[WINDOW]
    return [
        _summarize_collected(collected.where(pc.equal(places, place))) for place in range(tables)
    ]


def _stamp(rows: DataFrame, run: int) -> DataFrame:
    return rows.withColumn(RUN, F.lit(run).cast("bigint"))


def _summarize_collected(changed: Collected) -> ComputedChanges:
    """What `_summarize_changes` tells, of rows that are in this process."""
    rows = changed.rows
    operations: list[str] = rows[OP].to_pylist()
    inserted, updated, deleted, lost = map(operations.count, (INSERT, UPDATE, DELETE, LOST))
    overflow = rows[OVERFLOW].to_pylist().count(True)
    extent = _find_extent(rows, (UPDATE, DELETE))
    starts = _find_extent(rows, (INSERT, UPDATE, DELETE))
    counts = Changes(inserted, updated, deleted, overflow, starts=starts)
    return ComputedChanges(changed, counts, lost, extent)


def _find_extent(rows: pa.Table, operations: Sequence[str]) -> tuple[int, int] | None:
    """The first and the last start, stored or new, of the rows with these operations."""
    chosen = rows.filter(pc.is_in(rows[OP], pa.array(operations)))
    begins = [*chosen[START].cast(pa.int64()).chunks, *chosen[BEGUN].cast(pa.int64()).chunks]
    ends = pc.min_max(pa.chunked_array(begins, pa.int64())).as_py()
    return None if ends["min"] is None else (ends["min"], ends["max"])


def _summarize_changes() -> list[Column]:
    """The counts and the extent of `ComputedChanges` by their names."""
    stored, changed = f"{OP} in ('{UPDATE}', '{DELETE}')", f"{OP} <> '{LOST}'"
    expressions = {
        "inserted": f"count_if({OP} = '{INSERT}')",
        "updated": f"count_if({OP} = '{UPDATE}')",
        "deleted": f"count_if({OP} = '{DELETE}')",
        "overflow": f"count_if({OVERFLOW})",
        "lost": f"count_if({OP} = '{LOST}')",
        "low": f"unix_micros(min(if({stored}, least({START}, {BEGUN}), null)))",
        "high": f"unix_micros(max(if({stored}, greatest({START}, {BEGUN}), null)))",
        "lowest": f"unix_micros(min(if({changed}, least({START}, {BEGUN}), null)))",
        "highest": f"unix_micros(max(if({changed}, greatest({START}, {BEGUN}), null)))",
    }
    # As text each is one call to the JVM.
    return [F.expr(f"{text} as {name}") for name, text in expressions.items()]


def write_changes(output: Output, changed: ComputedChanges) -> Changes:
    """Applies `changed` to the table; stores nothing when there is nothing to change.

    What would change frozen rows of a closed output goes to the table of its restated rows.
    """
    if output.closed is None:
        return _write_stored(output, changed)
    starts = changed.counts.starts
    if starts is None or not output.closed.reaches(starts[0]):
        return _write_stored(output, changed)
    return _write_closed(output, output.closed, changed, starts[0])


def _write_closed(
    output: Output, closed: Closed, changed: ComputedChanges, first_us: int
) -> Changes:
    """`write_changes` of rows that may be frozen: one commit for each of the two tables.

    The first of them begins, or has begun, at `first_us`.

    The output comes first: a row that is missing in the other one is found by the comparison that a
    step makes again after it was interrupted.
    """
    target, counts = output.target, changed.counts
    changes = own_tables.to_spark(_leave_out_lost(changed))
    spark = changes.sparkSession
    # A stored row of the same identity, or a session that a changed one overlaps, ends later.
    stored = own_tables.read_snapshot(spark, output.snapshot, {END: (first_us, None)})
    restated = own_tables.read_snapshot(spark, closed.restated, own_tables.EVERY_ROW)
    placed = place_changes(changes, stored, restated, closed.rows)
    total = counts.inserted + counts.updated + counts.deleted
    few = collect(placed, total)
    rows = pin_rows(placed) if few is None else few
    of_output = _compute_placed(rows, OF_OUTPUT)
    of_restated = replace(_compute_placed(rows, OF_RESTATED), extent=None)
    written = _write_stored(output, of_output)
    beside = Target(closed.restated.path, target.identity, target.shown, change_feed=False)
    stated = _write_stored(Output(beside, closed.restated), of_restated, (*beside.columns, DELETED))
    crashpoint("period.restated")
    moved = stated.inserted + stated.updated + stated.deleted
    return replace(written, overflow=counts.overflow, restated=moved)


def _compute_placed(placed: Rows, operation: str) -> ComputedChanges:
    """The rows for which there is an operation in this column, as changes of one table."""
    if isinstance(placed, Collected):
        due = placed.where(pc.is_valid(placed.rows[operation]))
        names = [name for name in due.schema.fieldNames() if name != OP]
        named = due.select(names)
        return _summarize_collected(named.rename({operation: OP}))
    due_rows = placed.where(F.col(operation).isNotNull()).withColumn(OP, F.col(operation))
    (found,) = due_rows.agg(*_summarize_changes()).collect()
    return _summarize_found(due_rows, found.asDict())


def _write_stored(
    output: Output, changed: ComputedChanges, columns: Sequence[str] | None = None
) -> Changes:
    """Applies `changed` to the table of an output; `columns` are its own if they are others."""
    target, counts = output.target, changed.counts
    named = [*(columns or target.columns)]
    due = _leave_out_lost(changed)
    if counts.updated or counts.deleted:
        clauses = Clauses(target.identity, changed.extent)
        merged = Merged(counts.updated, counts.deleted, counts.inserted)
        merge_rows(due.select([*named, OP]), output.snapshot, clauses, merged)
    elif counts.inserted:
        inserts = due.select(named)
        own_tables.append(inserts, output.snapshot, START, counts.inserted)
    crashpoint("output.corrected")
    return counts


def _leave_out_lost(changed: ComputedChanges) -> Rows:
    """The rows that are written."""
    rows = changed.rows
    if not changed.lost:
        return rows
    if isinstance(rows, Collected):
        return rows.where(pc.not_equal(rows.rows[OP], LOST))
    return rows.where(F.col(OP) != LOST)


def insert_many(output: Output, new: DataFrame, run: int) -> Changes:
    """Appends `new`, rows of `compute_inserts`, to the table; stores nothing where it has no row.

    Files keep the order of the rows; in order of their start they make later reads cheap. The rows
    are counted while they are written, so they are computed once and kept nowhere.
    """
    if output.closed is not None:
        return write_changes(output, compute_changes(mark_inserts(new), run))
    observed = Observation()
    stamped = _stamp(new, run)
    shown = ~is_hidden(stamped)
    facts = (F.count_if(shown).alias("n"), F.count_if(OVERFLOW).alias("lost"))
    start_us = F.when(shown, F.unix_micros(START))
    ends = (F.min(start_us).alias("min_us"), F.max(start_us).alias("max_us"))
    counted = stamped.observe(observed, *facts, *ends).where(shown)
    own_tables.append_many(counted.select(*output.target.columns), output.snapshot)
    crashpoint("output.corrected")
    found = observed.get
    starts = None if found["min_us"] is None else (found["min_us"], found["max_us"])
    return Changes(inserted=found["n"], overflow=found["lost"], starts=starts)


@dataclass(frozen=True)
class StoredRange:
    """The stored windows of an output that begin in a range.

    `place` is that of the output among several. The files that may have such windows are so many
    `bytes` large; None where only Spark can tell.
    """

    place: int
    output: Output
    begin: Range
    bytes: int | None


def find_stored(place: int, output: Output, begin: Range) -> StoredRange:
    """What is stored of windows that begin in a range, or restated of them."""
    if output.closed is not None and output.closed.reaches(begin.low_us):
        return StoredRange(place, output, begin, None)
    bounds = {START: (begin.low_us, begin.high_us)}
    stored_bytes = table_figures.count_bytes(output.target.path, bounds)
    return StoredRange(place, output, begin, stored_bytes)


def read_ranges(
    spark: SparkSession, ranges: Sequence[StoredRange], number: str | None
) -> DataFrame:
    """The rows in the ranges, and a few more; the ranges prune files.

    The column `number` has the places of the outputs; None where there is only one.
    """
    tables = []
    for each in ranges:
        within = {START: (each.begin.low_us, each.begin.high_us)}
        tables.append(Numbered(each.place, each.output.snapshot, within))
    if number is None:
        rows = read_output(spark, ranges[0].output, tables[0].within)
    elif any(each.output.closed is not None for each in ranges):
        of_each = [
            read_output(spark, each.output, table.within)
            .select(*each.output.target.shown, REVISION)
            .withColumn(number, F.lit(each.place))
            for each, table in zip(ranges, tables, strict=True)
        ]
        rows = reduce(DataFrame.unionByName, of_each)
    else:
        target = ranges[0].output.target
        rows = read_together(spark, tables, [*target.shown, REVISION], number)
    whole = reduce(Range.cover, (each.begin for each in ranges))
    return rows.where(F.col(START).between(instant(whole.low_us), instant(whole.high_us)))
