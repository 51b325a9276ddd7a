"""One key gone from everything a pipeline holds: state, outputs, refused rows, and the files that older versions were made of.

    lock -> nothing left half-way -> intent -> rows deleted, state first -> readers pointed at what is left -> old files deleted -> done
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs import ageing, lock, tables
from jobs.admission import Batch
from jobs.backfill import finished
from jobs.check import sweep
from jobs.evolve import ready
from jobs.exact_session import in_exact_session
from jobs.publish import follow
from jobs.refill import accepted
from jobs.refusal import told
from jobs.repair import held, still_partial
from jobs.show import literal, state_names
from jobs.together import together
from windowing import delta
from windowing.admit.table import REFUSED
from windowing.columns import END, MISSED, START, kept_name
from windowing.columns import T as TIME
from windowing.crash import crashpoint
from windowing.errors import UsageError
from windowing.ledger.rule import ERASE_DONE, ERASE_INTENT, GENERATION, Entry, Story
from windowing.ledger.table import record
from windowing.merge.rule import output
from windowing.panes.table import NO_BATCH, SEEN, Stamp
from windowing.source import table as source
from windowing.source.rule import fed
from windowing.spec.kinds import Tumbling
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import listed

_ERASED = "erased"
_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


@dataclass(frozen=True)
class Erased:
    """How many rows went, by table, and whether this has closed an erasure that was left half-way."""

    rows: Mapping[str, int]
    resumed: bool = False

    def as_json(self) -> dict[str, object]:
        """The same as plain JSON values."""
        return {"rows": dict(self.rows), "resumed": self.resumed}


@in_exact_session
def erase(spark: SparkSession, pipeline: Pipeline, key: Mapping[str, str]) -> Erased:
    """Deletes every row of `key` (each key column and its value as text) and the files that held one; asked for again, it goes on.

    Versions before it are gone, except where a table's newest one needs every file there is. The source is left alone: what is still
    there comes back with a backfill that reaches it. The ledger keeps that something was erased, not what. UsageError where a key
    column is missing, or where readers are pointed at an older run than the newest.
    """
    lacking = [column for column in pipeline.source.key if column not in key]
    if lacking:
        raise UsageError(f"--key: erase needs a value for every key column of {pipeline.name}; {listed(lacking)} is missing")
    with lock.writer(spark, pipeline):
        past = finished(spark, pipeline, ready(spark, pipeline))
        sweep(spark, pipeline)
        if past.newest is None:
            return Erased({})
        batch = Batch(spark, pipeline, Stamp(past.last_run, NO_BATCH, GENERATION, None), past.last_arrival or 0, past.worn, fed(past))
        resumed = past.open_erasure is not None
        past, begun = _intended(batch, past, key)
        left = tables.left(spark, pipeline, past)
        rows = _rows(batch, key, left)
        stale = [name for name in (*tables.names(spark, pipeline), *left) if ageing.has_past(spark, pipeline.table(name))]
        _rewrite(batch, stale)
        versions = tables.versions(spark, pipeline)
        past = past if past.published is None else follow(spark, pipeline, past, versions)
        _forget(batch, stale)
        done = replace(begun, step=ERASE_DONE, versions=versions, counts=_counts(batch, past, begun))
        record(spark, pipeline, past, [done])
        crashpoint("erase.done")
        return Erased(rows, resumed)


def _intended(batch: Batch, past: Story, key: Mapping[str, str]) -> tuple[Story, Entry]:
    """The story with an intent, and that, unless one was left; UsageError where what readers see could not be kept without the key.

    Where panes may be gone the intent says how many events of the key counted.
    """
    behind = _behind(past)
    if behind is not None:
        raise UsageError(
            f"{batch.pipeline.name}: readers are pointed at run {behind.run}, older than what there is, and would lose it; "
            "`tidemark publish` (or `--accept REASON`) first"
        )
    if past.open_erasure is not None:
        return past, past.open_erasure
    counts = {_ERASED: _accepted(batch, past, key)} if batch.worn else {}
    intent = Entry(ERASE_INTENT, generation=GENERATION, run=past.last_run, at=batch.arrival_us, counts=counts)
    past = record(batch.spark, batch.pipeline, past, [intent])
    crashpoint("erase.intended")
    return past, past.entries[-1]


def _behind(past: Story) -> Entry | None:
    """What readers are pointed at where that is not the newest there is, but for what was erased of it already."""
    published, newest, begun = past.published, past.newest, past.open_erasure
    if published is None or newest is None:
        return None
    older = published.versions != newest.versions if begun is None else newest.seq > max(published.seq, begun.seq)
    return published if older else None


def _counts(batch: Batch, past: Story, begun: Entry) -> dict[str, int]:
    """What the sums of the ledger have to change by to be those of what is held now."""
    partial = {w.name: 0 for w in batch.pipeline.windows} | still_partial(batch)
    counts = {f"partial.{name}": n - past.total(f"partial.{name}") for name, n in partial.items()}
    return counts | {"accepted": -begun.counts[_ERASED] if _ERASED in begun.counts else held(batch) - past.total("accepted")}


def _accepted(batch: Batch, past: Story, key: Mapping[str, str]) -> int:
    """How many events of the key count, as far as an output holds it: as the source says."""
    outputs = [delta.read(batch.spark, output(batch.pipeline, w).path) for w in batch.pipeline.windows]
    if past.read_version is None or all(rows.where(_same(batch, rows.schema, key)).isEmpty() for rows in outputs):
        return 0
    with told(batch.spark, batch.pipeline, past):
        events = accepted(batch, past.read_version)
        return _shown(batch, events.where(_same(batch, events.schema, key))).count()


def _shown(batch: Batch, events: DataFrame) -> DataFrame:
    """Without the events of a key that was erased before and has come again, where an output with all tumbling windows can tell."""
    pipeline = batch.pipeline
    telling = [w for w in pipeline.windows if isinstance(w, Tumbling) and w.shown.whole and w.shown.empty_limit is None]
    if not telling or pipeline.retention.output_us is not None:
        return events
    there = delta.read(batch.spark, output(pipeline, telling[0]).path).select(*batch.keys, START, END)
    at, missed = F.timestamp_micros(F.col(TIME)), F.coalesce(F.array_contains(MISSED, telling[0].name), F.lit(False))
    same = [F.col(f"e.`{k}`") == F.col(f"w.`{k}`") for k in batch.keys]
    inside = (at >= F.col(f"w.{START}")) & (at < F.col(f"w.{END}"))
    return events.alias("e").join(there.alias("w"), [*same, missed | inside], "left_semi")


def _rewrite(batch: Batch, names: Sequence[str]) -> None:
    """Writes files anew in which deleted rows are only marked."""
    paths = [batch.pipeline.table(name) for name in names]
    together([partial(batch.spark.sql, f"reorg table delta.`{path}` apply (purge)") for path in paths])


def _forget(batch: Batch, names: Sequence[str]) -> None:
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


def _rows(batch: Batch, key: Mapping[str, str], left: Sequence[str]) -> dict[str, int]:
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
    ids = events.where(_same(batch, events.schema, key)).select(F.col(event_id).cast("string").alias("id")).distinct()
    n = delta.read(batch.spark, path).join(ids, F.col("event_id") == F.col("id"), "left_semi").count()
    DeltaTable.forPath(batch.spark, path).alias("t").merge(ids.alias("s"), "t.event_id = s.id").whenMatchedDelete().execute()
    return n


def _delete(batch: Batch, table: str, key: Mapping[str, str]) -> int:
    path = batch.pipeline.table(table)
    if not delta.exists(batch.spark, path):
        return 0
    rows = delta.read(batch.spark, path)
    same = _same(batch, rows.schema, key)
    n = rows.where(same).count()
    if n:
        _without(batch, path, rows, key)
    return n


def _without(batch: Batch, path: str, rows: DataFrame, key: Mapping[str, str]) -> None:
    """Deletes by a MERGE with the key in its source: what a DELETE was asked for would stay in the table's log."""
    one = batch.spark.range(1).select(*(literal(batch.spark, c, rows.schema[c].dataType, v).alias(c) for c, v in key.items()))
    same = " and ".join(f"t.`{c}` = s.`{c}`" for c in key)
    target = DeltaTable.forPath(batch.spark, path).alias("t")
    target.merge(one.localCheckpoint(eager=True).alias("s"), same).whenMatchedDelete().execute()


def _same(batch: Batch, schema: T.StructType, key: Mapping[str, str]) -> Column:
    """True for rows of the key. UsageError where a value can't be one of its column."""
    return reduce(lambda a, b: a & b, [F.col(f"`{c}`") == literal(batch.spark, c, schema[c].dataType, v) for c, v in key.items()])
