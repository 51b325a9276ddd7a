"""The rows of one key deleted from every table, and the files that held them."""

from collections.abc import Mapping, Sequence
from functools import partial, reduce

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.microbatch.context import Batch
from jobs.microbatch.parallel import together
from jobs.preflight import tables
from windowing import delta
from windowing.admit.table import REFUSED
from windowing.columns import kept_name
from windowing.crash import crashpoint
from windowing.panes.rule import SEEN, state_names
from windowing.source import table as source
from windowing.source.table import literal

_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def rewrite(batch: Batch, names: Sequence[str]) -> None:
    """Writes files anew in which deleted rows are only marked."""
    paths = [batch.pipeline.table(name) for name in names]
    together(
        [partial(batch.spark.sql, f"reorg table delta.`{path}` apply (purge)") for path in paths]
    )


def forget(batch: Batch, names: Sequence[str]) -> None:
    """Deletes every file that the newest versions don't need."""
    spark, pipeline = batch.spark, batch.pipeline
    spark.conf.set(_CHECK, "false")
    try:
        together([partial(_vacuum, spark, pipeline.table(name)) for name in names])
    finally:
        spark.conf.unset(_CHECK)


def _vacuum(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).vacuum(0)
    crashpoint("erase.vacuumed")


def delete_rows(batch: Batch, key: Mapping[str, str], left: Sequence[str]) -> dict[str, int]:
    """Deletes the rows of the key everywhere, in what earlier specs `left` too; ids first, as long as something tells whose they are."""
    pipeline = batch.pipeline
    refused = {table: {kept_name(c): v for c, v in key.items()} for table in REFUSED}
    state = {table: key for table in state_names(pipeline) if table != SEEN}
    outputs = dict.fromkeys(tables.outputs(pipeline), key)
    found = {SEEN: _ids(batch, key)} if pipeline.source.event_id else {}
    gone = dict.fromkeys(left, key)
    for table, where in {**state, **outputs, **refused, **gone}.items():
        found[table] = _delete(batch, table, where)
        crashpoint("erase.deleted")
    return found


def _ids(batch: Batch, key: Mapping[str, str]) -> int:
    """The ids of the key's events, as far as the source still has them."""
    event_id, path = f"`{batch.pipeline.source.event_id}`", batch.pipeline.table(SEEN)
    if not delta.exists(batch.spark, path):
        return 0
    events = source.read(batch.spark, batch.pipeline)
    ids = (
        events.where(same_key(batch, events.schema, key))
        .select(F.col(event_id).cast("string").alias("id"))
        .distinct()
    )
    n = (
        delta.read(batch.spark, path)
        .join(ids, F.col("event_id") == F.col("id"), "left_semi")
        .count()
    )
    DeltaTable.forPath(batch.spark, path).alias("t").merge(
        ids.alias("s"), "t.event_id = s.id"
    ).whenMatchedDelete().execute()
    return n


def _delete(batch: Batch, table: str, key: Mapping[str, str]) -> int:
    path = batch.pipeline.table(table)
    if not delta.exists(batch.spark, path):
        return 0
    rows = delta.read(batch.spark, path)
    same = same_key(batch, rows.schema, key)
    n = rows.where(same).count()
    if n:
        _without(batch, path, rows, key)
    return n


def _without(batch: Batch, path: str, rows: DataFrame, key: Mapping[str, str]) -> None:
    """Deletes by a MERGE with the key in its source: what a DELETE was asked for would stay in the table's log."""
    one = batch.spark.range(1).select(
        *(literal(batch.spark, c, rows.schema[c].dataType, v).alias(c) for c, v in key.items())
    )
    same = " and ".join(f"t.`{c}` = s.`{c}`" for c in key)
    target = DeltaTable.forPath(batch.spark, path).alias("t")
    target.merge(one.localCheckpoint(eager=True).alias("s"), same).whenMatchedDelete().execute()


def same_key(batch: Batch, schema: T.StructType, key: Mapping[str, str]) -> Column:
    """True for rows of the key. UsageError where a value can't be one of its column."""
    return reduce(
        lambda a, b: a & b,
        [F.col(f"`{c}`") == literal(batch.spark, c, schema[c].dataType, v) for c, v in key.items()],
    )
