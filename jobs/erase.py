"""Erases one key from state, outputs, refused rows and the files of older versions.

lock -> interrupted steps finished -> intent -> rows deleted, state first -> readers pointed at what
is left -> old files deleted -> done
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.diagnosis import tables
from jobs.diagnosis.diagnose import source_problems
from jobs.foreign_errors.source_errors import source_errors_explained
from jobs.locking import lock
from jobs.maintenance.erasure import (
    Key,
    delete_old_files,
    delete_rows,
    rewrite_marked_files,
    same_key,
)
from jobs.microbatch.context import RunContext
from jobs.publish import repoint_published
from jobs.recompute.accepted import all_accepted_rows
from jobs.recompute.resume import finish_open_run, resume_all
from jobs.recompute.totals import (
    count_accepted,
    count_accepted_by,
    count_partly_late,
    find_count_of_all,
)
from jobs.reconcile import drop_leftover_copy
from jobs.sessions.exact_session import in_exact_session
from windowing.columns import END, MISSED, START, TIME
from windowing.crash import crashpoint
from windowing.errors import UsageError
from windowing.ledger.rule import ERASE_DONE, ERASE_INTENT, GENERATION, LedgerEntry, LedgerHistory
from windowing.ledger.table import read_history, record_entries
from windowing.merge.rule import output_table
from windowing.panes.rule import NO_BATCH
from windowing.panes.table import Stamp
from windowing.source import table as source
from windowing.source.rule import was_rewritten
from windowing.source.table import literal
from windowing.spec.description import describe_window
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import join_names
from windowing.storage import delta, staged_files, table_retention

_ERASED = "erased"
"""The count of an intent: how many accepted events of the key are erased.

It is there only where neither state nor an output can tell how many are left.
"""


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
    records that something was erased, not what. Raises UsageError where a key column is missing,
    where a text does not name exactly one value of its column, or where an older run than the
    newest is published, and Busy and StateRefused as `run` does.
    """
    missing = [column for column in pipeline.source.key if column not in key]
    if missing:
        raise UsageError(
            f"--key: erase needs a value for every key column of {pipeline.name}; "
            f"{join_names(missing)} is missing"
        )
    values = _read_key(spark, pipeline, key)
    with lock.writer(spark, pipeline):
        past = finish_open_run(spark, pipeline, resume_all(spark, pipeline))
        drop_leftover_copy(spark, pipeline)
        if past.newest is None:
            return Erased({})
        stamp = Stamp(past.last_run, NO_BATCH, GENERATION, None)
        batch = RunContext(
            spark,
            pipeline,
            stamp,
            past.last_arrival or 0,
            state_may_be_expired=past.state_may_be_expired,
            source_was_rewritten=was_rewritten(past),
        )
        resumed = past.open_erasure is not None
        past, intent = _record_intent(batch, past, values)
        # Tables of windows that a changed spec has removed still contain the key.
        removed_tables = tables.tables_of_dropped_windows(spark, pipeline, past)
        rows = delete_rows(batch, values, removed_tables)
        all_tables = (*tables.existing_tables(spark, pipeline), *removed_tables)
        for name in all_tables:
            staged_files.drop_staged(pipeline.table(name))
        stale = [
            name for name in all_tables if table_retention.has_past(spark, pipeline.table(name))
        ]
        rewrite_marked_files(batch, stale)
        versions = tables.table_versions(spark, pipeline)
        # Readers have to leave the older versions before their files are deleted.
        if past.published is not None:
            past = repoint_published(pipeline, past, versions)
        delete_old_files(batch, stale)
        deleted = {f"{w.name}.deleted": rows.get(w.name, 0) for w in pipeline.windows}
        counts = _count_changes(batch, past, intent) | deleted
        done = replace(intent, step=ERASE_DONE, versions=versions, counts=counts)
        record_entries(pipeline, past, [done])
        crashpoint("erase.done")
        return Erased(rows, resumed)


def _read_key(spark: SparkSession, pipeline: Pipeline, key: Mapping[str, str]) -> Key:
    """The texts of `key` as values of the source's columns. Nothing is written.

    Raises the error of a run where the source is not the one that was read.
    """
    found = source.schema(spark, pipeline)
    for problem in source_problems(spark, pipeline, found, read_history(pipeline)):
        raise problem
    return {
        column: literal(spark, column, found[column].dataType, value)
        for column, value in key.items()
    }


