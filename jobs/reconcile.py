"""Reconciles a range: finds on a copy what a backfill would change; only reads the pipeline.

lock -> shallow clones of every table -> without the lock: backfill of the copy -> outputs of the
copy compared with the cloned ones -> copy deleted but for its own lock

found, wanted -> joined by the identity of windows -> those that differ -> counts, examples
"""

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.backfill import Progress
from jobs.diagnosis.diagnose import find_problems
from jobs.diagnosis.spec_changes import spec_difference
from jobs.diagnosis.tables import table_versions
from jobs.locking import lock
from jobs.locking.lease_object import FILE as LOCK
from jobs.recompute.chunk import repair_chunk
from jobs.recompute.plan import chunks_of
from jobs.recompute.staging import stage_chunk
from jobs.recompute.time_range import TimeRange
from jobs.sessions.exact_session import in_exact_session
from windowing.closed.rule import restated_name
from windowing.crash import crashpoint
from windowing.errors import UsageError
from windowing.ledger.counts import sum_entry_counts
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import LedgerEntry
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.merge import table as outputs
from windowing.merge.rule import Target, output_table
from windowing.report import difference as differences
from windowing.report.difference import CLOSE, Difference
from windowing.report.frame import records
from windowing.report.rule import Changed
from windowing.report.text import left_open, plain_fields
from windowing.rows import are_same, not_finite
from windowing.source import table as source
from windowing.spec.aggregate_description import describe_aggregate
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta_log, upkeep
from windowing.storage.permission import check_permission
from windowing.storage.pinned_rows import pin_rows
from windowing.storage.store import store_of

COPY = "_check"
"""The directory of the copy, inside the pipeline's own."""
_MAX_EXAMPLES = 5
"""How many windows that differ are shown for each output."""
_FOUND, _WANTED, _CHANGE = "__found", "__wanted", "__change"


@dataclass(frozen=True)
class Checked:
    """What a backfill would do to a range.

    `read` counts the events reprocessed, `accepted` how many more would be accepted. `windows` has
    the changed rows by window, `examples` the first windows that differ.
    """

    read: int
    accepted: int
    windows: Mapping[str, Changed]
    examples: tuple[Difference, ...]

    @property
    def agrees(self) -> bool:
        """Whether a backfill of the range would change nothing."""
        unchanged = all(change == Changed() for change in self.windows.values())
        return self.accepted == 0 and unchanged

    def as_json(self) -> dict[str, object]:
        """The result as plain JSON values."""
        return {"agrees": self.agrees, **plain_fields(self)}


@in_exact_session
def check_range(
    spark: SparkSession,
    pipeline: Pipeline,
    start: datetime,
    end: datetime,
    progress: Progress = lambda done, total: None,
) -> Checked:
    """Recomputes [start, end) from the source and compares; writes only to a copy that it deletes.

    `start` is inside the range and `end` is not. Late and refused rows are admitted as `backfill`
    would admit them. `progress` is called with (chunks done, all chunks). Raises UsageError while a
    step is interrupted, after the spec has changed, or before the first run, and StateRefused as
    `run` does.
    """
    # A wrong range is refused before the lock is taken; the ledger isn't needed to see that.
    chunks_of(pipeline, start, end, LedgerHistory())
    with ExitStack() as cleanup:
        copy = _copy_of(pipeline)
        cleanup.enter_context(lock.writer(spark, copy))
        cleanup.callback(_delete_copy, spark, pipeline)
        with lock.writer(spark, pipeline):
            past = _require_finished(spark, pipeline)
            chunks = chunks_of(pipeline, start, end, past)
            cloned_versions = _clone_tables(spark, pipeline, copy)
        crashpoint("check.cloned")
        # The copy has no ledger yet: its first entry follows from no version.
        of_copy = replace(past, version=-1)
        counts = sum_entry_counts(_backfill_copy(spark, copy, of_copy, chunks, progress))
        changes: dict[str, Changed] = {}
        examples: list[Difference] = []
        for window in pipeline.windows:
            changed, example = _compare_output(spark, pipeline, copy, window, cloned_versions)
            changes[window.name] = changed
            if example is not None:
                examples.append(example)
        return Checked(counts.get("read", 0), counts.get("accepted", 0), changes, tuple(examples))


