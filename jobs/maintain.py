"""Keeps a pipeline small over thousands of runs: fewer rows of state, what `retention` keeps and no more, fewer and newer files.

lock -> nothing left half-way -> intent -> merge partials -> delete what is old -> OPTIMIZE -> VACUUM -> logs -> done
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from expectations.table import QUALITY
from jobs.maintenance.compaction import compact
from jobs.maintenance.expiry import expire
from jobs.microbatch.context import Batch
from jobs.microbatch.parallel import together
from jobs.preflight import lock, tables
from jobs.preflight.exact_session import in_exact_session
from jobs.publish import awaited
from jobs.recompute.resume import finished, ready
from jobs.reconcile import sweep
from windowing import delta, table_retention
from windowing.crash import crashpoint
from windowing.grid.zone import micros, moment
from windowing.ledger.rule import (
    GENERATION,
    KEPT_STATE,
    MAINTAIN_DONE,
    MAINTAIN_INTENT,
    Entry,
    Story,
)
from windowing.ledger.table import LEDGER, WATERMARKS, record
from windowing.panes.rule import NO_BATCH, state_names
from windowing.panes.table import Stamp
from windowing.spec.pipeline import Pipeline

KEPT = timedelta(days=30)
"""How long VACUUM leaves files of state, ledger and refused rows that no newest version needs; an output says so itself."""

WEEK = timedelta(days=7)
"""How far ahead outputs keep what readers are pointed at: the next maintenance may be as late, or the one after it."""

LOG_KEPT = timedelta(days=3)
"""How long the logs of state and ledger are kept: each read or write of a table lists its log whole."""


@dataclass(frozen=True)
class Tended:
    """One table: the rows that were merged into others, the rows that were deleted, and its files and bytes before and after."""

    name: str
    merged: int
    expired: int
    files: tuple[int, int]
    size: tuple[int, int]


@dataclass(frozen=True)
class Maintenance:
    """What was done to every table."""

    tables: tuple[Tended, ...]

    def as_json(self) -> dict[str, object]:
        """The same as plain JSON values."""
        return {
            t.name: {
                "merged": t.merged,
                "expired": t.expired,
                "files": list(t.files),
                "bytes": list(t.size),
            }
            for t in self.tables
        }


@in_exact_session
def maintain(spark: SparkSession, pipeline: Pipeline, now: datetime | None = None) -> Maintenance:
    """Compacts state, enforces `retention`, compacts files and deletes those nobody needs; no number changes.

    A run or backfill that was left open is finished first. `now` (aware) stands for the host clock. Raises as `run` does.
    """
    with lock.writer(spark, pipeline):
        past = finished(spark, pipeline, ready(spark, pipeline))
        sweep(spark, pipeline)
        if past.newest is None:
            return Maintenance(())
        clock = max(micros(now or datetime.now(UTC)), past.last_arrival or 0)
        batch = Batch(
            spark, pipeline, Stamp(past.last_run, NO_BATCH, GENERATION, past.watermark), clock
        )
        kept = (
            {} if pipeline.retention.state_us is None else {KEPT_STATE: pipeline.retention.state_us}
        )
        begun = Entry(
            MAINTAIN_INTENT,
            generation=GENERATION,
            run=past.last_run,
            at=clock,
            arrival=clock,
            counts=kept,
        )
        past = record(spark, pipeline, past, [begun])
        crashpoint("maintain.intended")
        return _tended(batch, past)


def _tended(batch: Batch, past: Story) -> Maintenance:
    spark, pipeline = batch.spark, batch.pipeline
    names = [
        *tables.versions(spark, pipeline),
        LEDGER,
        WATERMARKS,
        *([QUALITY] if delta.exists(spark, pipeline.table(QUALITY)) else []),
    ]
    before = {name: delta.size(spark, pipeline.table(name)) for name in names}
    merged, expired = compact(batch), expire(batch, past.watermark)
    kept = [e for e in (past.published, awaited(spark, pipeline, past)) if e is not None]
    together([partial(_files, batch, name, kept) for name in names])
    after = {name: delta.size(spark, pipeline.table(name)) for name in names}
    done = replace(
        past.entries[-1],
        step=MAINTAIN_DONE,
        counts=expired,
        versions=tables.versions(spark, pipeline),
    )
    record(spark, pipeline, past, [done])
    crashpoint("maintain.done")
    told = (
        Tended(
            n,
            merged.get(n, 0),
            expired.get(n, 0),
            (before[n][0], after[n][0]),
            (before[n][1], after[n][1]),
        )
        for n in names
    )
    return Maintenance(tuple(told))


def _files(batch: Batch, name: str, wanted: Sequence[Entry]) -> None:
    path = batch.pipeline.table(name)
    table = DeltaTable.forPath(batch.spark, path)
    if delta.size(batch.spark, path)[0] > 1:
        table.optimize().executeCompaction()
    crashpoint("maintain.optimized")
    kept = _kept(batch, name, wanted)
    # VACUUM goes by the host's clock, whatever `now` is.
    if table_retention.has_older_files(path, datetime.now(UTC) - kept):
        table.vacuum(kept.total_seconds() / 3600)
    crashpoint("maintain.vacuumed")
    if name in (*state_names(batch.pipeline), LEDGER) and table_retention.has_older_commits(
        path, datetime.now(UTC) - LOG_KEPT
    ):
        table_retention.shorten_log(batch.spark, path, LOG_KEPT)


def _kept(batch: Batch, name: str, wanted: Sequence[Entry]) -> timedelta:
    """How long files are kept that no newest version needs. An output says so, and first says longer if `wanted` versions ask for it.

    Delta itself drops logs, and forgets when files were deleted, by the same properties whenever it sums a log up.
    """
    spark, path = batch.spark, batch.pipeline.table(name)
    if name not in tables.outputs(batch.pipeline):
        return KEPT
    kept = table_retention.kept(spark, path)
    reach = max(
        (_passed(batch, path, e.versions[name]) for e in wanted if name in e.versions), default=None
    )
    if reach is not None and kept < reach + WEEK:
        kept = timedelta(days=reach.days) + 2 * WEEK
        table_retention.keep_longer(spark, path, kept)
    return kept


def _passed(batch: Batch, path: str, version: int) -> timedelta:
    """For how long `version` of a table has not been its newest one."""
    since = delta.committed(batch.spark, path, version + 1)
    return timedelta(0) if since is None else max(timedelta(0), datetime.now(UTC) - moment(since))
