"""Maintains a pipeline: compacts state, deletes expired rows, rewrites and deletes files.

lock -> interrupted steps finished -> intent -> partial aggregates merged -> expired rows deleted ->
OPTIMIZE -> VACUUM -> logs -> done
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from pyspark.sql import SparkSession

from jobs.diagnosis import tables
from jobs.foreign_errors.control_errors import control_errors_explained
from jobs.locking import lock
from jobs.maintenance.compaction import compact_state
from jobs.maintenance.expiry import expire_revisions, expire_rows
from jobs.microbatch.context import RunContext
from jobs.microbatch.parallel import run_parallel
from jobs.publication.editions import (
    list_editions,
    list_published,
    refuse_managed,
    share_layouts,
)
from jobs.publish import unpublished_validated
from jobs.recompute.resume import finish_all
from jobs.reconcile import drop_leftover_copy
from jobs.sessions.exact_session import in_exact_session
from windowing.crash import crashpoint
from windowing.grid.zone import micros, moment
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import (
    KEPT_OUTPUT,
    KEPT_STATE,
    MAINTAIN_DONE,
    MAINTAIN_INTENT,
    LedgerEntry,
)
from windowing.ledger.table import LEDGER, QUALITY, WATERMARKS, read_history, record_entries
from windowing.location import Location
from windowing.merge.rule import REVISIONS, published_name
from windowing.panes.rule import NO_BATCH, state_names
from windowing.panes.table import Stamp
from windowing.report.text import plain, plain_fields
from windowing.revisions.table import keep_revisions
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta_log, own_tables, staged_files, table_retention, upkeep
from windowing.storage.files import committed_us
from windowing.storage.kept_open import has_commit, newest_version
from windowing.storage.store import store_of

KEPT = timedelta(days=30)
"""How long VACUUM keeps files of state, ledger and refused rows that no newest version needs.

The files of an output are kept as long as its table properties say.
"""

WEEK = timedelta(days=7)
"""How far ahead outputs keep the versions that readers use: the next maintenance may be as late."""

Progress = Callable[[int, int], None]
"""It is called with (tables done, all tables)."""

_CHECKPOINT = "_checkpoint"
"""Where earlier versions kept how far the source was read; nothing looks there any more."""

LOG_KEPT = timedelta(days=3)
"""How long commit files of state and ledger are kept.

