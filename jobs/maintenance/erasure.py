"""Erasure: erased rows are deleted from every table, and so are the files with them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial, reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.diagnosis import tables
from jobs.microbatch.context import RunContext
from jobs.microbatch.parallel import run_parallel
from jobs.sessions.exact_session import copy_session
from windowing.admit.erased import only_erased
from windowing.admit.outcomes import REFUSED
from windowing.columns import kept_name, own_name, quoted
from windowing.crash import crashpoint
from windowing.errors import SpecError, TidemarkError
from windowing.expressions.compile import compile_value
from windowing.expressions.nested import part_of
from windowing.ledger.erased import Erasures
from windowing.location import Location
from windowing.merge.rule import REVISIONS, is_internal
from windowing.panes.rule import SEEN, state_names
from windowing.report.text import count
from windowing.rows import column_named
from windowing.spec.expressions.parse import inputs_of
from windowing.spec.words import join_names
from windowing.storage import merges, own_tables, table_retention, upkeep
from windowing.storage.kept_open import has_commit
from windowing.storage.pinned_rows import pin_rows

UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
"""The setting without which Delta refuses to vacuum with a retention of zero hours."""


def rewrite_marked_files(batch: RunContext, names: Sequence[str]) -> None:
    """Rewrites files in which deleted rows are only marked by a deletion vector."""
    paths = [batch.pipeline.table(name) for name in names]
    run_parallel([partial(upkeep.rewrite_marked_files, batch.spark, path) for path in paths])


def delete_old_files(batch: RunContext, names: Sequence[str]) -> None:
    """Deletes every file that the newest versions of the tables do not need.

    TidemarkError where some are left.
    """
    paths = [batch.pipeline.table(name) for name in names]
    unchecked = copy_session(batch.spark, UNCHECKED)
    run_parallel([partial(_vacuum_table, unchecked, path) for path in paths])
    _require_deleted(batch, names)


def _require_deleted(batch: RunContext, names: Sequence[str]) -> None:
    """Raises TidemarkError where VACUUM has left files, because of a clock."""
    paths = [batch.pipeline.table(name) for name in names]
    counts = run_parallel(
        [partial(table_retention.count_past_files, batch.spark, path) for path in paths]
    )
    left = {name: n for name, n in zip(names, counts, strict=True) if n > 0}
    if left:
        raise TidemarkError(
            f"{batch.pipeline.name}: {count(sum(left.values()), 'file')} of "
            f"{join_names(sorted(left))} may still contain what is erased, because VACUUM leaves "
            "those that were written or removed later than the clock of this host shows; set that "
            "clock, or wait until it is past them, then repeat the erase, which finishes this one"
        )


def _vacuum_table(spark: SparkSession, path: Location) -> None:
    upkeep.vacuum(spark, path, timedelta(0))
    crashpoint("erase.vacuumed")


def delete_rows(batch: RunContext, due: Erasures, left: Sequence[str]) -> dict[str, int]:
    """Deletes the rows that are `due` from every table but that of ids; returns by table how many.

    Refused rows show their keys and values. All others show only their keys, and among the values
    those of single columns of the key. `left` are the tables of windows of earlier specs: where a
    value does not show, state among them is emptied, because nothing rebuilds or reads it.
    """
    pipeline = batch.pipeline
    state = [table for table in state_names(pipeline) if table != SEEN]
    of_keys = due.select((None, *batch.keys))
    found: dict[str, int] = {}
    for table in (*state, *tables.output_names(pipeline), *tables.restated_names(pipeline)):
        found[table] = _delete_erased(batch, table, of_keys, own_name)
        crashpoint("erase.deleted")
    for table in REFUSED:
        found[table] = _delete_erased(batch, table, due, kept_name)
        found[table] += _delete_by_parts(batch, table, due)
        crashpoint("erase.deleted")
    # Values of windows before show what was made of erased values.
    for table in (REVISIONS, *left):
        if due != of_keys and is_internal(table):
            found[table] = _empty_table(batch, table)
        else:
            found[table] = _delete_erased(batch, table, of_keys, own_name)
        crashpoint("erase.deleted")
    return found


def _empty_table(batch: RunContext, table: str) -> int:
    path = batch.pipeline.table(table)
    if not has_commit(path):
        return 0
    n = own_tables.read(batch.spark, path).count()
    if n:
        upkeep.delete_where(batch.spark, path, F.lit(True))  # noqa: FBT003 Spark's
    return n


def _delete_erased(
    batch: RunContext, table: str, due: Erasures, stored_as: Callable[[str], str]
) -> int:
    """Deletes the rows that are `due` of a table, which names columns of the source `stored_as`."""
    path = batch.pipeline.table(table)
    if not has_commit(path):
        return 0
    deleted = 0
    for column in (None, *due.columns):
        # Each deletion makes a version, and the next one has to read that.
        rows = own_tables.read(batch.spark, path)
        names = [stored_as(name) for name in (batch.keys if column is None else (column,))]
        if set(names) <= set(rows.columns):
            erased = only_erased(rows, batch.keys, due.select([column]), stored_as)
            stored = {name: F.col(f"t.{quoted(name)}") for name in names}
            deleted += _delete_values(erased, stored, path)
    return deleted


def _delete_by_parts(batch: RunContext, table: str, due: Erasures) -> int:
    """Deletes refused rows whose part of a stored column is `due`.

    Rows that were refused before anything read the part do not have it as a column of its own.
    """
    source, path = batch.pipeline.source, batch.pipeline.table(table)
    deleted = 0
    for name, expression in source.parts:
        if name not in due.columns or not has_commit(path):
            continue
        ((column, *steps),) = inputs_of(expression)
        whole, stored = str(column), kept_name(str(column))
        rows = own_tables.read(batch.spark, path)
        if stored not in rows.columns:
            continue
        rows = rows.select(column_named(stored).alias(whole))
        try:
            part = compile_value(expression, rows.schema, source.field_of(name)).column
        except SpecError:
            # The struct has got the field since, and no row was refused.
            continue
        parts = rows.select(part.alias(kept_name(name)))
        erased = only_erased(parts, batch.keys, due.select([name]), kept_name)
        value = part_of(F.col(f"t.{quoted(stored)}"), steps)
        deleted += _delete_values(erased, {kept_name(name): value}, path)
    return deleted


def _delete_values(erased: DataFrame, stored: Mapping[str, Column], path: Location) -> int:
    """Deletes rows of the table by a MERGE with the values of the `erased` ones in its source.

    `stored` has by column what a row `t` of the table has there. A DELETE would write its
    condition, and so the values, to the log of the table.
    """
    values = pin_rows(erased.groupBy(*map(quoted, stored)).agg(F.count("*").alias("__n")))
    n: int = sum(row["__n"] for row in values.select("__n").collect())
    if n:
        equal = [value == F.col(f"s.{quoted(name)}") for name, value in stored.items()]
        merges.delete_rows(values.drop("__n"), path, reduce(and_, equal), n)
    return n
