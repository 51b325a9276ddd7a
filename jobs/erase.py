"""Erases one key from state, outputs, refused rows and the files of older versions, for good.

lock -> interrupted steps finished -> intent: the key's rows are kept out from here on
-> rows deleted, state first -> readers pointed at what is left -> old files deleted -> done
"""

from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.diagnosis import tables
from jobs.diagnosis.diagnose import source_problems
from jobs.foreign_errors.source_errors import source_errors_explained
from jobs.locking import lock
from jobs.maintenance.erasure import delete_old_files, delete_rows, rewrite_marked_files
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
from windowing.admit.erased import key_digest, only_erased
from windowing.columns import END, MISSED, START, TIME
from windowing.crash import crashpoint
from windowing.errors import UsageError
from windowing.ledger.erased import ErasedKeys, note_erased, note_lifted, read_erased
from windowing.ledger.rule import (
    ERASE_DONE,
    ERASE_INTENT,
    ERASE_LIST,
    GENERATION,
    LedgerEntry,
    LedgerHistory,
)
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

Key = Mapping[str, tuple[Column, T.DataType]]
"""The values of a key, each with its type, by column."""
_SALT_BYTES = 16
_DELETED = "erased"
"""The count of an intent: how many accepted events of the key are erased.

It is there only where neither state nor an output can tell how many are left.
"""


@dataclass(frozen=True)
class Erased:
    """Rows deleted by table, and whether this has finished an erase that was interrupted.

    Of an `unknown` one, by an earlier release, the ledger does not say which key it was.
    """

    rows: Mapping[str, int]
    resumed: bool = False
    unknown: bool = False

    def as_json(self) -> dict[str, object]:
        """The result as plain JSON values."""
        return {"rows": dict(self.rows), "resumed": self.resumed}


@dataclass(frozen=True)
class Lifted:
    """Whether the key was erased before, so that its rows are read again from now on."""

    lifted: bool

    def as_json(self) -> dict[str, object]:
        """The result as plain JSON values."""
        return {"lifted": self.lifted}


@in_exact_session
def erase(spark: SparkSession, pipeline: Pipeline, key: Mapping[str, str]) -> Erased:
    """Deletes every row of `key` and the files that contained one, and keeps its rows out.

    `key` has a value as text for each key column. From the intent on no run, backfill or change of
    the spec accepts a row of the key, wherever this is interrupted; repeating it, also with another
    key, finishes it. Older versions can't be read afterwards, except where the newest version of a
    table needs all files there are. The source is not changed. The ledger records a salted digest
    of the key. Before the first run nothing is deleted, and the key is kept out of all runs.

    Raises UsageError where a key column is missing, where a text does not name exactly one value of
    its column, or where an older run than the newest is published, and Busy and StateRefused as
    `run` does.
    """
    values = _read_key(spark, pipeline, key)
    with lock.writer(spark, pipeline):
        past = finish_open_run(spark, pipeline, resume_all(spark, pipeline))
        drop_leftover_copy(spark, pipeline)
        salt = past.erased_keys.salt or token_hex(_SALT_BYTES)
        of_key = ErasedKeys(salt, frozenset({_compute_digest(spark, values, salt)}))
        if past.newest is None:
            _list_key(pipeline, past, of_key)
            return Erased({})
        interrupted = past.open_erasures
        batch = _context_of(spark, pipeline, past)
        past, counts = _record_intent(batch, past, of_key)
        due = ErasedKeys(salt, frozenset(_list_digests(past.open_erasures)))
        rows = _delete_everywhere(batch, past, due, counts)
        unknown = any(read_erased(entry.note) is None for entry in interrupted)
        return Erased(rows, bool(interrupted), unknown)


