"""What rows of outputs were before they changed: from the change feed, and kept when that goes.

change feed of an output -> changes[keys, window_start, window_end, __identity, __version, __change,
__values]
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import END, INDEX, START, quoted
from windowing.ledger.table import read_history
from windowing.merge.rule import REVISIONS, Target, output_table
from windowing.revisions.rule import list_versions_of_runs
from windowing.spec.pipeline import Pipeline
from windowing.storage import change_feed, own_tables
from windowing.storage.change_feed import Reach
from windowing.storage.own_tables import Once

OUTPUT, IDENTITY, VERSION, CHANGE, VALUES, SINCE = (
    "__output",
    "__identity",
    "__version",
    "__change",
    "__values",
    "__since",
)
UPDATED, DELETED, INSERTED = "update_preimage", "delete", "insert"
"""What a change did; of the first two `__values` are those before it, as JSON."""
_UPDATED_TO = "update_postimage"
_KEPT = "kept"
"""The change of a row that says from `__since` to `__version`, both included, all were kept."""


@dataclass(frozen=True)
class Recorded:
    """What is recorded of an output: `changes`, and its `newest` rows in the same columns.

    A version before `first` may have changed rows without a record.
    """

    changes: DataFrame
    newest: DataFrame
    first: int


def read_recorded(spark: SparkSession, pipeline: Pipeline, window: str) -> Recorded:
    """All that is recorded of how the output of a window has changed.

    -> [keys, window_start, window_end, __identity, __version, __change, __values]
    """
    target = output_table(pipeline, pipeline.window(window))
    snapshot = own_tables.open_snapshot(target.path)
    kept = own_tables.find(spark, pipeline.table(REVISIONS), own_tables.EVERY_ROW)
    ranges = _list_kept_ranges(kept, window)
    fresh = _find_fresh(target, snapshot.version, ranges)
    newest = _describe_rows(own_tables.read_snapshot(spark, snapshot), target)
    changes = newest.limit(0)
    if kept is not None:
        of_window = (F.col(OUTPUT) == window) & (F.col(CHANGE) != _KEPT)
        changes = changes.unionByName(kept.where(of_window).drop(OUTPUT, SINCE))
    if fresh.first <= fresh.newest:
        changes = changes.unionByName(_read_changes(spark, target, fresh))
    return Recorded(changes, newest, _find_first(ranges, fresh.first))


def keep_revisions(spark: SparkSession, pipeline: Pipeline) -> None:
    """Keeps what the change feeds of all outputs tell, because older files are to be deleted.

    Each output's changes are appended in one commit, and once, however often this is repeated.
    Rows that a run has inserted are left out: an output contains them, or they were changed later,
    and they name that run.
    """
    path, past = pipeline.table(REVISIONS), read_history(pipeline)
    for window in pipeline.windows:
        target = output_table(pipeline, window)
        newest = own_tables.version(target.path)
        kept = own_tables.find(spark, path, own_tables.EVERY_ROW)
        fresh = _find_fresh(target, newest, _list_kept_ranges(kept, window.name))
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
        own_tables.append(
            rows.unionByName(noted), Once(path, window.name, fresh.newest), START, None
        )


def pass_over_revisions(spark: SparkSession, pipeline: Pipeline) -> None:
    """Notes that the newest changes of outputs were not to be kept, such as those of an erasure.

    There is no gap in what is recorded of all other rows.
    """
    path = pipeline.table(REVISIONS)
    kept = own_tables.find(spark, path, own_tables.EVERY_ROW)
    if kept is None:
        return
    for window in pipeline.windows:
        newest = own_tables.version(output_table(pipeline, window).path)
        ranges = _list_kept_ranges(kept, window.name)
        if ranges and ranges[-1][1] < newest:
            noted = _note_range(spark, kept.schema, window.name, Reach(ranges[-1][1] + 1, newest))
            own_tables.append(noted, Once(path, window.name, newest), START, 1)


def _note_range(spark: SparkSession, columns: T.StructType, window: str, kept: Reach) -> DataFrame:
    """The row that says which versions were kept."""
    told = {OUTPUT: window, CHANGE: _KEPT, SINCE: kept.first, VERSION: kept.newest}
    values = tuple(told.get(name) for name in columns.fieldNames())
    return spark.createDataFrame([values], columns)


def _list_kept_ranges(kept: DataFrame | None, window: str) -> list[tuple[int, int]]:
    """The ranges of versions, both ends included, whose changes were kept; in order."""
    if kept is None:
        return []
    noted = kept.where((F.col(OUTPUT) == window) & (F.col(CHANGE) == _KEPT))
    return sorted((row[SINCE], row[VERSION]) for row in noted.select(SINCE, VERSION).collect())


def _find_fresh(target: Target, newest: int, kept: Sequence[tuple[int, int]]) -> Reach:
    """The versions whose changes can be read and were not kept."""
    reach = change_feed.find_reach(target.path, newest)
    return replace(reach, first=max(reach.first, kept[-1][1] + 1 if kept else 0))


def _find_first(kept: Sequence[tuple[int, int]], fresh: int) -> int:
    """The first of the versions since which every change is recorded, `fresh` ones included."""
    first = fresh
    for since, until in reversed(kept):
        if until + 1 < first:
            break
        first = since
    return first


def _read_changes(spark: SparkSession, target: Target, reach: Reach) -> DataFrame:
    feed = change_feed.read_feed(spark, target.path, reach)
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
        _write_json(target.identity).alias(IDENTITY),
        F.expr(version).alias(VERSION),
        F.expr(change).alias(CHANGE),
        _write_json([name for name in others if name in rows.columns]).alias(VALUES),
    )


def _write_json(columns: Sequence[str]) -> Column:
    fields = F.struct(*(quoted(name) for name in columns))
    return F.to_json(fields, {"ignoreNullFields": "false"})
