"""Compares what was published with what was published before, or with the newest rows. No JVM.

two steps of the ledger -> their versions of each output -> rows that differ, some of them shown
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from jobs.diagnosis.spec_changes import list_changed_names
from jobs.foreign_errors.control_errors import control_errors_explained
from jobs.publication.earlier import find_publication
from windowing.columns import REVISION, RUN, START
from windowing.errors import UsageError
from windowing.grid.zone import moment
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import PUBLISH, LedgerEntry
from windowing.ledger.table import read_history
from windowing.merge.rule import identity
from windowing.report.compared import ChangedRow, Compared, OutputDifference, Side
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.storage.control import TableError
from windowing.storage.kept_open import lake_seen
from windowing.storage.row_changes import RowChanges, find_equal_rows
from windowing.storage.version_changes import compare_versions
from windowing.storage.version_files import list_version


def compare(pipeline: Pipeline, since: int | None, until: int | None, limit: int) -> Compared:
    """The rows of each output that differ between two publications, and at most `limit` of them.

    They are named by their numbers. Without `since` it is what readers see now, and without `until`
    what the newest finished run has left. Rows in which nothing but `revision` and `run` differs
    are none. Nothing is written, and no lock is taken. Raises UsageError where nothing is published
    or a version can't be read any more, and StateRefused where the ledger is damaged.
    """
    with control_errors_explained(pipeline), lake_seen(pipeline.root):
        past = read_history(pipeline)
        first = _find_side(pipeline, past, since, past.published)
        last = _find_side(pipeline, past, until, past.newest)
        outputs = {}
        for window in pipeline.windows:
            if window.name in first.versions and window.name in last.versions:
                outputs[window.name] = _compare_output(pipeline, window, first, last, limit)
        return Compared(
            _describe_side(past, first),
            _describe_side(past, last),
            outputs,
            list_changed_names(pipeline, past),
        )


def _find_side(
    pipeline: Pipeline, past: LedgerHistory, number: int | None, default: LedgerEntry | None
) -> LedgerEntry:
    if number is not None:
        return find_publication(pipeline, past, number)
    if default is None:
        raise UsageError(f"{pipeline.name}: nothing is published yet, so nothing can be compared")
    return default


def _describe_side(past: LedgerHistory, entry: LedgerEntry) -> Side:
    watermark_us = past.watermark_of(entry.run)
    return Side(
        entry.seq if entry.step == PUBLISH else None,
        entry.run,
        None if entry.at is None else moment(entry.at),
        None if watermark_us is None else moment(watermark_us),
    )


def _compare_output(
    pipeline: Pipeline, window: Window, first: LedgerEntry, last: LedgerEntry, limit: int
) -> OutputDifference:
    name, keys = window.name, pipeline.source.key
    columns = identity(window, keys)
    try:
        before, after = (
            list_version(pipeline.table(name), entry.versions[name]) for entry in (first, last)
        )
        changes = compare_versions(before, after, columns)
    except (TableError, FileNotFoundError) as error:
        raise UsageError(
            f"{pipeline.name}: {name} can't be compared, because a version of it was deleted by "
            "maintenance or an erasure; name later publications"
        ) from error
    return _describe_changes(_keep_shown(changes), [START, *columns], limit)


def _keep_shown(changes: RowChanges) -> RowChanges:
    """The changes without `revision` and `run`, and without rows that differ in nothing else."""
    inserted, deleted, before, after = (
        rows.drop_columns([REVISION, RUN])
        for rows in (changes.inserted, changes.deleted, changes.before, changes.after)
    )
    differs = pa.array(~find_equal_rows(before, after))
    return RowChanges(inserted, deleted, before.filter(differs), after.filter(differs))


def _describe_changes(changes: RowChanges, columns: Sequence[str], limit: int) -> OutputDifference:
    order = [(name, "ascending") for name in dict.fromkeys(columns)]

    def choose(rows: pa.Table) -> pa.Array:
        return pc.sort_indices(rows, sort_keys=order)[:limit]

    rows = [ChangedRow(None, row) for row in _to_rows(changes.inserted, choose(changes.inserted))]
    rows += [ChangedRow(row, None) for row in _to_rows(changes.deleted, choose(changes.deleted))]
    chosen = choose(changes.after)
    pairs = zip(_to_rows(changes.before, chosen), _to_rows(changes.after, chosen), strict=True)
    rows += [ChangedRow(old, new) for old, new in pairs]
    rows.sort(key=lambda row: [_to_sortable(row.values[name]) for name, _ in order])
    return OutputDifference(
        inserted=changes.inserted.num_rows,
        updated=changes.after.num_rows,
        deleted=changes.deleted.num_rows,
        rows=tuple(rows[:limit]),
    )


def _to_sortable(value: object) -> tuple[bool, object]:
    """Nothing comes first."""
    return (False, 0) if value is None else (True, value)


def _to_rows(rows: pa.Table, chosen: pa.Array) -> list[dict[str, object]]:
    taken = rows.take(chosen)
    columns = {}
    for name in taken.column_names:
        try:
            columns[name] = taken[name].to_pylist()
        except (ValueError, OverflowError):
            # A time beyond the calendar of Python is shown as its text.
            columns[name] = taken[name].cast(pa.string()).to_pylist()
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