@in_exact_session
def lift_erasure(spark: SparkSession, pipeline: Pipeline, key: Mapping[str, str]) -> Lifted:
    """Rows of `key` count again: those that are read from now on, and others after a backfill.

    Nothing else changes. Raises as `erase` does, and UsageError while an erase is interrupted.
    """
    values = _read_key(spark, pipeline, key)
    with lock.writer(spark, pipeline):
        past = finish_open_run(spark, pipeline, resume_all(spark, pipeline))
        if past.open_erasures:
            raise UsageError(
                f"{pipeline.name}: an erase was interrupted, and what it has left is not known; "
                "rerun `tidemark erase` with the key before you lift any"
            )
        erased = past.erased_keys
        if erased.salt is None:
            return Lifted(lifted=False)
        digest = _compute_digest(spark, values, erased.salt)
        if digest not in erased.digests:
            return Lifted(lifted=False)
        _record_list(pipeline, past, note_lifted(erased.salt, digest))
        return Lifted(lifted=True)


def _read_key(spark: SparkSession, pipeline: Pipeline, key: Mapping[str, str]) -> Key:
    """The texts of `key` as values of the source's columns. Nothing is written.

    Raises UsageError where a column is missing or is none of the key's, and the error of a run
    where the source is not the one that was read.
    """
    missing = [column for column in pipeline.source.key if column not in key]
    if missing:
        raise UsageError(
            f"--key: erase needs a value for every key column of {pipeline.name}; "
            f"{join_names(missing)} is missing"
        )
    unknown = [column for column in key if column not in pipeline.source.key]
    if unknown:
        raise UsageError(
            f"--key: {join_names(unknown)} is no key column of {pipeline.name}; "
            f"it has {join_names(pipeline.source.key)}"
        )
    found = source.schema(spark, pipeline)
    for problem in source_problems(spark, pipeline, found, read_history(pipeline)):
        raise problem
    types = {column: found[column].dataType for column in key}
    return {
        column: (literal(spark, column, types[column], value), types[column])
        for column, value in key.items()
    }


def _compute_digest(spark: SparkSession, values: Key, salt: str) -> str:
    digest = key_digest(values, salt).alias("digest")
    (row,) = spark.range(1).select(digest).collect()
    return str(row["digest"])


def _context_of(spark: SparkSession, pipeline: Pipeline, past: LedgerHistory) -> RunContext:
    """What state, outputs and source are read with, rows of erased keys included."""
    return RunContext(
        spark,
        pipeline,
        Stamp(past.last_run, NO_BATCH, GENERATION, None),
        past.last_arrival or 0,
        state_may_be_expired=past.state_may_be_expired,
        source_was_rewritten=was_rewritten(past),
    )


def _list_key(pipeline: Pipeline, past: LedgerHistory, of_key: ErasedKeys) -> None:
    """Records a key of which no table has a row, because nothing was read yet."""
    if of_key.digests <= past.erased_keys.digests:
        return
    (digest,) = of_key.digests
    _record_list(pipeline, past, note_erased(of_key.salt or "", digest))


def _record_list(pipeline: Pipeline, past: LedgerHistory, note: str) -> None:
    listed = LedgerEntry(ERASE_LIST, generation=GENERATION, at=past.last_arrival, note=note)
    record_entries(pipeline, past, [listed])
    crashpoint("erase.listed")


def _list_digests(intents: tuple[LedgerEntry, ...]) -> list[str]:
    """The digests of the keys that the intents erase, as far as they are recorded."""
    digests = [read_erased(intent.note) for intent in intents]
    return [digest for digest in digests if digest is not None]


