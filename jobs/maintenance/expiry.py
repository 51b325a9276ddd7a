"""Expiry: what has passed the spec's `retention` is deleted.

Refused rows expire by the arrival of their run, and lose their source columns. Earlier values of
windows expire by the clock, once they have been replaced for so long. Windows, state and ids expire
by the watermark. They are deleted.
"""

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.microbatch.context import RunContext
from windowing.admit.digest import EMPTIED, digest_of
from windowing.admit.outcomes import REFUSED
from windowing.columns import DIGEST, END, META, PANE, RUN, kept_name, quoted
from windowing.crash import crashpoint
from windowing.grid.frame import instant
from windowing.ledger.history import LedgerHistory
from windowing.ledger.table import WATERMARKS
from windowing.merge.rule import REVISIONS
from windowing.panes.rule import SEEN, pane_families
from windowing.revisions.table import forget_revisions
from windowing.source import table as source
from windowing.spec.kinds import Aligned, Global
from windowing.storage import own_tables, upkeep
from windowing.windows.finality import is_expired
from windowing.windows.gaps import shows_empty_windows


def expire_rows(
    batch: RunContext, watermark_us: int | None, closed_us: int | None = None
) -> dict[str, int]:
    """Deletes rows past their retention and empties refused rows past theirs.

    Rows of outputs stay that end at or before `closed_us`, until when a period is closed.
    Returns by table how many rows were deleted or emptied.
    """
    pipeline = batch.pipeline
    kept = pipeline.retention
    found: dict[str, int] = {}
    if kept.refused_us is not None:
        found |= _expire_refused(batch, batch.arrival_us - kept.refused_us)
    if watermark_us is None:
        return found
    horizon = pipeline.watermark.dedupe_horizon_us
    if pipeline.source.event_id is not None and horizon is not None:
        old_ids = F.col("event_time") <= instant(watermark_us - horizon)
        found[SEEN] = _delete_old_rows(batch, SEEN, old_ids)
    if kept.output_us is not None:
        old_windows = is_expired(pipeline, watermark_us)
        if closed_us is not None:
            old_windows = old_windows & (F.col(END) > instant(closed_us))
        for window in pipeline.windows:
            if isinstance(window, Aligned):
                found[window.name] = _delete_old_rows(batch, window.name, old_windows)
    if kept.state_us is not None:
        found |= _expire_panes(batch, watermark_us - kept.state_us)
    return found


def expire_revisions(batch: RunContext, past: LedgerHistory) -> dict[str, int]:
    """Deletes values of windows that were replaced before their retention.

    Returns by table how many rows were deleted.
    """
    kept_us = batch.pipeline.retention.revisions_us
    if kept_us is None:
        return {}
    until_us = batch.arrival_us - kept_us
    return {REVISIONS: forget_revisions(batch.spark, batch.pipeline, past, until_us)}


def _expire_refused(batch: RunContext, until_us: int) -> dict[str, int]:
    """Empties refused rows of runs whose arrival is before `until_us`."""
    watermarks = own_tables.read(batch.spark, batch.pipeline.table(WATERMARKS))
    earlier = watermarks.where(F.col("arrival") < instant(until_us))
    # The arrival never falls from one run to the next.
    ((last,),) = earlier.agg(F.max(RUN)).collect()
    if last is None:
        return {}
    return {table: _empty_old_rows(batch, table, F.col(RUN) <= last) for table in REFUSED}


def _expire_panes(batch: RunContext, until_us: int) -> Mapping[str, int]:
    """Deletes panes that began before `until_us`.

    Panes of global windows never expire. Those of families that show empty windows stay too,
    because empty windows begin at the first event of their key.
    """
    found = {}
    for family in pane_families(batch.pipeline):
        if any(isinstance(w, Global) or shows_empty_windows(w) for w in family.windows):
            continue
        old = F.col(PANE) < instant(until_us)
        found[family.table] = _delete_old_rows(batch, family.table, old)
    return found


def _empty_old_rows(batch: RunContext, table: str, old: Column) -> int:
    """Sets the source columns of old refused rows to null, except for the key, in one commit.

    What remains is that they were refused, and their digest. Without the digest, reprocessing would
    accept a row that the source still has. By the key they can be erased.
    """
    path = batch.pipeline.table(table)
    rows = batch.find_rows(table)
    if rows is None:
        return 0
    if EMPTIED not in rows.columns:
        upkeep.add_columns(batch.spark, path, [T.StructField(EMPTIED, T.LongType())])
        rows = own_tables.read(batch.spark, path)
    due = old & F.col(EMPTIED).isNull()
    n = rows.where(due).count()
    if n:
        spared = {*META, DIGEST, EMPTIED, *map(kept_name, batch.keys)}
        changes: dict[str, Column] = {
            quoted(field.name): F.lit(None).cast(field.dataType)
            for field in rows.schema.fields
            if field.name not in spared
        }
        schema = source.schema(batch.spark, batch.pipeline)
        earlier = source.earlier_types(batch.spark, batch.pipeline)
        changes[EMPTIED] = digest_of(rows, schema, earlier)
        upkeep.update_rows(batch.spark, path, due, changes)
    crashpoint("maintain.expired")
    return n


def _delete_old_rows(batch: RunContext, table: str, old: Column) -> int:
    """Deletes the rows for which `old` is true; returns how many there were."""
    rows = batch.find_rows(table)
    if rows is None:
        return 0
    n = rows.where(old).count()
    if n:
        upkeep.delete_where(batch.spark, batch.pipeline.table(table), old)
    crashpoint("maintain.expired")
    return n
