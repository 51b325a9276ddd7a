"""Compares what was published with what was published before, or with the newest rows. No JVM.

two steps of the ledger -> their versions of each output -> rows that differ, some of them shown
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from jobs.diagnosis.spec_changes import check_columns, list_changed_names
from jobs.foreign_errors.control_errors import control_errors_explained
from jobs.publication.earlier import find_publication
from windowing.columns import REVISION, RUN, START
from windowing.errors import UsageError
from windowing.grid.zone import moment
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import PUBLISH, LedgerEntry
from windowing.ledger.table import read_history
from windowing.merge.rule import identity, is_internal
from windowing.report.arrow_values import plain_rows
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
        before, after = (_list_outputs(side) for side in (first, last))
        return Compared(
            _describe_side(past, first),
            _describe_side(past, last),
            {
                each.name: _compare_output(pipeline, past, each, first, last, limit)
                for each in pipeline.windows
                if each.name in before and each.name in after
            },
            added=tuple(name for name in after if name not in before),
            removed=tuple(name for name in before if name not in after),
            changed=list_changed_names(pipeline, past),
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


def _list_outputs(entry: LedgerEntry) -> list[str]:
    """The outputs of a step, those that the spec does not have any more among them."""
    return sorted(name for name in entry.versions if not is_internal(name))


def _compare_output(
    pipeline: Pipeline,
    past: LedgerHistory,
    window: Window,
    first: LedgerEntry,
    last: LedgerEntry,
    limit: int,
) -> OutputDifference:
    name, keys = window.name, pipeline.source.key
    columns = identity(window, keys)
    try:
        before, after = (
            list_version(pipeline.table(name), entry.versions[name]) for entry in (first, last)
        )
        for side in (before, after):
            check_columns(pipeline, past, window, side.schema.names)
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
    order = [*dict.fromkeys(columns)]

    def choose(rows: pa.Table) -> pa.Array:
        by = [(name, "ascending", "at_start") for name in order]
        return pc.sort_indices(rows, sort_keys=by)[:limit]

    inserted = changes.inserted.take(choose(changes.inserted))
    deleted = changes.deleted.take(choose(changes.deleted))
    updated = choose(changes.after)
    before, after = changes.before.take(updated), changes.after.take(updated)
    rows = [ChangedRow(None, row) for row in plain_rows(inserted)]
    rows += [ChangedRow(row, None) for row in plain_rows(deleted)]
    pairs = zip(plain_rows(before), plain_rows(after), strict=True)
    rows += [ChangedRow(old, new) for old, new in pairs]
    # Arrow compares times as numbers, also those that are text as plain values.
    named = pa.concat_tables([each.select(order) for each in (inserted, deleted, after)])
    return OutputDifference(
        inserted=changes.inserted.num_rows,
        updated=changes.after.num_rows,
        deleted=changes.deleted.num_rows,
        rows=tuple(rows[place] for place in choose(named).to_pylist()),
    )