def _record_intent(
    batch: RunContext, past: LedgerHistory, key: Key
) -> tuple[LedgerHistory, LedgerEntry]:
    """The ledger with an intent, and that intent; an interrupted erase has one already.

    Raises UsageError where the published versions could not be kept without the key.
    """
    outdated = _outdated_publication(past)
    if outdated is not None:
        raise UsageError(
            f"{batch.pipeline.name}: the published run {outdated.run} is not the newest, so erase "
            "would delete the versions that readers use; "
            "`tidemark publish` (or `--accept REASON`) first"
        )
    begun, counts = past.open_erasure, _count_erased(batch, past, key)
    if begun is not None:
        # The interrupted erase may have deleted what it has counted, and more may have come since.
        most = {name: max(n, begun.counts.get(name, 0)) for name, n in counts.items()}
        return past, replace(begun, counts=most)
    intent = LedgerEntry(
        ERASE_INTENT, generation=GENERATION, run=past.last_run, at=batch.arrival_us, counts=counts
    )
    past = record_entries(batch.pipeline, past, [intent])
    crashpoint("erase.intended")
    return past, past.entries[-1]


def _outdated_publication(past: LedgerHistory) -> LedgerEntry | None:
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


def _count_changes(batch: RunContext, past: LedgerHistory, intent: LedgerEntry) -> dict[str, int]:
    """By how much the totals of the ledger have to change to be those of what is left.

    What is left is counted, because an interrupted erase may have been of another key.
    """
    partial = {window.name: 0 for window in batch.pipeline.windows} | count_partly_late(batch)
    changes = {f"partial.{name}": n - past.total(f"partial.{name}") for name, n in partial.items()}
    shown_in = find_count_of_all(batch.pipeline, past)
    if not batch.state_may_be_expired:
        changes["accepted"] = count_accepted(batch) - past.total("accepted")
    elif shown_in is not None:
        changes["accepted"] = count_accepted_by(batch, shown_in) - past.total("accepted")
    else:
        changes["accepted"] = -intent.counts.get(_ERASED, 0)
    return changes


def _count_erased(batch: RunContext, past: LedgerHistory, key: Key) -> dict[str, int]:
    """The count of an intent, where it is needed."""
    if not batch.state_may_be_expired or find_count_of_all(batch.pipeline, past) is not None:
        return {}
    return {_ERASED: _count_accepted(batch, past, key)}


def _count_accepted(batch: RunContext, past: LedgerHistory, key: Key) -> int:
    """How many events of the key were accepted, as the source says; 0 if no output contains it."""
    if past.read_version is None:
        return 0
    outputs = [
        delta.read(batch.spark, output_table(batch.pipeline, w).path)
        for w in batch.pipeline.windows
    ]
    if all(rows.where(same_key(key)).isEmpty() for rows in outputs):
        return 0
    with source_errors_explained(batch.spark, batch.pipeline, past):
        events = all_accepted_rows(batch, past.read_version)
        of_key = events.where(same_key(key))
        return _without_erased_before(batch, past, of_key).count()


def _without_erased_before(batch: RunContext, past: LedgerHistory, events: DataFrame) -> DataFrame:
    """The events without those that an earlier erase of the same key has removed.

    The source still has them. An output with all tumbling windows shows which events were accepted
    since: those whose window is there, or that were late for it. Without such an output all events
    are returned.
    """
    pipeline = batch.pipeline
    witnesses = [
        w
        for w in pipeline.windows
        if describe_window(w).divides_time
        and w.shown.whole
        and w.shown.empty_limit is None
        and not past.rows_may_be_expired(w.name)
    ]
    # Rows of an output that expires are missing for that reason, too.
    if not witnesses or pipeline.retention.output_us is not None:
        return events
    witness = witnesses[0]
    windows = delta.read(batch.spark, output_table(pipeline, witness).path)
    windows = windows.select(*batch.keys, START, END)
    at = F.timestamp_micros(F.col(TIME))
    missed = F.coalesce(F.array_contains(MISSED, witness.name), F.lit(False))
    same = [F.col(f"e.`{k}`") == F.col(f"w.`{k}`") for k in batch.keys]
    inside = (at >= F.col(f"w.{START}")) & (at < F.col(f"w.{END}"))
    return events.alias("e").join(windows.alias("w"), [*same, missed | inside], "left_semi")
