"""A MERGE into a table of a pipeline, by this process or by Spark.

A MERGE rewrites the files that contain a changed row, as long as these are small. From the first
one on for which they are not, the rows of that table are marked by deletion vectors instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from windowing.columns import DELETE, INSERT, OP, START
from windowing.errors import TidemarkError
from windowing.location import Location
from windowing.storage import delta, delta_log, own_tables, table_figures
from windowing.storage.arrow_merge import Clauses
from windowing.storage.own_tables import Rows, Snapshot
from windowing.storage.pinned_rows import pin_rows
from windowing.storage.table_properties import DELETION_VECTORS, is_true

_REWRITTEN_BYTES = 4 * 1024 * 1024
"""How much of a table a MERGE by Spark may rewrite.

A deletion vector costs every MERGE some ten more Spark jobs, and every later read two.
"""
_REWRITTEN_HERE_BYTES = 16 * 1024 * 1024
"""How much of a table this process may rewrite. It takes a tenth of the time that Spark takes."""


@dataclass(frozen=True)
class Merged:
    """How many rows a MERGE updates, deletes and inserts."""

    updated: int = 0
    deleted: int = 0
    inserted: int = 0

    @property
    def rows(self) -> int:
        """All of them."""
        return self.updated + self.deleted + self.inserted


def _execute(spark: SparkSession, merge: DeltaMergeBuilder, path: Location, due: Merged) -> None:
    """Runs a MERGE into the table at `path`.

    Raises TidemarkError where it has changed another number of rows than was `due`.
    """
    with delta_log.committing(spark, path):
        counts = merge.execute()
    (found,) = counts.collect()
    done = Merged(found["num_updated_rows"], found["num_deleted_rows"], found["num_inserted_rows"])
    if done != due:
        raise TidemarkError(
            f"internal error: {path}: a MERGE was to update {due.updated} rows, delete "
            f"{due.deleted} and insert {due.inserted}; it updated {done.updated}, deleted "
            f"{done.deleted} and inserted {done.inserted}"
        )


def merge_rows(changed: Rows, on: Snapshot, clauses: Clauses, due: Merged) -> None:
    """Applies `changed`, the columns of the table and an operation, in one commit after `on`.

    Only rows that differ are in it. Raises Busy where another commit came first, and TidemarkError
    where other rows than those that are `due` changed.
    """
    if own_tables.merge_few(changed, on, clauses, due.rows, _REWRITTEN_HERE_BYTES):
        return
    source = own_tables.to_spark(changed)
    spark = source.sparkSession
    own_tables.check_newest(on)
    if _is_much_to_rewrite(spark, on.path, clauses):
        delta.set_property(spark, on.path, DELETION_VECTORS, "true")
    columns = [name for name in source.columns if name != OP]
    new: dict[str, str | Column] = {f"`{name}`": f"s.`{name}`" for name in columns}
    table = DeltaTable.forPath(spark, on.path.hadoop).alias("t")
    merge = table.merge(source.alias("s"), " and ".join(_match_rows(clauses)))
    merge = merge.whenMatchedDelete(f"s.`{OP}` = '{DELETE}'")
    merge = merge.whenMatchedUpdate(set=new)
    merge = merge.whenNotMatchedInsert(f"s.`{OP}` = '{INSERT}'", values=new)
    _execute(spark, merge, on.path, due)


def _match_rows(clauses: Clauses) -> list[str]:
    """The conditions under which a changed row is a stored one; literal bounds prune files."""
    conditions = []
    if clauses.extent is not None:
        low, high = map(delta.write_instant, clauses.extent)
        conditions.append(f"t.`{START}` between {low} and {high}")
    conditions.append(f"s.`{OP}` <> '{INSERT}'")
    conditions += [f"t.`{name}` = s.`{name}`" for name in clauses.identity]
    return conditions


def _is_much_to_rewrite(spark: SparkSession, path: Location, clauses: Clauses) -> bool:
    """Whether a MERGE may rewrite too many bytes.

    Not where the table has deletion vectors already.
    """
    _, all_bytes = own_tables.size(spark, path)
    if all_bytes <= _REWRITTEN_BYTES:
        return False
    if is_true(delta_log.setting(spark, path, DELETION_VECTORS)):
        return False
    if clauses.extent is None:
        return True
    found = table_figures.count_bytes(path, {START: clauses.extent})
    return found is None or found > _REWRITTEN_BYTES


def swap_rows(path: Location, old: DataFrame, new: DataFrame, identity: Sequence[str]) -> None:
    """Replaces the rows `old` of a table by the rows `new`, in one commit.

    The columns `identity` distinguish its rows. `old` and `new` have all columns of the table.
    """
    deletes = old.withColumn(OP, F.lit(DELETE))
    inserts = new.withColumn(OP, F.lit(INSERT))
    observed = Observation()
    counts = [F.count_if(F.col(OP) == op).alias(op) for op in (DELETE, INSERT)]
    source = deletes.unionByName(inserts).observe(observed, *counts)
    # MERGE may read its source more than once, so it is computed here, once.
    source = pin_rows(source)
    same_row = [f"t.`{name}` <=> s.`{name}`" for name in identity]
    # A row to insert matches none, so it is inserted even where an equal row is deleted.
    to_delete = " and ".join([f"s.{OP} = '{DELETE}'", *same_row])
    values: dict[str, str | Column] = {f"`{name}`": f"s.`{name}`" for name in new.columns}
    target = DeltaTable.forPath(new.sparkSession, path.hadoop).alias("t")
    merge = target.merge(source.alias("s"), to_delete)
    merge = merge.whenMatchedDelete()
    merge = merge.whenNotMatchedInsert(f"s.{OP} = '{INSERT}'", values)
    due = Merged(deleted=observed.get[DELETE], inserted=observed.get[INSERT])
    _execute(new.sparkSession, merge, path, due)


def delete_rows(keys: DataFrame, path: Location, same: str | Column, due: int) -> None:
    """Deletes the rows of a table that equal one of `keys`, in one commit.

    `same` compares the stored row `t` with the key `s`; it is written to no log, as the condition
    of a DELETE would be. Raises TidemarkError where not as many rows as are `due` were deleted.
    """
    target = DeltaTable.forPath(keys.sparkSession, path.hadoop).alias("t")
    merge = target.merge(keys.alias("s"), same).whenMatchedDelete()
    _execute(keys.sparkSession, merge, path, Merged(deleted=due))
