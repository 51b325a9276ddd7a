"""What rows of outputs were before they changed: from the change feed, and kept when that goes.

change feed of an output -> changes[keys, window_start, window_end, __identity, __version, __change,
__values]
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import END, INDEX, START, quoted
from windowing.crash import crashpoint
from windowing.ledger.history import LedgerHistory
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.merge.rule import REVISIONS, Target, output_table
from windowing.revisions.rule import find_version_at, list_versions_of_runs
from windowing.rows import write_json
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta, delta_log, own_tables, upkeep
from windowing.storage.control import TableError, errors_explained, open_version
from windowing.storage.kept_open import newest_version, read_commit_text
from windowing.storage.logged_commit import LoggedCommit, read_commit
from windowing.storage.own_tables import Once
from windowing.storage.store import store_of
from windowing.storage.table_properties import CHANGE_FEED, is_true

OUTPUT, IDENTITY, VERSION, CHANGE, VALUES, SINCE = (
    "__output",
    "__identity",
    "__version",
    "__change",
    "__values",
    "__since",
)
DELETED, INSERTED = "delete", "insert"
"""What a change did, or else it updated a row; unless it inserted one, `__values` are those before.

They are JSON.
"""
_UPDATED_TO = "update_postimage"
KEPT = "kept"
"""The change of a row that says from `__since` to `__version`, both included, all were kept."""


@dataclass(frozen=True)
class Recorded:
    """What is recorded of an output: `changes`, and the rows that it has now, in the same columns.

    A version before `first` may have changed rows without a record.
    """

    changes: DataFrame
    newest: DataFrame
    first: int


@dataclass(frozen=True)
class _Versions:
    """Versions of an output from `first` to `last`, both included; none where `first` is greater.

    `changed` is the last of them that has changed rows; -1 where none has.
    """

    first: int
    last: int
    changed: int = -1


def read_recorded(spark: SparkSession, pipeline: Pipeline, window: str) -> Recorded:
    """All that is recorded of how the output of a window has changed.

    -> [keys, window_start, window_end, __identity, __version, __change, __values]
    """
    target = output_table(pipeline, pipeline.window(window))
    snapshot = own_tables.open_snapshot(target.path)
    kept = own_tables.find(spark, pipeline.table(REVISIONS), own_tables.EVERY_ROW)
    ranges = _list_kept(kept).get(window, [])
    fresh = _find_fresh(spark, target, snapshot.version, ranges)
    newest = _describe_rows(own_tables.read_snapshot(spark, snapshot), target)
    changes = newest.limit(0)
    if kept is not None:
        of_window = (F.col(OUTPUT) == window) & (F.col(CHANGE) != KEPT)
        changes = changes.unionByName(kept.where(of_window).drop(OUTPUT, SINCE))
    if fresh.first <= fresh.last:
        changes = changes.unionByName(_read_changes(spark, target, fresh))
    return Recorded(changes, newest, _find_first(ranges, fresh.first))


def keep_revisions(spark: SparkSession, pipeline: Pipeline) -> None:
    """Keeps what the change feeds of all outputs tell, because older files are to be deleted.

    Each output's changes are appended in one commit, and once, however often this is repeated.
    Rows that a run has inserted are left out: an output contains them, or they were changed later,
    and they name that run.
    """
    path, past = pipeline.table(REVISIONS), read_history(pipeline)
    kept = _list_kept(own_tables.find(spark, path, own_tables.EVERY_ROW))
    for window in pipeline.windows:
        target = output_table(pipeline, window)
        newest = newest_version(target.path)
        fresh = _find_fresh(spark, target, newest, kept.get(window.name, []))
        # A commit that only moved rows to other files needs no record.
        if fresh.first > fresh.changed:
            continue
        is_known = F.lit(False)
        for first, last in list_versions_of_runs(past, window.name):
            is_known = is_known | F.col(VERSION).between(first, last)
        is_left_out = (F.col(CHANGE) == INSERTED) & is_known
        changes = _read_changes(spark, target, fresh).where(~is_left_out)
        rows = changes.withColumn(OUTPUT, F.lit(window.name))
        rows = rows.withColumn(SINCE, F.lit(None).cast("bigint"))
        noted = _note_range(spark, rows.schema, window.name, fresh)
        after = Once(path, window.name, fresh.last)
        own_tables.append(rows.unionByName(noted), after, START, None)


def forget_revisions(
    spark: SparkSession, pipeline: Pipeline, past: LedgerHistory, until_us: int
) -> int:
    """Deletes what rows were before a change that a step has made which had ended by then.

    What was changed later is told on, also of the same row. Returns how many changes were deleted.
    """
    path = pipeline.table(REVISIONS)
    stored = own_tables.find(spark, path, own_tables.EVERY_ROW)
    kept = _list_kept(stored)
    if stored is None or not kept:
        return 0
    found = {window: find_version_at(past, window, until_us) for window in kept}
    last = _of_output(found)
    is_range = F.col(CHANGE) == KEPT
    if any(first <= min(end, found[window]) for window in kept for first, end in kept[window]):
        # What is told begins later before it is deleted, wherever this is killed.
        begin = F.least(F.col(VERSION), last) + 1
        upkeep.update_rows(spark, path, is_range & (F.col(SINCE) < begin), {quoted(SINCE): begin})
        crashpoint("maintain.expired")
    # The newest range says how far the change feed was kept.
    newest = _of_output({window: ranges[-1][1] for window, ranges in kept.items()})
    forgotten = (F.col(VERSION) <= last) & ~(is_range & (F.col(VERSION) == newest))
    rows = stored.where(forgotten)
    deleted = rows.where(~is_range).count()
    if not rows.isEmpty():
        upkeep.delete_where(spark, path, forgotten)
        crashpoint("maintain.expired")
    return deleted


def _of_output(versions: Mapping[str, int]) -> Column:
    """The version of the output that a row is of."""
    return F.coalesce(*(F.when(F.col(OUTPUT) == name, each) for name, each in versions.items()))


def pass_over_revisions(spark: SparkSession, pipeline: Pipeline) -> None:
    """Notes that the newest changes of outputs were not to be kept, such as those of an erasure.

    There is no gap in what is recorded of all other rows.
    """
    path = pipeline.table(REVISIONS)
    stored = own_tables.find(spark, path, own_tables.EVERY_ROW)
    if stored is None:
        return
    kept = _list_kept(stored)
    for window in pipeline.windows:
        newest = newest_version(output_table(pipeline, window).path)
        ranges = kept.get(window.name, [])
        if ranges and ranges[-1][1] < newest:
            passed = _Versions(ranges[-1][1] + 1, newest)
            noted = _note_range(spark, stored.schema, window.name, passed)
            own_tables.append(noted, Once(path, window.name, newest), START, 1)


def _note_range(
    spark: SparkSession, columns: T.StructType, window: str, kept: _Versions
) -> DataFrame:
    """The row that says which versions were kept."""
    told = {OUTPUT: window, CHANGE: KEPT, SINCE: kept.first, VERSION: kept.last}
    return delta.typed_rows(spark, [told], columns)


def _list_kept(stored: DataFrame | None) -> Mapping[str, list[tuple[int, int]]]:
    """By output the ranges of versions, both ends included, whose changes were kept; in order."""
    kept: dict[str, list[tuple[int, int]]] = {}
    if stored is not None:
        noted = stored.where(F.col(CHANGE) == KEPT).select(OUTPUT, SINCE, VERSION)
        for window, first, last in sorted(noted.collect()):
            kept.setdefault(window, []).append((first, last))
    return kept


def _find_fresh(
    spark: SparkSession, target: Target, newest: int, kept: Sequence[tuple[int, int]]
) -> _Versions:
    """The versions of an output up to the `newest` whose changes can be read and were not kept.

    They begin behind a commit or a file that was deleted, behind the last change of the columns,
    and behind a version that recorded no change feed.
    """
    if not is_true(delta_log.setting(spark, target.path, CHANGE_FEED)):
        return _Versions(newest + 1, newest)
    return _find_told(target, newest, kept[-1][1] if kept else -1)


def _find_told(target: Target, newest: int, kept_until: int) -> _Versions:
    """The same where the `newest` version records a change feed."""
    files = store_of(target.path).list_files(target.path).keys()
    first, changed = newest + 1, -1
    told_since = newest + 1
    columns_since: tuple[int, str] | None = None
    for version in range(newest, -1, -1):
        if version <= kept_until and columns_since is None:
            break
        text = read_commit_text(target.path, version)
        if text is None:
            break
        commit = read_commit(text)
        telling = _list_telling(commit)
        if version > kept_until and not files >= set(telling):
            break
        if commit.settings is not None:
            if not commit.settings.has_feed:
                # It holds until the feed was switched on.
                first = max(first, told_since)
                break
            told_since = version
            columns = commit.settings.columns
            if columns_since is not None and columns != columns_since[1]:
                # Spark reads the changes of one version, and those after it, as one set of columns.
                return _Versions(columns_since[0], newest, changed)
            columns_since = (version, columns) if version > kept_until else None
        if version > kept_until:
            first = version
            if telling and changed < 0:
                changed = version
    if first > 0 and columns_since is not None:
        since, columns = columns_since
        # A commit behind a log that is not whole may have set other things than columns.
        if since > first and not _had_columns(target.path, first, columns):
            first = since
    return _Versions(first, newest, changed if changed >= first else -1)


def _had_columns(path: Location, version: int, columns: str) -> bool:
    """Whether a version had these columns, as a log has them; False where that is not known."""
    try:
        with errors_explained(path):
            found = open_version(path, version).schema().to_json()
    except TableError:
        return False
    return bool(json.loads(found) == json.loads(columns))


def _list_telling(commit: LoggedCommit) -> list[str]:
    """The files that tell the changes of a commit; none where it has changed no row."""
    return [file.path for file in commit.feed or (*commit.added, *commit.removed)]


def _find_first(kept: Sequence[tuple[int, int]], fresh: int) -> int:
    """The first of the versions since which every change is recorded, `fresh` ones included."""
    first = fresh
    for since, until in reversed(kept):
        if until + 1 < first:
            break
        first = since
    return first


def _read_changes(spark: SparkSession, target: Target, fresh: _Versions) -> DataFrame:
    feed = delta.read_changes(spark, target.path, fresh.first, fresh.last)
    told = feed.where(F.col("_change_type") != _UPDATED_TO)
    return _describe_rows(told, target, "_commit_version", "_change_type")


def _describe_rows(
    rows: DataFrame,
    target: Target,
    version: str = "cast(null as bigint)",
    change: str = "cast(null as string)",
) -> DataFrame:
    """Each row with what identifies it, and with its other values, as JSON."""
    bounds = (START, END)
    keys = [name for name in target.identity if name not in (*bounds, INDEX)]
    others = [name for name in target.columns if name not in target.identity]
    return rows.select(
        *(quoted(name) for name in (*keys, *bounds)),
        write_json(rows, target.identity).alias(IDENTITY),
        F.expr(version).alias(VERSION),
        F.expr(change).alias(CHANGE),
        write_json(rows, [name for name in others if name in rows.columns]).alias(VALUES),
    )