def drop_leftover_copy(spark: SparkSession, pipeline: Pipeline) -> None:
    """Deletes the copy that a killed check has left; raises Busy while a check is running."""
    if _list_copied(_copy_of(pipeline).root):
        with lock.writer(spark, _copy_of(pipeline)):
            _delete_copy(spark, pipeline)


def _delete_copy(spark: SparkSession, pipeline: Pipeline) -> None:
    """Deletes all of the copy but its lock, which whoever holds it could not give back."""
    root = _copy_of(pipeline).root
    delta_log.forget(spark, root)
    # What is left is deleted by the next check, or by maintenance.
    with suppress(OSError):
        for name in _list_copied(root):
            # Another check may have taken the lock over while this one slept.
            check_permission()
            store_of(root).delete(root / name)


def _list_copied(root: Location) -> list[str]:
    """The tables in the directory of the copy, and what is left of some."""
    store = store_of(root)
    names = {*store.list_names(root)} - {LOCK}
    # On S3 an object that stands for a directory may be left of it.
    return sorted(name for name in names if store.list_files(root / name))


def _copy_of(pipeline: Pipeline) -> Pipeline:
    """The same pipeline with its tables in the directory of the copy."""
    return replace(pipeline, lake=pipeline.table(COPY))


def _require_finished(spark: SparkSession, pipeline: Pipeline) -> LedgerHistory:
    """The ledger, for a pipeline without an interrupted step.

    Raises StateRefused as `run` does, and UsageError where a check can't compare anything.
    """
    past = read_history(pipeline)
    for refused in find_problems(spark, pipeline, source.checked_schema(spark, pipeline), past):
        raise refused
    if past.read_version is None:
        raise UsageError(
            f"{pipeline.name}: nothing has been read yet, so there is nothing to check; "
            "`tidemark run` first"
        )
    interrupted = left_open(past)
    if interrupted or spec_difference(pipeline, past):
        changed = "the spec has changed since the last run, and the next run applies it"
        reason = "; ".join(interrupted) or changed
        raise UsageError(f"{pipeline.name}: {reason}; check after that")
    return past


def _clone_tables(spark: SparkSession, pipeline: Pipeline, copy: Pipeline) -> Mapping[str, int]:
    """Makes shallow clones of all tables in the copy; returns the versions they were cloned at.

    A clone reads the files of its original, and everything written to it stays in the copy.
    """
    root = copy.root
    # Delta caches the state of tables by path, and a killed check may have left some at this one.
    delta_log.forget(spark, root)
    for name in _list_copied(root):
        store_of(root).delete(root / name)
    cloned_versions = table_versions(pipeline)
    for name, version in cloned_versions.items():
        upkeep.clone(spark, pipeline.table(name), version, copy.table(name))
    return cloned_versions


def _compare_output(
    spark: SparkSession,
    pipeline: Pipeline,
    copy: Pipeline,
    window: Window,
    cloned_versions: Mapping[str, int],
) -> tuple[Changed, Difference | None]:
    """Compares an output at the version that was cloned with the output of the copy.

    Of a closed one both are compared as if it were not closed.
    """
    target = output_table(pipeline, window)
    restated = cloned_versions.get(restated_name(window.name))
    version = cloned_versions[window.name]
    found = outputs.read_version(spark, target, version, restated)
    wanted = outputs.read_output(spark, outputs.open_output(output_table(copy, window)))
    # A backfill changes revision and run of a row, so only what is shown is compared.
    found = found.select(*target.shown)
    wanted = wanted.select(*target.shown)
    return compare_outputs(found, wanted, window, target)


def _backfill_copy(
    spark: SparkSession,
    copy: Pipeline,
    past: LedgerHistory,
    chunks: tuple[tuple[int, int], ...],
    progress: Progress,
) -> list[LedgerEntry]:
    """Backfills the chunks in the copy; returns their done entries."""
    done_entries: list[LedgerEntry] = []
    for n, (low, high) in enumerate(chunks):
        progress(n, len(chunks))
        chunk = TimeRange(low, high, past.read_version or 0)
        staged = stage_chunk(spark, copy, past, chunk)
        past, done = repair_chunk(spark, copy, past, staged, None)
        done_entries.append(done)
    progress(len(chunks), len(chunks))
    return done_entries