They are short-lived because each read or write of a table lists its whole log.
"""


@dataclass(frozen=True)
class Tended:
    """One table: rows merged into others, rows expired, and files and bytes before and after."""

    name: str
    merged: int
    expired: int
    files: tuple[int, int]
    size: tuple[int, int]


@dataclass(frozen=True)
class Maintenance:
    """What was done to each table."""

    tables: tuple[Tended, ...]

    def as_json(self) -> dict[str, object]:
        """The result as plain JSON values."""
        return {
            t.name: {**plain_fields(t, "name", "size"), "bytes": plain(t.size)} for t in self.tables
        }


@in_exact_session
def maintain(
    spark: SparkSession,
    pipeline: Pipeline,
    now: datetime | None = None,
    progress: Progress = lambda done, total: None,
) -> Maintenance:
    """Compacts state, enforces `retention`, runs OPTIMIZE and VACUUM; changes no output value.

    An interrupted run or backfill is finished first. `now` (aware) stands for the host clock.
    `progress` is called with (tables done, all tables). Does nothing before the first run, and
    holds no lock then. Raises as `run` does.
    """
    if not has_begun(pipeline):
        return Maintenance(())
    with lock.writer(spark, pipeline):
        past = finish_all(spark, pipeline)
        drop_leftover_copy(spark, pipeline)
        checkpoint = pipeline.table(_CHECKPOINT)
        store_of(checkpoint).delete(checkpoint)
        if past.newest is None:
            return Maintenance(())
        refuse_managed(pipeline)
        clock_us = max(micros(now or datetime.now(UTC)), past.last_arrival or 0)
        stamp = Stamp(past.last_run, NO_BATCH, past.watermark)
        batch = RunContext(spark, pipeline, stamp, clock_us)
        kept = {
            KEPT_STATE: pipeline.retention.state_us,
            KEPT_OUTPUT: pipeline.retention.output_us,
        }
        intent = LedgerEntry(
            MAINTAIN_INTENT,
            run=past.last_run,
            at=clock_us,
            arrival=clock_us,
            counts={name: us for name, us in kept.items() if us is not None},
        )
        past = record_entries(pipeline, past, [intent])
        crashpoint("maintain.intended")
        return _maintain_tables(batch, past, progress)


def has_begun(pipeline: Pipeline) -> bool:
    """Whether there is anything to maintain, which is known without a lock and without a JVM."""
    with control_errors_explained(pipeline):
        return bool(read_history(pipeline).entries)


def _maintain_tables(batch: RunContext, past: LedgerHistory, progress: Progress) -> Maintenance:
    spark, pipeline = batch.spark, batch.pipeline
    keep_revisions(spark, pipeline)
    crashpoint("maintain.kept")
    companions = [name for name in (QUALITY, REVISIONS) if has_commit(pipeline.table(name))]
    names = [*tables.table_versions(pipeline), LEDGER, WATERMARKS, *companions]
    published = list_published(pipeline)
    before = {name: own_tables.size(spark, pipeline.table(name)) for name in [*names, *published]}
    merged = compact_state(batch)
    closed_us = None if past.period is None else past.period.until_us
    expired = expire_rows(batch, past.watermark, closed_us) | expire_revisions(batch, past)
    in_use = [
        entry
        for entry in (past.published, unpublished_validated(pipeline, past))
        if entry is not None
    ]
    run_parallel([partial(_maintain_files, batch, name, in_use) for name in names], progress)
    _maintain_published(batch, published)
    names += published
    after = {name: own_tables.size(spark, pipeline.table(name)) for name in names}
    done = replace(
        past.entries[-1],
        step=MAINTAIN_DONE,
        counts=expired,
        versions=tables.table_versions(pipeline),
    )
    record_entries(pipeline, past, [done])
    crashpoint("maintain.done")
    maintained: list[Tended] = []
    for name in names:
        files = (before[name][0], after[name][0])
        size = (before[name][1], after[name][1])
        maintained.append(Tended(name, merged.get(name, 0), expired.get(name, 0), files, size))
    return Maintenance(tuple(maintained))


def _maintain_published(batch: RunContext, names: Sequence[str]) -> None:
    """Gives published tables the rewritten files of their outputs, and deletes what they had.

    One that shows other rows than the newest version of its output keeps its files.
    """
    pipeline = batch.pipeline
    for name in names:
        staged_files.drop_staged(pipeline.table(name))
    newest = {w.name: newest_version(pipeline.table(w.name)) for w in pipeline.windows}
    there = {name: version for name, version in newest.items() if published_name(name) in names}
    share_layouts(pipeline, list_editions(pipeline, there))
    crashpoint("maintain.shared")
    run_parallel([partial(_delete_files, batch, name, KEPT) for name in names])


def _maintain_files(batch: RunContext, name: str, in_use: Sequence[LedgerEntry]) -> None:
    """Runs OPTIMIZE, VACUUM and log cleanup on one table; keeps the versions of `in_use`."""
    path = batch.pipeline.table(name)
    staged_files.drop_staged(path)
    if own_tables.size(batch.spark, path)[0] > 1:
        upkeep.compact_files(batch.spark, path)
    crashpoint("maintain.optimized")
    _delete_files(batch, name, _retention_of_files(batch, name, in_use))


def _delete_files(batch: RunContext, name: str, kept: timedelta) -> None:
    """Deletes files that no version younger than `kept` needs, and commits that no log keeps."""
    path = batch.pipeline.table(name)
    # VACUUM goes by the host's clock, whatever `now` is.
    if table_retention.has_older_files(path, datetime.now(UTC) - kept):
        upkeep.vacuum(batch.spark, path, kept)
    crashpoint("maintain.vacuumed")
    has_short_log = name in (*state_names(batch.pipeline), LEDGER)
    if has_short_log and table_retention.has_older_commits(path, datetime.now(UTC) - LOG_KEPT):
        table_retention.shorten_log(batch.spark, path, LOG_KEPT)
    elif not has_short_log:
        table_retention.clean_log(batch.spark, path, datetime.now(UTC))


def _retention_of_files(batch: RunContext, name: str, in_use: Sequence[LedgerEntry]) -> timedelta:
    """How long files that no newest version needs are kept.

    For an output, and for the restated rows of one, its table properties say it. They are raised
    first where a version in use needs longer, because Delta cleans logs and forgets deleted files
    by the same properties at each log checkpoint.
    """
    spark, path = batch.spark, batch.pipeline.table(name)
    outputs = (*tables.output_names(batch.pipeline), *tables.restated_names(batch.pipeline))
    if name not in outputs:
        return KEPT
    kept = delta_log.file_retention(spark, path)
    ages = [
        _time_since_replaced(path, entry.versions[name])
        for entry in in_use
        if name in entry.versions
    ]
    reach = max(ages, default=None)
    if reach is not None and kept < reach + WEEK:
        kept = timedelta(days=reach.days) + 2 * WEEK
        table_retention.keep_longer(spark, path, kept)
    return kept


def _time_since_replaced(path: Location, version: int) -> timedelta:
    """For how long `version` of a table has not been its newest one."""
    replaced_us = committed_us(path, version + 1)
    if replaced_us is None:
        return timedelta(0)
    return max(timedelta(0), datetime.now(UTC) - moment(replaced_us))
