"""Closes a period of outputs and opens it again, also where that was interrupted.

close:  intent -> each output: table of restated rows, property -> digests -> closed
reopen: intent -> each output: restated rows written, property, none restated -> reopened
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.diagnosis import tables
from jobs.microbatch.context import context_after
from windowing.closed.frame import release_rows, restated_schema
from windowing.closed.rule import CLOSED_UNTIL, REOPENED, can_be_frozen
from windowing.closed.table import Closed, digest_rows, locate_restated
from windowing.columns import END, START
from windowing.crash import crashpoint
from windowing.doctor.rule import name_command
from windowing.errors import StateRefused
from windowing.grid.frame import instant
from windowing.ledger.period import Frozen, Period, Reopening, read_step
from windowing.ledger.rule import (
    PERIOD_CLOSED,
    PERIOD_INTENT,
    PERIOD_REOPENED,
    LedgerEntry,
    LedgerExcerpt,
)
from windowing.ledger.table import Past, record_entries
from windowing.merge import table as outputs
from windowing.merge.frame import BEGUN, OVERFLOW
from windowing.merge.rule import Target, output_table
from windowing.report.text import instant_us
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta, own_tables, upkeep
from windowing.storage.kept_open import has_commit
from windowing.storage.table_properties import LONG_KEPT_FILES

FROZEN_CHANGED = "FROZEN_CHANGED"
"""The finding that rows of a closed period are not what they were. Runs go on meanwhile."""


def frozen_windows(pipeline: Pipeline) -> tuple[Window, ...]:
    """The windows whose rows can be frozen."""
    return tuple(window for window in pipeline.windows if can_be_frozen(window))


def begin_period(
    spark: SparkSession, pipeline: Pipeline, past: Past, step: Period | Reopening
) -> Past:
    """The history once the outputs are closed or reopened.

    Raises StateRefused where rows that are closed already have changed, and are to stay closed.
    """
    if isinstance(step, Period):
        require_frozen(spark, pipeline, past)
    intent = LedgerEntry(
        PERIOD_INTENT,
        run=past.last_run,
        at=context_after(spark, pipeline, past).read_clock(),
        note=step.as_note(),
    )
    past = record_entries(pipeline, past, [intent])
    crashpoint("period.intended")
    counts = _write_step(spark, pipeline, past, step)
    return _record_done(spark, pipeline, past, step, counts)


def finish_open_period(spark: SparkSession, pipeline: Pipeline, past: Past) -> Past:
    """The history once the period is closed or reopened that was begun to be."""
    begun = past.open_period
    if begun is None or begun.note is None:
        return past
    step = read_step(begun.note)
    _write_step(spark, pipeline, past, step)
    # What was written before the interruption can't be counted any more.
    return _record_done(spark, pipeline, past, step, {})


def _write_step(
    spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt, step: Period | Reopening
) -> Mapping[str, int]:
    """Freezes the outputs, or releases them; returns what changed."""
    counts: dict[str, int] = {}
    for window in frozen_windows(pipeline):
        target = output_table(pipeline, window)
        if isinstance(step, Period):
            _freeze(spark, target, step.until_us)
        else:
            counts |= _release(spark, target, past.last_run)
    return counts


def _record_done(
    spark: SparkSession,
    pipeline: Pipeline,
    past: Past,
    step: Period | Reopening,
    counts: Mapping[str, int],
) -> Past:
    name = PERIOD_REOPENED
    if isinstance(step, Period):
        name = PERIOD_CLOSED
        step = replace(step, frozen=digest_frozen(spark, pipeline, step.until_us))
    done = LedgerEntry(
        name,
        run=past.last_run,
        at=context_after(spark, pipeline, past).read_clock(),
        counts=counts,
        versions=tables.table_versions(pipeline),
        note=step.as_note(),
    )
    past = record_entries(pipeline, past, [done])
    crashpoint("period.done")
    return past


def _freeze(spark: SparkSession, target: Target, until_us: int) -> None:
    """Makes rows of an output that end by then unchangeable, and a table for what they would be."""
    _create_restated(spark, target)
    setting = own_tables.find_setting(own_tables.open_snapshot(target.path), CLOSED_UNTIL)
    if setting != str(until_us):
        delta.set_property(spark, target.path, CLOSED_UNTIL, str(until_us))
    crashpoint("period.frozen")


def _create_restated(spark: SparkSession, target: Target) -> None:
    """Creates the table of restated rows, anew where an earlier spec has left one without rows."""
    path = locate_restated(target.path)
    stored = own_tables.schema(spark, target.path)
    wanted = restated_schema(T.StructType([stored[name] for name in target.columns]))
    # Versions of both tables belong together, so their files are kept as long.
    properties = {**delta.properties(wanted), **LONG_KEPT_FILES}
    is_left = has_commit(path) and own_tables.size(spark, path)[0] == 0
    if is_left and own_tables.schema(spark, path) != wanted:
        delta.replace(spark, path, wanted, properties)
    own_tables.create(spark, path, wanted, properties)


def _release(spark: SparkSession, target: Target, run: int) -> Mapping[str, int]:
    """Makes the output what it would be if it had never been closed; returns what has changed."""
    output = outputs.open_output(target)
    changes = outputs.Changes()
    if output.closed is not None:
        changes = _write_restated(spark, output, output.closed, run)
        crashpoint("period.released")
        delta.set_property(spark, target.path, CLOSED_UNTIL, REOPENED)
        crashpoint("period.opened")
    path = locate_restated(target.path)
    if has_commit(path) and own_tables.size(spark, path)[0]:
        upkeep.delete_where(spark, path, F.lit(True))  # noqa: FBT003 Spark's
    return {
        f"{target.path.name}.inserted": changes.inserted,
        f"{target.path.name}.updated": changes.updated,
        f"{target.path.name}.deleted": changes.deleted,
    }


def _write_restated(
    spark: SparkSession, output: outputs.Output, closed: Closed, run: int
) -> outputs.Changes:
    """Writes the restated rows of an output to it."""
    if not closed.has_restated(spark):
        return outputs.Changes()
    stored = own_tables.read_snapshot(spark, output.snapshot, own_tables.EVERY_ROW)
    restated = own_tables.read_snapshot(spark, closed.restated, own_tables.EVERY_ROW)
    released = release_rows(stored, restated, closed.rows)
    changed = released.withColumns({BEGUN: F.col(START), OVERFLOW: F.lit(False)})
    computed = outputs.compute_changes(changed, run)
    return outputs.write_changes(replace(output, closed=None), computed)


def digest_frozen(spark: SparkSession, pipeline: Pipeline, until_us: int) -> Mapping[str, Frozen]:
    """The number and the digest of the rows of each output that end by then."""
    found = {}
    for window in frozen_windows(pipeline):
        target = output_table(pipeline, window)
        stored = own_tables.read(spark, target.path, own_tables.EVERY_ROW)
        within = stored.where(F.col(END) <= instant(until_us))
        rows, digest = digest_rows(within, target.columns)
        found[window.name] = Frozen(rows, digest)
    return found


def note_frozen(spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt) -> str | None:
    """The closed period with the digests of its rows as they are now; None where none is closed."""
    period = past.period
    if period is None:
        return None
    return replace(period, frozen=digest_frozen(spark, pipeline, period.until_us)).as_note()


def find_changed_frozen(
    spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt
) -> Iterator[StateRefused]:
    """The outputs whose frozen rows are not those that the ledger has the digests of.

    None while a close, a reopening or an erase is incomplete, because these change such rows.
    """
    period = past.period
    if period is None or past.open_period is not None or past.open_erasure is not None:
        return
    found = digest_frozen(spark, pipeline, period.until_us)
    for name, before in period.frozen.items():
        now = found.get(name, before)
        if now != before:
            until = instant_us(period.until_us)
            reopen = name_command(pipeline, "reopen", "--reason", "REASON")
            yield StateRefused(
                FROZEN_CHANGED,
                f"{pipeline.root}: the rows of {name} that were closed until {until} have changed "
                f"({before.rows:,} then, {now.rows:,} now, digest {now.digest[:12]} instead of "
                f"{before.digest[:12]}); restore {pipeline.root} as a whole from a backup, or "
                f"{reopen}, `tidemark backfill` their event times and close again",
            )


def require_frozen(spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt) -> None:
    """Raises StateRefused where a frozen row has changed, of which a new digest would not tell."""
    for refused in find_changed_frozen(spark, pipeline, past):
        raise refused