def _delete_everywhere(
    batch: RunContext, past: LedgerHistory, due: ErasedKeys, counts: Mapping[str, int]
) -> dict[str, int]:
    """Deletes the rows of the keys that are `due` and records that; returns how many by table."""
    spark, pipeline = batch.spark, batch.pipeline
    # Tables of windows that a changed spec has removed still contain the key.
    removed_tables = tables.tables_of_dropped_windows(spark, pipeline, past)
    rows = delete_rows(batch, due, removed_tables)
    all_tables = (*tables.existing_tables(spark, pipeline), *removed_tables)
    for name in all_tables:
        staged_files.drop_staged(pipeline.table(name))
    stale = [name for name in all_tables if table_retention.has_past(spark, pipeline.table(name))]
    rewrite_marked_files(batch, stale)
    versions = tables.table_versions(spark, pipeline)
    # Readers have to leave the older versions before their files are deleted.
    if past.published is not None:
        past = repoint_published(pipeline, past, versions)
    delete_old_files(batch, stale)
    deleted = {f"{w.name}.deleted": rows.get(w.name, 0) for w in pipeline.windows}
    done = LedgerEntry(
        ERASE_DONE,
        generation=GENERATION,
        run=past.last_run,
        at=batch.arrival_us,
        versions=versions,
        counts=_count_changes(batch, past, counts) | deleted,
    )
    record_entries(pipeline, past, [done])
    crashpoint("erase.done")
    return rows


def _record_intent(
    batch: RunContext, past: LedgerHistory, of_key: ErasedKeys
) -> tuple[LedgerHistory, Mapping[str, int]]:
    """The ledger with an intent for the key, and the counts of all keys that are being erased.

    Raises UsageError where the published versions could not be kept without the key.
    """
    outdated = _outdated_publication(past)
    if outdated is not None:
        raise UsageError(
            f"{batch.pipeline.name}: the published run {outdated.run} is not the newest, so erase "
            "would delete the versions that readers use; "
            "`tidemark publish` (or `--accept REASON`) first"
        )
    begun, counts = past.open_erasures, _count_erased(batch, past, of_key)
    if not of_key.digests <= set(_list_digests(begun)):
        (digest,) = of_key.digests
        intent = LedgerEntry(
            ERASE_INTENT,
            generation=GENERATION,
            run=past.last_run,
            at=batch.arrival_us,
            counts=counts,
            note=note_erased(of_key.salt or "", digest),
        )
        past = record_entries(batch.pipeline, past, [intent])
        crashpoint("erase.intended")
    return past, _add_interrupted(begun, of_key, counts)


def _add_interrupted(
    begun: tuple[LedgerEntry, ...], of_key: ErasedKeys, counts: Mapping[str, int]
) -> dict[str, int]:
    """The counts of all keys that are being erased; `begun` are the intents that there were.

    An interrupted erase of the same key, or of one that is not recorded, may have deleted what it
    has counted, and what is counted now may be the rest of that.
    """
    own, others = counts.get(_DELETED, 0), 0
    for intent in begun:
        digest, counted = read_erased(intent.note), intent.counts.get(_DELETED, 0)
        if digest is None or digest in of_key.digests:
            own = max(own, counted)
        else:
            others += counted
    return {_DELETED: own + others}


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


def _count_changes(
    batch: RunContext, past: LedgerHistory, erased: Mapping[str, int]
) -> dict[str, int]:
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
        changes["accepted"] = -erased.get(_DELETED, 0)
    return changes


def _count_erased(batch: RunContext, past: LedgerHistory, of_key: ErasedKeys) -> dict[str, int]:
    """The count of an intent, where it is needed."""
    if not batch.state_may_be_expired or find_count_of_all(batch.pipeline, past) is not None:
        return {}
    return {_DELETED: _count_accepted(batch, past, of_key)}


def _count_accepted(batch: RunContext, past: LedgerHistory, of_key: ErasedKeys) -> int:
    """How many events of the key were accepted, as the source says; 0 if no output contains it."""
    if past.read_version is None:
        return 0
    keys = {key: key for key in batch.keys}
    outputs = [
        delta.read(batch.spark, output_table(batch.pipeline, w).path)
        for w in batch.pipeline.windows
    ]
    if all(only_erased(rows, keys, of_key).isEmpty() for rows in outputs):
        return 0
    with source_errors_explained(batch.spark, batch.pipeline, past):
        events = all_accepted_rows(batch, past.read_version)
        return _without_erased_before(batch, past, only_erased(events, keys, of_key)).count()


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
