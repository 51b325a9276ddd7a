"""Erasure: the rows of one key are deleted from every table, and so are the files with them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial, reduce

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from jobs.diagnosis import tables
from jobs.microbatch.context import RunContext
from jobs.microbatch.parallel import run_parallel
from windowing.admit.digest import with_row_digest
from windowing.admit.table import REFUSED
from windowing.columns import DIGEST, kept_name
from windowing.crash import crashpoint
from windowing.location import Location
from windowing.panes.rule import SEEN, state_names
from windowing.source import table as source
from windowing.storage import delta, merges, upkeep

Key = Mapping[str, Column]
"""The values of a key by column."""
_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def rewrite_marked_files(batch: RunContext, names: Sequence[str]) -> None:
    """Rewrites files in which deleted rows are only marked by a deletion vector."""
    paths = [batch.pipeline.table(name) for name in names]
    statements = [f"reorg table {path.sql} apply (purge)" for path in paths]
    run_parallel([partial(batch.spark.sql, statement) for statement in statements])


def delete_old_files(batch: RunContext, names: Sequence[str]) -> None:
    """Deletes every file that the newest versions of the tables do not need."""
    spark = batch.spark
    paths = [batch.pipeline.table(name) for name in names]
    # Delta refuses to vacuum with a retention of zero hours unless this check is off.
    spark.conf.set(_CHECK, "false")
    try:
        run_parallel([partial(_vacuum_table, spark, path) for path in paths])
    finally:
        spark.conf.unset(_CHECK)


def _vacuum_table(spark: SparkSession, path: Location) -> None:
    upkeep.vacuum(spark, path, timedelta(0))
    crashpoint("erase.vacuumed")


def delete_rows(batch: RunContext, key: Key, left: Sequence[str]) -> dict[str, int]:
    """Deletes the rows of the key from every table; returns by table how many there were.

    `left` are the tables of windows of earlier specs. Event ids are deleted first, because the
    source and the other tables show whose they are.
    """
    pipeline = batch.pipeline
    found: dict[str, int] = {}
    if pipeline.source.event_id:
        found[SEEN] = _delete_ids(batch, key)
    kept_key = {kept_name(column): value for column, value in key.items()}
    state = [table for table in state_names(pipeline) if table != SEEN]
    conditions: dict[str, Key] = {
        **dict.fromkeys(state, key),
        **dict.fromkeys(tables.output_names(pipeline), key),
        **dict.fromkeys(REFUSED, kept_key),
        **dict.fromkeys(left, key),
    }
    for table, condition in conditions.items():
        found[table] = _delete_key(batch, table, condition)
        crashpoint("erase.deleted")
    return found


def _delete_ids(batch: RunContext, key: Key) -> int:
    """Deletes the ids accepted with the key's events, as far as the source still has these events.

    An id is stored with the digest of its row. Where that is the row of another key, the id was
    accepted with that one and stays, and the key's event was a duplicate.
    """
    path = batch.pipeline.table(SEEN)
    if not delta.exists(batch.spark, path):
        return 0
    rows = source.read(batch.spark, batch.pipeline)
    digested = with_row_digest(rows, source.earlier_types(batch.spark, batch.pipeline))
    # A key with a null is another one.
    is_of_key = F.coalesce(same_key(key), F.lit(False))
    row_id = F.col(f"`{batch.pipeline.source.event_id}`").cast("string").alias("event_id")
    row_digest = F.col(DIGEST).alias("digest")
    ids = digested.where(is_of_key).select(row_id).distinct()
    of_others = digested.where(~is_of_key).select(row_id, row_digest)
    seen = delta.read(batch.spark, path).join(ids, "event_id", "left_semi")
    accepted = seen.join(of_others, ["event_id", "digest"], "left_anti")
    accepted = accepted.select("event_id", "digest").localCheckpoint(eager=True)
    n = accepted.count()
    same = "t.event_id = s.event_id and t.digest <=> s.digest"
    merges.delete_rows(accepted.distinct(), path, same, n)
    return n


def _delete_key(batch: RunContext, table: str, key: Key) -> int:
    path = batch.pipeline.table(table)
    if not delta.exists(batch.spark, path):
        return 0
    n = delta.read(batch.spark, path).where(same_key(key)).count()
    if n:
        _merge_key_away(batch, path, key, n)
    return n


def _merge_key_away(batch: RunContext, path: Location, key: Key, n: int) -> None:
    """Deletes the `n` rows of a key by a MERGE with the key in its source.

    A DELETE would write its condition, and so the key, to the log of the table.
    """
    values = [value.alias(column) for column, value in key.items()]
    one = batch.spark.range(1).select(*values).localCheckpoint(eager=True)
    same = " and ".join(f"t.`{column}` = s.`{column}`" for column in key)
    merges.delete_rows(one, path, same, n)


def same_key(key: Key) -> Column:
    """True for rows of the key."""
    conditions = [F.col(f"`{column}`") == value for column, value in key.items()]
    return reduce(lambda left, right: left & right, conditions)