def compare_outputs(
    found: DataFrame, wanted: DataFrame, window: Window, target: Target
) -> tuple[Changed, Difference | None]:
    """What would make `found` into `wanted`, and the first windows that differ.

    found[target.shown], wanted[target.shown] -> rows to insert, update and delete, and examples.
    Estimates are not compared. Doubles differ when they are more than one in a million apart,
    because sums of doubles in another order are not the same to the last digit.
    """
    # A difference within the error of an estimate is none.
    estimated = {a.name for a in window.aggregates if describe_aggregate(a.function).is_estimate}
    shown = [name for name in target.shown if name not in estimated]
    changed = pin_rows(_find_changed_windows(found, wanted, shown, target))
    by_change = changed.groupBy(_CHANGE).count().collect()
    counts = {row[_CHANGE]: row["count"] for row in by_change}
    if not counts:
        return Changed(), None
    first = changed.orderBy(*target.identity).limit(_MAX_EXAMPLES)
    first = pin_rows(first.select(*target.identity))
    expected_rows = _collect_examples(wanted, first, shown, target)
    found_rows = _collect_examples(found, first, shown, target)
    example = differences.find_difference(window.name, expected_rows, found_rows, target.identity)
    return Changed(**counts), example


def _find_changed_windows(
    found: DataFrame, wanted: DataFrame, shown: list[str], target: Target
) -> DataFrame:
    """The windows that differ. found, wanted -> [target.identity, __change]."""
    differs = F.lit(False)
    for field in wanted.schema.fields:
        if field.name in shown and field.name not in target.identity:
            differs = differs | _column_differs(field)
    # Each side has a column that is never null, so that a window missing on it can be recognised.
    found_side = found.withColumn(_FOUND, F.lit(True)).alias(_FOUND)
    wanted_side = wanted.withColumn(_WANTED, F.lit(True)).alias(_WANTED)
    # The bounds of a global window are null, so equality has to be null-safe.
    same_window = are_same(_FOUND, _WANTED, target.identity)
    identity = [
        F.coalesce(f"{_WANTED}.`{name}`", f"{_FOUND}.`{name}`").alias(name)
        for name in target.identity
    ]
    joined = found_side.join(wanted_side, same_window, "full_outer")
    both = joined.select(*identity, _name_change(differs).alias(_CHANGE))
    return both.where(F.col(_CHANGE).isNotNull())


def _collect_examples(
    rows: DataFrame, windows: DataFrame, shown: list[str], target: Target
) -> list[dict[str, Any]]:
    same_window = are_same("r", "s", target.identity)
    examples = rows.alias("r").join(windows.alias("s"), same_window, "left_semi")
    return records(examples.select(*shown), _MAX_EXAMPLES)


def _name_change(differs: Column) -> Column:
    """What has to be done to a window; null where nothing has to be done."""
    missing = F.col(f"{_FOUND}.{_FOUND}").isNull()
    extra = F.col(f"{_WANTED}.{_WANTED}").isNull()
    return F.when(missing, "inserted").when(extra, "deleted").when(differs, "updated")


def _column_differs(field: T.StructField) -> Column:
    """Whether a column differs between the two sides; doubles may be `CLOSE` to each other."""
    found = F.col(f"{_FOUND}.`{field.name}`")
    wanted = F.col(f"{_WANTED}.`{field.name}`")
    unequal = ~found.eqNullSafe(wanted)
    # Spark counts decimals among the fractional types, but their sums are exact.
    is_decimal = isinstance(field.dataType, T.DecimalType)
    if is_decimal or not isinstance(field.dataType, T.FractionalType):
        return unequal
    # Sums that cancel each other are near 0, and differ by the order in which they were added.
    tolerance = F.greatest(F.lit(CLOSE) * F.greatest(F.abs(found), F.abs(wanted)), F.lit(CLOSE**2))
    apart = F.abs(found - wanted) > tolerance
    # `apart` is null where one side is null, and then the two sides do differ. It is false where
    # one side is infinite or no number, however far the other one is from it.
    is_apart = apart | not_finite(found) | not_finite(wanted)
    return unequal & F.coalesce(is_apart, F.lit(True))
