"""Erasure: the rows of a key are deleted from every table, and so are the files with them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.diagnosis import tables
from jobs.microbatch.context import RunContext
from jobs.microbatch.parallel import run_parallel
from jobs.sessions.exact_session import copy_session
from windowing.admit.digest import with_row_digest
from windowing.admit.erased import only_erased, without_erased
from windowing.admit.table import REFUSED
from windowing.columns import DIGEST, kept_name, quoted
from windowing.crash import crashpoint
from windowing.ledger.erased import ErasedKeys
from windowing.location import Location
from windowing.panes.rule import SEEN, state_names
from windowing.source import table as source
from windowing.storage import delta, merges, upkeep

_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def rewrite_marked_files(batch: RunContext, names: Sequence[str]) -> None:
    """Rewrites files in which deleted rows are only marked by a deletion vector."""
    paths = [batch.pipeline.table(name) for name in names]
    statements = [f"reorg table {path.sql} apply (purge)" for path in paths]
    run_parallel([partial(batch.spark.sql, statement) for statement in statements])


def delete_old_files(batch: RunContext, names: Sequence[str]) -> None:
    """Deletes every file that the newest versions of the tables do not need."""
    paths = [batch.pipeline.table(name) for name in names]
    # Delta refuses to vacuum with a retention of zero hours unless this check is off.
    unchecked = copy_session(batch.spark, {_CHECK: "false"})
    run_parallel([partial(_vacuum_table, unchecked, path) for path in paths])


def _vacuum_table(spark: SparkSession, path: Location) -> None:
    upkeep.vacuum(spark, path, timedelta(0))
    crashpoint("erase.vacuumed")


def delete_rows(batch: RunContext, due: ErasedKeys, left: Sequence[str]) -> dict[str, int]:
    """Deletes the rows of the keys that are `due` from every table; returns by table how many.

    `left` are the tables of windows of earlier specs. Event ids are deleted first, because the
    source and the other tables show whose they are.
    """
    pipeline = batch.pipeline
    found: dict[str, int] = {}
    if pipeline.source.event_id:
        found[SEEN] = _delete_ids(batch, due)
    own = {key: key for key in batch.keys}
    kept = {key: kept_name(key) for key in batch.keys}
    state = [table for table in state_names(pipeline) if table != SEEN]
    columns: dict[str, Mapping[str, str]] = {
        **dict.fromkeys(state, own),
        **dict.fromkeys(tables.output_names(pipeline), own),
        **dict.fromkeys(REFUSED, kept),
        **dict.fromkeys(left, own),
    }
    for table, names in columns.items():
        found[table] = _delete_keys(batch, table, names, due)
        crashpoint("erase.deleted")
    return found


def _delete_ids(batch: RunContext, due: ErasedKeys) -> int:
    """Deletes the ids accepted with the keys' events, as far as the source still has these events.

    An id is stored with the digest of its row. Where that is the row of another key, the id was
    accepted with that one and stays, and the erased key's event was a duplicate.
    """
    path = batch.pipeline.table(SEEN)
    if not delta.exists(batch.spark, path):
        return 0
    rows = source.read(batch.spark, batch.pipeline)
    digested = with_row_digest(rows, source.earlier_types(batch.spark, batch.pipeline))
    row_id = F.col(f"`{batch.pipeline.source.event_id}`").cast("string").alias("event_id")
    row_digest = F.col(DIGEST).alias("digest")
    of_keys = only_erased(digested, {key: key for key in batch.keys}, due)
    ids = of_keys.select(row_id).distinct()
    of_others = without_erased(digested, batch.keys, due).select(row_id, row_digest)
    seen = delta.read(batch.spark, path).join(ids, "event_id", "left_semi")
    accepted = seen.join(of_others, ["event_id", "digest"], "left_anti")
    accepted = accepted.select("event_id", "digest").localCheckpoint(eager=True)
    n = accepted.count()
    same = "t.event_id = s.event_id and t.digest <=> s.digest"
    merges.delete_rows(accepted.distinct(), path, same, n)
    return n


def _delete_keys(batch: RunContext, table: str, columns: Mapping[str, str], due: ErasedKeys) -> int:
    """Deletes the rows of the keys by a MERGE with the keys in its source.

    A DELETE would write its condition, and so the key, to the log of the table.
    """
    path = batch.pipeline.table(table)
    if not delta.exists(batch.spark, path):
        return 0
    names = [quoted(name) for name in columns.values()]
    rows = only_erased(delta.read(batch.spark, path), columns, due)
    keys = rows.groupBy(*names).agg(F.count("*").alias("__n")).localCheckpoint(eager=True)
    n: int = sum(row["__n"] for row in keys.select("__n").collect())
    if n:
        same = " and ".join(f"t.{name} = s.{name}" for name in names)
        merges.delete_rows(keys.drop("__n"), path, same, n)
    return n
