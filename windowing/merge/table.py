"""Writes one table of windows in one commit.

The commit is an append when no stored row changes, else one MERGE with literal bounds.

A MERGE rewrites the files that contain a changed row, as long as these are small. From the first
one on for which they are not, the rows of that table are marked by deletion vectors instead.
"""

from dataclasses import dataclass, replace

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing import delta, own_tables, table_figures
from windowing.columns import OP, RUN, START
from windowing.crash import crashpoint
from windowing.grid.frame import instant
from windowing.grid.zone import moment
from windowing.merge.frame import BEGUN, DELETE, INSERT, LOST, OVERFLOW, UPDATE
from windowing.merge.rule import Target
from windowing.plain_table import Clauses

_DELETION_VECTORS = "delta.enableDeletionVectors"
_REWRITTEN_BYTES = 4 * 1024 * 1024
"""How much of a table a MERGE by Spark may rewrite.

A deletion vector costs every MERGE some ten more Spark jobs, and every later read two.
"""
_REWRITTEN_HERE_BYTES = 16 * 1024 * 1024
"""How much of a table this process may rewrite. It takes a tenth of the time that Spark takes."""


@dataclass(frozen=True)
class Changes:
    """How many rows of a table were inserted, updated and deleted.

    `overflow` is how many of all computed rows contain a sum that left its type.
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    overflow: int = 0

    @property
    def written(self) -> int:
        """How many rows are stored or removed."""
        return self.inserted + self.updated + self.deleted


def create_table(spark: SparkSession, target: Target, schema: T.StructType) -> None:
    """Creates the empty table unless it exists."""
    own_tables.create(spark, target.path, schema, _build_properties(target, schema))


def recreate_table(spark: SparkSession, target: Target, schema: T.StructType) -> None:
    """Replaces the table by an empty one with other columns."""
    builder = DeltaTable.replace(spark).location(target.path).addColumns(schema)
    for name, value in _build_properties(target, schema).items():
        builder = builder.property(name, value)
    builder.execute()
    own_tables.remember_commit(spark, target.path)


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
    frozen = stamped.observe(observed, *_summarize_changes()).localCheckpoint(eager=True)
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


def write_changes(spark: SparkSession, target: Target, changed: ComputedChanges) -> Changes:
    """Applies `changed` to the table; stores nothing when there is nothing to change."""
    due = changed.rows.where(F.col(OP) != LOST) if changed.lost else changed.rows
    if changed.counts.updated or changed.counts.deleted:
        _merge_changes(spark, target, replace(changed, rows=due))
    elif changed.counts.inserted:
        inserts = due.select(*target.columns)
        if own_tables.is_few(inserts, changed.counts.inserted):
            own_tables.append_few(inserts, target.path, START)
        else:
            own_tables.append_many(inserts.sortWithinPartitions(START), target.path)
    crashpoint("output.corrected")
    return changed.counts


def insert_rows(target: Target, new: DataFrame, run: int, most: int | None) -> Changes:
    """Appends `new` [row, revision, overflow] to the table; stores nothing where it has no row.

    Large files keep the order of the rows; in order of their start they make later reads cheap.
    There are at `most` so many; None where that is not known.
    """
    stamped = new.withColumn(RUN, F.lit(run).cast("bigint"))
    found = None
    if own_tables.is_few(stamped, most):
        rows = stamped.select(*target.columns, OVERFLOW)
        found = own_tables.append_counted(rows, target.path, START, OVERFLOW)
    if found is None:
        counts = _insert_many(target, stamped)
    else:
        inserted, overflow = found
        counts = Changes(inserted, overflow=overflow)
    crashpoint("output.corrected")
    return counts


def _insert_many(target: Target, new: DataFrame) -> Changes:
    """Counts the rows while they are written, so that they are computed once and kept nowhere."""
    observed = Observation()
    counted = new.observe(observed, F.count("*").alias("n"), F.count_if(OVERFLOW).alias("lost"))
    own_tables.append_many(counted.select(*target.columns), target.path)
    return Changes(inserted=observed.get["n"], overflow=observed.get["lost"])


def _merge_changes(spark: SparkSession, target: Target, changed: ComputedChanges) -> None:
    """Writes the computed rows in one MERGE.

    Only rows that differ are in its source, and the literal bounds prune the target's files.
    """
    extent = changed.extent
    rows = changed.rows.select(*target.columns, OP)
    if own_tables.is_few(rows, changed.counts.written):
        clauses = Clauses(target.identity, OP, INSERT, DELETE, START, extent)
        if own_tables.merge_few(rows, target.path, clauses, _REWRITTEN_HERE_BYTES):
            return
    if _is_much_to_rewrite(spark, target, extent):
        delta.set_property(spark, target.path, _DELETION_VECTORS, "true")
    conditions = []
    if extent is not None:
        low, high = (f"timestamp_ltz'{moment(us).isoformat(sep=' ')}'" for us in extent)
        conditions.append(f"t.`{START}` between {low} and {high}")
    conditions.append(f"s.`{OP}` <> '{INSERT}'")
    conditions += [f"t.`{name}` = s.`{name}`" for name in target.identity]
    new: dict[str, str | Column] = {f"`{name}`": f"s.`{name}`" for name in target.columns}
    table = DeltaTable.forPath(spark, target.path).alias("t")
    (
        table.merge(changed.rows.alias("s"), " and ".join(conditions))
        .whenMatchedDelete(f"s.`{OP}` = '{DELETE}'")
        .whenMatchedUpdate(set=new)
        .whenNotMatchedInsert(f"s.`{OP}` = '{INSERT}'", values=new)
        .execute()
    )
    own_tables.remember_commit(spark, target.path)


def _is_much_to_rewrite(
    spark: SparkSession, target: Target, extent: tuple[int, int] | None
) -> bool:
    """Whether a MERGE of the rows that begin in `extent` may rewrite too many bytes.

    Not where the table has deletion vectors already.
    """
    _, all_bytes = own_tables.size(spark, target.path)
    if all_bytes <= _REWRITTEN_BYTES:
        return False
    if delta.setting(spark, target.path, _DELETION_VECTORS) == "true":
        return False
    if extent is None:
        return True
    found = table_figures.count_bytes_between(target.path, START, *extent)
    return found is None or found > _REWRITTEN_BYTES


def count_stored_bytes(target: Target, low_us: int, high_us: int) -> int | None:
    """How large the files are that may have windows which begin from `low_us` to `high_us`.

    Both are inside. None where only Spark can tell.
    """
    return table_figures.count_bytes_between(target.path, START, low_us, high_us)


def read_stored(spark: SparkSession, target: Target, low_us: int, high_us: int) -> DataFrame:
    """The rows of a table whose window begins from `low_us` to `high_us`, both inside.

    The bounds prune files.
    """
    begins_within = F.col(START).between(instant(low_us), instant(high_us))
    return own_tables.read(spark, target.path, {START: (low_us, high_us)}).where(begins_within)
