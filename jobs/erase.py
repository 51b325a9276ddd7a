"""One key gone from everything a pipeline holds: state, outputs, refused rows, and the files that older versions were made of.

lock -> nothing left half-way -> intent -> rows deleted, state first -> readers pointed at what is left -> old files deleted -> done
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.maintenance.erasure import delete_rows, forget, rewrite, same_key
from jobs.microbatch.context import Batch
from jobs.preflight import lock, tables
from jobs.preflight.exact_session import in_exact_session
from jobs.preflight.source_errors import told
from jobs.publish import follow
from jobs.recompute.accepted import accepted
from jobs.recompute.resume import finished, ready
from jobs.recompute.totals import held, still_partial
from jobs.reconcile import sweep
from windowing import delta, table_retention
from windowing.columns import END, MISSED, START
from windowing.columns import T as TIME
from windowing.crash import crashpoint
from windowing.errors import UsageError
from windowing.ledger.rule import ERASE_DONE, ERASE_INTENT, GENERATION, Entry, Story
from windowing.ledger.table import record
from windowing.merge.rule import output
from windowing.panes.rule import NO_BATCH
from windowing.panes.table import Stamp
from windowing.source.rule import fed
from windowing.spec.kinds import Tumbling
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import listed

_ERASED = "erased"


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
        raise UsageError(
            f"--key: erase needs a value for every key column of {pipeline.name}; {listed(lacking)} is missing"
        )
    with lock.writer(spark, pipeline):
        past = finished(spark, pipeline, ready(spark, pipeline))
        sweep(spark, pipeline)
        if past.newest is None:
            return Erased({})
        batch = Batch(
            spark,
            pipeline,
            Stamp(past.last_run, NO_BATCH, GENERATION, None),
            past.last_arrival or 0,
            past.worn,
            fed(past),
        )
        resumed = past.open_erasure is not None
        past, begun = _intended(batch, past, key)
        left = tables.left(spark, pipeline, past)
        rows = delete_rows(batch, key, left)
        stale = [
            name
            for name in (*tables.names(spark, pipeline), *left)
            if table_retention.has_past(spark, pipeline.table(name))
        ]
        rewrite(batch, stale)
        versions = tables.versions(spark, pipeline)
        past = past if past.published is None else follow(spark, pipeline, past, versions)
        forget(batch, stale)
        done = replace(
            begun, step=ERASE_DONE, versions=versions, counts=_counts(batch, past, begun)
        )
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
    intent = Entry(
        ERASE_INTENT, generation=GENERATION, run=past.last_run, at=batch.arrival_us, counts=counts
    )
    past = record(batch.spark, batch.pipeline, past, [intent])
    crashpoint("erase.intended")
    return past, past.entries[-1]


def _behind(past: Story) -> Entry | None:
    """What readers are pointed at where that is not the newest there is, but for what was erased of it already."""
    published, newest, begun = past.published, past.newest, past.open_erasure
    if published is None or newest is None:
        return None
    older = (
        published.versions != newest.versions
        if begun is None
        else newest.seq > max(published.seq, begun.seq)
    )
    return published if older else None


def _counts(batch: Batch, past: Story, begun: Entry) -> dict[str, int]:
    """What the sums of the ledger have to change by to be those of what is held now."""
    partial = {w.name: 0 for w in batch.pipeline.windows} | still_partial(batch)
    counts = {f"partial.{name}": n - past.total(f"partial.{name}") for name, n in partial.items()}
    return counts | {
        "accepted": -begun.counts[_ERASED]
        if _ERASED in begun.counts
        else held(batch) - past.total("accepted")
    }


def _accepted(batch: Batch, past: Story, key: Mapping[str, str]) -> int:
    """How many events of the key count, as far as an output holds it: as the source says."""
    outputs = [
        delta.read(batch.spark, output(batch.pipeline, w).path) for w in batch.pipeline.windows
    ]
    if past.read_version is None or all(
        rows.where(same_key(batch, rows.schema, key)).isEmpty() for rows in outputs
    ):
        return 0
    with told(batch.spark, batch.pipeline, past):
        events = accepted(batch, past.read_version)
        return _shown(batch, events.where(same_key(batch, events.schema, key))).count()


def _shown(batch: Batch, events: DataFrame) -> DataFrame:
    """Without the events of a key that was erased before and has come again, where an output with all tumbling windows can tell."""
    pipeline = batch.pipeline
    telling = [
        w
        for w in pipeline.windows
        if isinstance(w, Tumbling) and w.shown.whole and w.shown.empty_limit is None
    ]
    if not telling or pipeline.retention.output_us is not None:
        return events
    there = delta.read(batch.spark, output(pipeline, telling[0]).path).select(
        *batch.keys, START, END
    )
    at, missed = (
        F.timestamp_micros(F.col(TIME)),
        F.coalesce(F.array_contains(MISSED, telling[0].name), F.lit(False)),
    )
    same = [F.col(f"e.`{k}`") == F.col(f"w.`{k}`") for k in batch.keys]
    inside = (at >= F.col(f"w.{START}")) & (at < F.col(f"w.{END}"))
    return events.alias("e").join(there.alias("w"), [*same, missed | inside], "left_semi")
