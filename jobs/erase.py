"""Erases a key, or a value of a column, from all tables and their older versions, for good.

lock -> interrupted steps finished -> intent: the rows are kept out from here on
-> of a value: event ids deleted, state and outputs rebuilt from the source
-> rows deleted: event ids, state, outputs, refused rows
-> readers pointed at what is left -> old files deleted -> done
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from secrets import token_hex

from pyspark.sql import SparkSession

from jobs.diagnosis import tables
from jobs.foreign_errors.source_errors import lost_version_explained, source_errors_explained
from jobs.locking import lock
from jobs.maintenance.erasure import (
    delete_old_files,
    delete_rows,
    rewrite_marked_files,
)
from jobs.maintenance.subject import compute_erasure, read_subject
from jobs.microbatch.context import RunContext, context_after
from jobs.publication.editions import drop_outdated_of_left, list_published
from jobs.publish import repoint_published
from jobs.recompute.erased_ids import delete_ids
from jobs.recompute.erased_totals import count_all_erased, count_changes, count_events_of_key
from jobs.recompute.periods import note_frozen, require_frozen
from jobs.recompute.resume import finish_all
from jobs.recompute.spec_evolution import IDS_ERASED, rebuild_without_values
from jobs.reconcile import drop_leftover_copy
from jobs.sessions.exact_session import in_exact_session
from windowing.admit.erased import only_erased
from windowing.crash import crashpoint
from windowing.doctor.rule import name_command
from windowing.errors import UsageError
from windowing.grid.zone import moment
from windowing.ledger.erased import (
    Erasing,
    Erasure,
    Erasures,
    note_erased,
    note_lifted,
    read_erased,
)
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import (
    ERASE_DONE,
    ERASE_INTENT,
    ERASE_LIST,
    EVOLVE_DONE,
    FINISHED,
    LedgerEntry,
)
from windowing.ledger.table import record_entries
from windowing.merge.rule import REVISIONS, is_internal, published_name
from windowing.panes.rule import SEEN
from windowing.report.rule import Changed, read_changed
from windowing.report.text import instant_us, interval, plain_fields
from windowing.revisions.table import keep_revisions, pass_over_revisions
from windowing.source import table as source
from windowing.source.rule import unsettled_ranges, was_rewritten
from windowing.spec.pipeline import Pipeline
from windowing.storage import staged_files, table_retention
from windowing.storage.kept_open import has_commit

_SALT_BYTES = 16


@dataclass(frozen=True)
class Erased:
    """What an erasure did, and what it can't reach.

    `rows` has the rows deleted by table, and `windows` what became of the outputs where the events
    of a value counted, which are rebuilt. The source is not changed: of such rows it has
    `source_rows`, which are not counted where only keys were erased. `left_tables` are outputs of
    windows that the spec no longer has, so that they can't be rebuilt. `dropped_tables` are the
    published tables of such windows that were deleted. It has `resumed` an erasure that was
    interrupted; of an `unknown` one, by an earlier release, the ledger does not say which key it
    was.
    """

    rows: Mapping[str, int]
    windows: Mapping[str, Changed] = field(default_factory=dict)
    source_rows: int | None = None
    left_tables: tuple[str, ...] = ()
    dropped_tables: tuple[str, ...] = ()
    resumed: bool = False
    unknown: bool = False

    def as_json(self) -> dict[str, object]:
        """The result as plain JSON values."""
        return plain_fields(self, "unknown")


@dataclass(frozen=True)
class Lifted:
    """Whether the key or value was erased before, so that its rows are read again from now on."""

    lifted: bool

    def as_json(self) -> dict[str, object]:
        """The result as plain JSON values."""
        return plain_fields(self)


@in_exact_session
def erase(spark: SparkSession, pipeline: Pipeline, asked: Erasing) -> Erased:
    """Deletes every row of a key and the files that contained one, and keeps its rows out.

    Of a key a value is `asked` for each of its columns. From the intent on no run, backfill or
    change of the spec accepts a row of the key, wherever this is interrupted; repeating it, also
    with another key or value, finishes it. Older versions can't be read afterwards, except where
    the newest version of a table needs all files there are. The source is not changed. The ledger
    records a salted digest of the key. Before the first run nothing is deleted, and the key is kept
    out of all runs.

    Of a value in another column of the source, stored or computed, all tables are made as if no
    event with it had been accepted. Refused rows and event ids are deleted. State and outputs are
    rebuilt from the source without the rows; every other event counts as it was admitted, and the
    watermark stays where it is. All else is as for a key.

    Raises UsageError where a key column is missing, where a text does not name exactly one value of
    its column, or where an older run than the newest is published, TidemarkError where files are
    left because of a clock, and Busy and StateRefused as `run` does. For a value also UsageError
    where events happen when they arrive or a change of the source was left out, and StateRefused
    where the source can't be read as it was read last; nothing is written then.
    """
    subject = read_subject(spark, pipeline, asked)
    with lock.writer(spark, pipeline):
        past = finish_all(spark, pipeline)
        drop_leftover_copy(spark, pipeline)
        salt = past.erasures.salt or token_hex(_SALT_BYTES)
        new = compute_erasure(spark, subject, salt)
        if new.column is not None and past.period is not None:
            raise UsageError(
                f"{pipeline.name} is closed until {instant_us(past.period.until_us)}, and frozen "
                "rows can't be rebuilt without a value; `tidemark reopen` it, erase, then close it "
                "again"
            )
        if past.newest is None:
            _list_erasure(spark, pipeline, past, salt, new)
            return Erased({})
        _require_newest_published(pipeline, past)
        interrupted = past.open_erasures
        require_frozen(spark, pipeline, past)
        due = Erasures(salt, frozenset({new, *_list_recorded(interrupted)}))
        batch = _context_of(spark, pipeline, past)
        source_rows = _count_in_source(batch, past, due) if due.columns else None
        own = Erasures(salt, frozenset({new}))
        counts = {} if new.column else count_events_of_key(batch, past, own)
        past, found = _begin(batch, past, own, counts)
        erased_events = count_all_erased(interrupted, own, counts)
        found = _erase_everywhere(batch, past, due, found, erased_events)
        unknown = any(read_erased(entry.note) is None for entry in interrupted)
        return replace(found, source_rows=source_rows, resumed=bool(interrupted), unknown=unknown)


@in_exact_session
def lift_erasure(spark: SparkSession, pipeline: Pipeline, asked: Erasing) -> Lifted:
    """Rows of a key or value count again: those read from now on, and others after a backfill.

    Nothing else changes. Raises as `erase` does, and UsageError while an erase is interrupted.
    """
    subject = read_subject(spark, pipeline, asked)
    with lock.writer(spark, pipeline):
        past = finish_all(spark, pipeline)
        if past.open_erasures:
            raise UsageError(
                f"{pipeline.name}: an erase was interrupted, and what it has left is not known; "
                "rerun `tidemark erase` with the same key or value before you lift any"
            )
        erased = past.erasures
        if erased.salt is None:
            return Lifted(lifted=False)
        erasure = compute_erasure(spark, subject, erased.salt)
        if erasure not in erased.found:
            return Lifted(lifted=False)
        _record_list(spark, pipeline, past, note_lifted(erased.salt, erasure))
        return Lifted(lifted=True)


def _context_of(spark: SparkSession, pipeline: Pipeline, past: LedgerHistory) -> RunContext:
    """What state, outputs and source are read with, erased rows included."""
    return replace(
        context_after(spark, pipeline, past),
        state_may_be_expired=past.state_may_be_expired,
        source_was_rewritten=was_rewritten(past),
    )


def _list_erasure(
    spark: SparkSession, pipeline: Pipeline, past: LedgerHistory, salt: str, new: Erasure
) -> None:
    """Records an erasure of which no table has a row, because nothing was read yet."""
    if new not in past.erasures.found:
        _record_list(spark, pipeline, past, note_erased(salt, new))


def _record_list(spark: SparkSession, pipeline: Pipeline, past: LedgerHistory, note: str) -> None:
    at_us = context_after(spark, pipeline, past).read_clock()
    listed = LedgerEntry(ERASE_LIST, at=at_us, note=note)
    record_entries(pipeline, past, [listed])
    crashpoint("erase.listed")


def _list_recorded(intents: Iterable[LedgerEntry]) -> list[Erasure]:
    """What the intents erase, as far as that is recorded."""
    erasures = [read_erased(intent.note) for intent in intents]
    return [erasure for erasure in erasures if erasure is not None]


def _require_newest_published(pipeline: Pipeline, past: LedgerHistory) -> None:
    """Raises UsageError where readers use an older version, which could not be kept.

    An interrupted erase has changed versions already, so then the order of the entries decides, and
    what the newest of them that is no part of it has left.
    """
    published, newest, intent = past.published, past.newest, past.open_erasure
    if published is None or newest is None:
        return
    if intent is None:
        is_outdated = published.versions != newest.versions
    else:
        # The rebuild of an interrupted erase is a part of it.
        since = max(published.seq, intent.seq)
        others = [e for e in past.entries if e.step in FINISHED and e.step != EVOLVE_DONE]
        is_late = any(entry.seq > since for entry in others)
        is_outdated = is_late or (bool(others) and _shows_older(pipeline, published, others[-1]))
    if is_outdated:
        raise UsageError(
            f"{pipeline.name}: the published run {published.run} is not the newest, so erase "
            "would delete the versions that readers use; "
            "`tidemark publish` (or `--accept REASON`) first"
        )


def _shows_older(pipeline: Pipeline, published: LedgerEntry, newest: LedgerEntry) -> bool:
    """Whether readers see an older version of an output than a step has left, or none."""
    names = [w.name for w in pipeline.windows if w.name in newest.versions]
    return any(published.versions.get(name, -1) < newest.versions[name] for name in names)


def _count_in_source(batch: RunContext, past: LedgerHistory, due: Erasures) -> int:
    """How many rows that are `due` the source has, of those that were read.

    Raises where state can't be rebuilt from it: UsageError where it does not have the times of
    events, or not what state was made of, and StateRefused where it can't be read.
    """
    spark, pipeline = batch.spark, batch.pipeline
    if pipeline.source.event_time.column is None:
        raise UsageError(
            f"{pipeline.name}: events happen when they arrive (event_time: arrival), so windows "
            "can't be rebuilt without those of a value; only a key can be erased"
        )
    left_out = [interval(moment(low), moment(high)) for low, high in unsettled_ranges(past)]
    if left_out:
        raise UsageError(
            f"{pipeline.name}: what the source changed in {' and '.join(left_out)} was left out, "
            "so windows can't be rebuilt from it without those of a value; "
            "`tidemark backfill` these ranges first"
        )
    # A run reads a newer version, which has all of its files.
    newer = f"{name_command(pipeline, 'run')}, if the source has something new, and erase again"
    explained = source_errors_explained(spark, pipeline, past, newer)
    with lost_version_explained(pipeline, newer), explained:
        rows = source.read(spark, pipeline, past.read_version)
        return only_erased(rows, batch.keys, due).count()


def _begin(
    batch: RunContext, past: LedgerHistory, own: Erasures, counts: Mapping[str, int]
) -> tuple[LedgerHistory, Erased]:
    """Records an intent for what is erased now, unless it has one that is not finished.

    Where that is a value, state and outputs are rebuilt without it, which whatever finds such an
    intent has done first. Returns the ledger, and what the rebuild did.
    """
    (erasure,) = own.found
    if erasure in _list_recorded(past.open_erasures):
        return past, Erased({})
    intent = LedgerEntry(
        ERASE_INTENT,
        run=past.last_run,
        at=batch.read_clock(),
        counts=counts,
        note=note_erased(own.salt or "", erasure),
    )
    if erasure.column is None:
        past = record_entries(batch.pipeline, past, [intent])
        crashpoint("erase.intended")
        return past, Erased({})
    past = rebuild_without_values(batch.spark, batch.pipeline, past, intent)
    rebuilt = past.entries[-1].counts
    windows = {w.name: read_changed(rebuilt, w.name) for w in batch.pipeline.windows}
    ids = {SEEN: rebuilt[IDS_ERASED]} if IDS_ERASED in rebuilt else {}
    return past, Erased(ids, windows)


def _erase_everywhere(
    batch: RunContext, past: LedgerHistory, due: Erasures, found: Erased, erased_events: int
) -> Erased:
    """Deletes what is `due` from all tables, and records that; adds to what was `found` before."""
    pipeline = batch.pipeline
    rows = dict(found.rows)
    # Whether one shows what its output has is known as long as that has all of its rows.
    dropped = drop_outdated_of_left(pipeline)
    # What outputs showed before is deleted with their older versions; that of other keys is kept.
    keep_revisions(batch.spark, pipeline)
    crashpoint("erase.kept")
    if pipeline.source.event_id and due.digests_of(None):
        # The source and the other tables show whose the ids are, so these come first.
        rows[SEEN] = rows.get(SEEN, 0) + delete_ids(batch, due.select([None]), None)
    # Tables of windows that a changed spec has removed still contain keys.
    removed_tables = tables.tables_of_dropped_windows(pipeline, past)
    rows |= delete_rows(batch, due, removed_tables)
    if has_commit(pipeline.table(REVISIONS)):
        pass_over_revisions(batch.spark, pipeline)
    past, versions = _drop_older_versions(batch, past, removed_tables)
    deleted = {f"{w.name}.deleted": rows.get(w.name, 0) for w in pipeline.windows}
    done = LedgerEntry(
        ERASE_DONE,
        run=past.last_run,
        at=batch.read_clock(),
        versions=versions,
        counts=count_changes(batch, past, erased_events) | deleted,
        note=note_frozen(batch.spark, pipeline, past),
    )
    record_entries(pipeline, past, [done])
    crashpoint("erase.done")
    left = [name for name in removed_tables if not is_internal(name)]
    if set(due.columns) <= set(batch.keys):
        left = []
    dropped_tables = tuple(map(published_name, dropped))
    return replace(found, rows=rows, left_tables=tuple(left), dropped_tables=dropped_tables)


def _drop_older_versions(
    batch: RunContext, past: LedgerHistory, removed_tables: Sequence[str]
) -> tuple[LedgerHistory, Mapping[str, int]]:
    """Deletes every file that the newest versions do not need.

    Returns the ledger, in which readers use the newest versions, and these by table.
    """
    pipeline = batch.pipeline
    kept = [REVISIONS] if has_commit(pipeline.table(REVISIONS)) else []
    all_tables = (*tables.existing_tables(pipeline), *removed_tables, *kept)
    stale = _find_stale(batch, all_tables)
    rewrite_marked_files(batch, stale)
    versions = tables.table_versions(pipeline)
    # Readers have to leave the older versions before their files are deleted.
    if past.published is not None:
        past = repoint_published(pipeline, past, versions)
    delete_old_files(batch, (*stale, *_find_stale(batch, list_published(pipeline))))
    return past, versions


def _find_stale(batch: RunContext, names: Sequence[str]) -> list[str]:
    """The tables with files that their newest versions do not need; staged ones are deleted."""
    paths = {name: batch.pipeline.table(name) for name in names}
    for path in paths.values():
        staged_files.drop_staged(path)
    return [name for name, path in paths.items() if table_retention.has_past(batch.spark, path)]
