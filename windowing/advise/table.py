"""The events that a source has gained, commit by commit, by its log and its files.

log of the source -> `Arrival`s, newest first, as far as it reaches -> their rows -> `Reading`
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windowing.advise.arrow_rows import CollectedRows, find_nulls, to_numpy
from windowing.advise.ends import NEVER_US
from windowing.advise.files import check_columns, check_groups, find_time_column, read_files
from windowing.advise.history import UNKNOWN_US, Batches
from windowing.advise.reading import Asked, LeftOut, Reading
from windowing.columns import TIME, quoted
from windowing.errors import SourceMissing
from windowing.grid.boundaries import find_instants
from windowing.location import Location
from windowing.source.arrivals import Arrival, list_removed, read_arrival
from windowing.source.frame import NAIVE, read_event_time, shape_rows
from windowing.source.table import checked_schema
from windowing.source.upstream import describe_missing
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta, delta_log
from windowing.storage.kept_open import newest_version, read_commit_text
from windowing.storage.store import store_of
from windowing.storage.table_figures import list_file_figures

MOST_COMMITS = 20_000
"""How many commits are looked at, the newest ones."""
_VACUUMED = "VACUUM has removed their files"
_REWRITES = "they also changed or removed rows, and recorded no change feed"
_UNTIMED = "they have no time"
_WHOLE = "that is the whole history of the table"
_FEED = "their change feed can't be read together with computed columns"


@dataclass(frozen=True)
class _Log:
    """Commits that brought rows, oldest first, why there are no older ones, and removed files.

    `cut_by` is the option that leaves out older ones, if one does. `removed_by` has the version
    that removed a file, by its path.
    """

    table: Location
    arrivals: tuple[Arrival, ...]
    reach: str
    cut_by: str | None
    removed_by: Mapping[str, int]


def read_events(pipeline: Pipeline, asked: Asked) -> Reading:
    """The newest events of the source, and in which commit each arrived, without Spark.

    Raises SourceMissing where there is no table, NeedsSpark where Spark alone can read it,
    SpecError where its columns do not fit, and UsageError where events happen when they arrive or
    `by` names no column.
    """
    source = pipeline.source
    if not source.table.is_in_catalog and newest_version(source.table) < 0:
        raise SourceMissing(describe_missing(pipeline))
    time = find_time_column(pipeline, asked)
    log = _list_arrivals(source.table, time.name, asked)
    rows = CollectedRows(source.key, asked.by, source.event_id, source.zone)
    left_out: dict[int, str] = {}
    timed = [arrival for arrival in log.arrivals if arrival.at_us is not None]
    for batch, arrival in enumerate(timed):
        if not read_files(rows, time, source.table, batch, arrival):
            left_out[arrival.version] = _VACUUMED
    return _finish(log, timed, rows, left_out, time.name)


def read_events_by_spark(spark: SparkSession, pipeline: Pipeline, asked: Asked) -> Reading:
    """`read_events` for any source, whose rows Spark reads.

    Rows that were deleted since and whose files are marked are not among them. Raises SourceMissing
    and SpecError as a run does, and UsageError where `by` names no column that makes groups.
    """
    source = pipeline.source
    fields = checked_schema(spark, pipeline).fields
    types = {field.name: field.dataType.jsonValue() for field in fields}
    check_columns(pipeline, types)
    check_groups(asked, types)
    column = source.event_time.column or ""
    log = _list_arrivals(delta_log.home(spark, source.table), column, asked)
    rows = CollectedRows(source.key, asked.by, source.event_id, source.zone)
    timed = [arrival for arrival in log.arrivals if arrival.at_us is not None]
    deleted = _find_deleted(log)
    left_out = {
        each.version: _VACUUMED
        for each in timed
        if not deleted.isdisjoint(file.path for file in each.files)
    }
    left_out |= {each.version: _FEED for each in timed if any(f.inserts_only for f in each.files)}
    batches = {
        file.path.rpartition("/")[2]: batch
        for batch, arrival in enumerate(timed)
        for file in arrival.files
        if arrival.version not in left_out
    }
    for version, names in _group_by_version(log, batches).items():
        stored = delta.read(spark, source.table, version)
        _collect(rows, _select(stored, pipeline, rows, names), batches)
    return _finish(log, timed, rows, left_out, column)


def _find_deleted(log: _Log) -> set[str]:
    """The paths of removed files that are not there any more."""
    # Those with an address of their own are files of another table.
    own = {path for path in log.removed_by if ":/" not in path}
    return own - store_of(log.table).list_files(log.table).keys() if own else own


def _group_by_version(log: _Log, wanted: Iterable[str]) -> dict[int | None, list[str]]:
    """The names of files by a version that has them; None is the newest one."""
    removed = {path.rpartition("/")[2]: version for path, version in log.removed_by.items()}
    found: dict[int | None, list[str]] = {}
    for name in wanted:
        version = removed.get(name)
        found.setdefault(None if version is None else version - 1, []).append(name)
    return found


_FILE = "__file"


def _select(
    stored: DataFrame, pipeline: Pipeline, rows: CollectedRows, names: Sequence[str]
) -> DataFrame:
    """The events of some files with event time, name of the file and the columns that count."""
    named = stored.withColumn(_FILE, F.col("_metadata.file_name"))
    chosen = named.where(F.col(_FILE).isin(*names))
    timed = read_event_time(shape_rows(chosen, pipeline), pipeline)
    texts = [F.col(quoted(name)).cast("string").alias(name) for name in rows.texts]
    return timed.select(TIME, NAIVE, _FILE, *texts)


def _collect(rows: CollectedRows, events: DataFrame, batches: Mapping[str, int]) -> None:
    found: pa.Table = events.toArrow()
    time, naive = found.column(TIME), found.column(NAIVE)
    instants, on_clock = find_instants(rows.zone, to_numpy(pc.fill_null(naive, 0)))
    is_naive = ~find_nulls(naive)
    times = np.where(is_naive, instants, to_numpy(pc.fill_null(time, 0)))
    known = np.where(is_naive, on_clock, ~find_nulls(time))
    batch = np.array([batches[name] for name in found.column(_FILE).to_pylist()], np.int64)
    rows.add(batch, times, known, {name: found.column(name) for name in rows.texts})


def _finish(
    log: _Log,
    timed: Sequence[Arrival],
    rows: CollectedRows,
    left_out: Mapping[int, str],
    column: str,
) -> Reading:
    events, keys, groups = rows.number_rows()
    unread = _explain_unread(log.arrivals, left_out)
    batches = _batch(timed, _find_high(log, timed, column), unread)
    return Reading(
        log.arrivals[0].version if log.arrivals else 0,
        log.arrivals[-1].version if log.arrivals else 0,
        batches,
        events,
        keys,
        groups,
        rows.invalid,
        tuple(_sum_left_out(log.arrivals, unread)),
        log.reach,
        log.cut_by,
        _find_complete(log, timed, batches, unread),
    )


def _list_arrivals(table: Location, column: str, asked: Asked) -> _Log:
    found: list[Arrival] = []
    removed: dict[str, int] = {}
    reach, cut_by = _WHOLE, None
    rows = 0
    newest = newest_version(table)
    for version in range(newest, -1, -1):
        text = read_commit_text(table, version)
        if text is None:
            reach = f"the log has no commits before version {version + 1}"
            break
        removed |= dict.fromkeys(list_removed(text), version)
        arrival = read_arrival(version, text, column)
        if arrival is None:
            continue
        if _is_before(arrival, asked.since_us):
            reach, cut_by = "--since leaves out older commits", "--since"
            break
        rows += arrival.rows or 0
        if found and rows > asked.rows:
            reach, cut_by = f"older commits are beyond the limit of --rows {asked.rows}", "--rows"
            break
        if found and newest - version >= MOST_COMMITS:
            reach = f"older commits are beyond the limit of {MOST_COMMITS:,} commits"
            break
        found.append(arrival)
    return _Log(table, tuple(reversed(found)), reach, cut_by, removed)


def _is_before(arrival: Arrival, since_us: int | None) -> bool:
    """Whether a commit is known to be older than asked for. One without a time tells nothing."""
    return since_us is not None and arrival.at_us is not None and arrival.at_us < since_us


def _explain_unread(arrivals: Sequence[Arrival], left_out: Mapping[int, str]) -> dict[int, str]:
    """By version why the rows of a commit were not read."""
    unread = dict(left_out)
    for arrival in arrivals:
        if arrival.at_us is None:
            unread[arrival.version] = _UNTIMED
        elif arrival.rewrites:
            unread[arrival.version] = _REWRITES
    return unread


def _find_complete(
    log: _Log, timed: Sequence[Arrival], batches: Batches, unread: Container[int]
) -> int | None:
    """From when on all that arrived was read; None where that is the whole history.

    A commit without a time arrived before the next one that has a time.
    """
    versions = [each.version for each in timed]
    arrived: dict[int, int] = dict(zip(versions, batches.arrived_us.tolist(), strict=True))
    complete = None if log.reach == _WHOLE else min(arrived.values(), default=None)
    next_us: int = NEVER_US
    for arrival in reversed(log.arrivals):
        next_us = arrived.get(arrival.version, next_us)
        if arrival.version in unread:
            return next_us if complete is None else max(complete, next_us)
    return complete


def _sum_left_out(arrivals: Sequence[Arrival], unread: Mapping[int, str]) -> Iterable[LeftOut]:
    """The commits that were left out, by reason."""
    reasons: dict[str, list[Arrival]] = {}
    for arrival in arrivals:
        reason = unread.get(arrival.version)
        if reason is not None:
            reasons.setdefault(reason, []).append(arrival)
    for reason, those in reasons.items():
        counts = [arrival.rows for arrival in those if arrival.rows is not None]
        yield LeftOut(len(those), sum(counts) if len(counts) == len(those) else None, reason)


def _batch(timed: Sequence[Arrival], before_us: int, unread: Container[int]) -> Batches:
    """The batches of the commits; what arrived before the first one reached `before_us`.

    The log's highest times are those of commits that were not read: they may be of rows that are no
    events.
    """
    at = np.array([arrival.at_us or 0 for arrival in timed], np.int64)
    highs = []
    for arrival in timed:
        known = arrival.high_us if arrival.version in unread else None
        highs.append(UNKNOWN_US if known is None else known)
    high = np.array(highs, np.int64)
    high[:1] = np.maximum(high[:1], before_us)
    # The clocks of several writers need not agree.
    return Batches(np.maximum.accumulate(at), high)


def _find_high(log: _Log, timed: Sequence[Arrival], column: str) -> int:
    """The highest event time that the table had with the first of the commits, by its log."""
    if not timed or timed[0].version == 0:
        return UNKNOWN_US
    figures = list_file_figures(log.table, timed[0].version, column).values()
    return max((each.high_us for each in figures if each.high_us is not None), default=UNKNOWN_US)
