"""Erases one key from state, outputs, refused rows and the files of older versions.

lock -> interrupted steps finished -> intent -> rows deleted, state first -> readers pointed at what
is left -> old files deleted -> done
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
"""The count of an intent: how many accepted events of the key are erased."""


@dataclass(frozen=True)
class Erased:
    """Rows deleted by table, and whether this has resumed an erase that was interrupted."""

    rows: Mapping[str, int]
    resumed: bool = False

    def as_json(self) -> dict[str, object]:
        """The result as plain JSON values."""
        return {"rows": dict(self.rows), "resumed": self.resumed}


@in_exact_session
def erase(spark: SparkSession, pipeline: Pipeline, key: Mapping[str, str]) -> Erased:
    """Deletes every row of `key` and the files that contained one.

    `key` has a value as text for each key column. Repeating an interrupted erase resumes it. Older
    versions can't be read afterwards, except where the newest version of a table needs all files
    there are. The source is not changed: a backfill accepts again what is still there. The ledger
    records that something was erased, not what. Raises UsageError where a key column is missing, or
    where an older run than the newest is published, and Busy and StateRefused as `run` does.
    """
    missing = [column for column in pipeline.source.key if column not in key]
    if missing:
        raise UsageError(
            f"--key: erase needs a value for every key column of {pipeline.name}; "
            f"{listed(missing)} is missing"
        )
    with lock.writer(spark, pipeline):
        past = finished(spark, pipeline, ready(spark, pipeline))
        sweep(spark, pipeline)
        if past.newest is None:
            return Erased({})
        stamp = Stamp(past.last_run, NO_BATCH, GENERATION, None)
        batch = Batch(spark, pipeline, stamp, past.last_arrival or 0, worn=past.worn, fed=fed(past))
        resumed = past.open_erasure is not None
        past, intent = _record_intent(batch, past, key)
        # Tables of windows that a changed spec has removed still contain the key.
        removed_tables = tables.left(spark, pipeline, past)
        rows = delete_rows(batch, key, removed_tables)
        all_tables = (*tables.names(spark, pipeline), *removed_tables)
        stale = [
            name for name in all_tables if table_retention.has_past(spark, pipeline.table(name))
        ]
        rewrite(batch, stale)
        versions = tables.versions(spark, pipeline)
        # Readers have to leave the older versions before their files are deleted.
        if past.published is not None:
            past = follow(spark, pipeline, past, versions)
        forget(batch, stale)
        counts = _count_changes(batch, past, intent)
        done = replace(intent, step=ERASE_DONE, versions=versions, counts=counts)
        record(spark, pipeline, past, [done])
        crashpoint("erase.done")
        return Erased(rows, resumed)


def _record_intent(batch: Batch, past: Story, key: Mapping[str, str]) -> tuple[Story, Entry]:
    """The story with an intent, and that intent; an interrupted erase has one already.

    Where panes may have expired, the intent records how many events of the key were accepted.
    Raises UsageError where the published versions could not be kept without the key.
    """
    outdated = _outdated_publication(past)
    if outdated is not None:
        raise UsageError(
            f"{batch.pipeline.name}: the published run {outdated.run} is not the newest, so erase "
            "would delete the versions that readers use; "
            "`tidemark publish` (or `--accept REASON`) first"
        )
    if past.open_erasure is not None:
        return past, past.open_erasure
    counts = {_ERASED: _count_accepted(batch, past, key)} if batch.worn else {}
    intent = Entry(
        ERASE_INTENT, generation=GENERATION, run=past.last_run, at=batch.arrival_us, counts=counts
    )
    past = record(batch.spark, batch.pipeline, past, [intent])
    crashpoint("erase.intended")
    return past, past.entries[-1]


def _outdated_publication(past: Story) -> Entry | None:
    """The publish entry, if it names older versions than the newest.

    An interrupted erase has changed versions already, so then the order of the entries decides.
    """
    published, newest, intent = past.published, past.newest, past.open_erasure
    if published is None or newest is None:
        return None
    if intent is None:
        is_outdated = published.versions != newest.versions
    else:
        is_outdated = newest.seq > max(published.seq, intent.seq)
    return published if is_outdated else None


def _count_changes(batch: Batch, past: Story, intent: Entry) -> dict[str, int]:
    """By how much the totals of the ledger have to change to be those of the state now."""
    partial = {window.name: 0 for window in batch.pipeline.windows} | still_partial(batch)
    changes = {f"partial.{name}": n - past.total(f"partial.{name}") for name, n in partial.items()}
    # Where panes may have expired, state lacks some accepted events, so the intent has their count.
    if _ERASED in intent.counts:
        changes["accepted"] = -intent.counts[_ERASED]
    else:
        changes["accepted"] = held(batch) - past.total("accepted")
    return changes


def _count_accepted(batch: Batch, past: Story, key: Mapping[str, str]) -> int:
    """How many events of the key were accepted, as the source says; 0 if no output contains it."""
    if past.read_version is None:
        return 0
    outputs = [
        delta.read(batch.spark, output(batch.pipeline, w).path) for w in batch.pipeline.windows
    ]
    if all(rows.where(same_key(batch, rows.schema, key)).isEmpty() for rows in outputs):
        return 0
    with told(batch.spark, batch.pipeline, past):
        events = accepted(batch, past.read_version)
        of_key = events.where(same_key(batch, events.schema, key))
        return _without_erased_before(batch, of_key).count()


def _without_erased_before(batch: Batch, events: DataFrame) -> DataFrame:
    """The events without those that an earlier erase of the same key has removed.

    The source still has them. An output with all tumbling windows shows which events were accepted
    since: those whose window is there, or that were late for it. Without such an output all events
    are returned.
    """
    pipeline = batch.pipeline
    witnesses = [
        w
        for w in pipeline.windows
        if isinstance(w, Tumbling) and w.shown.whole and w.shown.empty_limit is None
    ]
    # Rows of an output that expires are missing for that reason, too.
    if not witnesses or pipeline.retention.output_us is not None:
        return events
    witness = witnesses[0]
    windows = delta.read(batch.spark, output(pipeline, witness).path)
    windows = windows.select(*batch.keys, START, END)
    at = F.timestamp_micros(F.col(TIME))
    missed = F.coalesce(F.array_contains(MISSED, witness.name), F.lit(False))
    same = [F.col(f"e.`{k}`") == F.col(f"w.`{k}`") for k in batch.keys]
    inside = (at >= F.col(f"w.{START}")) & (at < F.col(f"w.{END}"))
    return events.alias("e").join(windows.alias("w"), [*same, missed | inside], "left_semi")
