"""Reads rows of an output, refused rows and state, for the commands `show`, `late` and `state`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.diagnosis.spec_changes import check_columns, list_changed_names
from jobs.foreign_errors.source_errors import FILE_GONE
from jobs.read import explain_missing, published_entry, whole_of
from jobs.sessions.exact_session import in_exact_session
from windowing.admit.digest import EMPTIED
from windowing.admit.outcomes import REFUSED
from windowing.columns import (
    BATCH,
    DIGEST,
    END,
    EVENT_TIME,
    FIRST,
    INDEX,
    PANE,
    RUN,
    START,
    kept_name,
)
from windowing.errors import UsageError
from windowing.grid.frame import instant
from windowing.grid.zone import micros
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import CLOSE, FINISHED
from windowing.ledger.table import read_history
from windowing.panes.rule import state_names, state_of
from windowing.report.frame import records
from windowing.report.rows import NO_ROWS, Refused, Rows, Seen, StateTable, Version
from windowing.rows import column_named
from windowing.source.table import literal
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta, own_tables
from windowing.storage.kept_open import has_commit, newest_version
from windowing.storage.spark_internals import SPARK_ERRORS
from windowing.windows.finality import with_finality

PUBLISHED = "published"
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
Keys = Mapping[str, tuple[str, ...]]
"""For each key column the values that match, any of them; a column left out matches every value."""


@dataclass(frozen=True)
class Wanted:
    """Which rows to return: those of `keys` that lie in or overlap [start, end), at most `limit`.

    They are in order of time, oldest first unless `newest_first`.
    """

    keys: Keys = field(default_factory=dict)
    start: datetime | None = None
    end: datetime | None = None
    newest_first: bool = False
    limit: int = 20


@in_exact_session
def show_windows(
    spark: SparkSession,
    pipeline: Pipeline,
    window: Window,
    wanted: Wanted,
    *,
    published: bool,
    as_of: str | None,
) -> Seen:
    """The wanted rows of an output, with `is_closed` and `is_final` as of the version that is read.

    Reads the newest version, the published one, or with `as_of` the one of a run ("3") or of the
    table ("v7"). The result is empty before a run has made the output. Raises UsageError for a run
    or version that isn't there or has been removed, and with `published` before anything was
    published, and StateRefused where the table was lost.
    """
    past = read_history(pipeline)
    path = pipeline.table(window.name)
    changed = list_changed_names(pipeline, past)
    missing = explain_missing(pipeline, window.name, past)
    if missing is not None:
        return Seen(missing=missing, changed=changed)
    if as_of is not None:
        past, number = _find_as_of(past, pipeline, window, as_of)
    elif published:
        number = published_entry(pipeline, past, window.name).versions[window.name]
    else:
        number = newest_version(path)
    run = past.run_shown(window.name) if published else past.last_run or None
    watermark_us = past.watermark_of(run) if published else past.watermark
    versions = _find_versions(past, window, number)
    with removal_explained(window.name, PUBLISHED if published else as_of):
        rows = delta.read(spark, path, number)
        check_columns(pipeline, past, window, rows.columns)
        complete = whole_of(spark, pipeline, window.name, versions)
        rows = with_finality(rows, pipeline, window.name, watermark_us, complete)
        version = Version(number, run, watermark_us)
        return Seen(choose_rows(rows, pipeline, wanted), version, changed=changed)


def _find_versions(past: LedgerHistory, window: Window, number: int) -> Mapping[str, int] | None:
    """The versions of all tables when the output had version `number`; None for the newest."""
    for entry in reversed(past.entries):
        if entry.versions.get(window.name) == number:
            return entry.versions
    return None


def _find_as_of(
    past: LedgerHistory, pipeline: Pipeline, window: Window, text: str
) -> tuple[LedgerHistory, int]:
    """The ledger until the run or version that `text` names, and the version of the output then.

    `text` is the number of a run, or the number of a version after a "v".
    """
    if text.startswith("v"):
        return _find_as_of_version(past, pipeline, window, int(text[1:]))
    then = past.until_run(_parse_finished_run(past, text))
    version = then.entries[-1].versions.get(window.name)
    if version is None:
        first = tell_first_run(past, window)
        raise UsageError(f"--as-of: {window.name} did not exist in run {text}; {first}")
    return then, version


def tell_first_run(past: LedgerHistory, window: Window) -> str:
    """Which run was the first to leave the output."""
    for entry in past.entries:
        if entry.step == CLOSE and window.name in entry.versions:
            return f"it was added by run {entry.run}"
    return "no run that has finished has added it"


def _find_as_of_version(
    past: LedgerHistory, pipeline: Pipeline, window: Window, number: int
) -> tuple[LedgerHistory, int]:
    newest = newest_version(pipeline.table(window.name))
    if number > newest:
        raise UsageError(f"--as-of: {window.name} has the versions 0 to {newest}, not {number}")
    last_seq = None
    for entry in past.entries:
        version = entry.versions.get(window.name)
        if entry.step in FINISHED and version is not None and version <= number:
            last_seq = entry.seq
    if last_seq is None:
        return LedgerHistory(()), number
    return past.until_step(last_seq), number


def _parse_finished_run(past: LedgerHistory, text: str) -> int:
    """The number of the finished run that `text` names."""
    runs = [e.run for e in past.entries if e.step == CLOSE and e.run is not None]
    if not _NUMBER.fullmatch(text) or int(text) not in runs:
        known = f"finished runs are 1 to {max(runs)}" if runs else "no run has finished yet"
        raise UsageError(f"--as-of: run {text} was not found; {known}")
    return int(text)


def _read_as_of(
    spark: SparkSession, pipeline: Pipeline, table: str, as_of: str | None
) -> DataFrame | None:
    """A table of refused rows or state, newest or as of a run; None where it did not exist.

    Its rows are read later, so the caller explains where they have been removed.
    """
    path = pipeline.table(table)
    if as_of is None:
        return own_tables.find(spark, path)
    past = read_history(pipeline)
    then = past.until_run(_parse_finished_run(past, as_of))
    version = then.entries[-1].versions.get(table)
    return None if version is None else delta.read(spark, path, version)


@contextmanager
def removal_explained(table: str, asked: str | None) -> Iterator[None]:
    """UsageError where the version of `table` that was `asked` for can't be read any more.

    It is the published one, or the one that `--as-of` names. Maintenance deletes old commits and
    files, and an erasure all files of older versions. Such a file is missed only when rows are
    collected. The newest version (None) is never removed.
    """
    try:
        yield
    except SPARK_ERRORS as error:
        if asked is None:
            raise
        if isinstance(error, AnalysisException):
            cause = f"(log retention): {delta.reason(error)}"
        elif FILE_GONE in str(error):
            cause = "(its files were deleted by maintenance or an erasure)"
        else:
            raise
        if asked == PUBLISHED:
            raise UsageError(
                f"--published: the published version of {table} has been removed {cause}; "
                "run `tidemark validate`, then `tidemark publish`"
            ) from error
        which = f"the version of {table} written by run {asked}"
        if asked.startswith("v"):
            which = f"version {asked[1:]} of {table}"
        raise UsageError(
            f"--as-of: {which} has been removed {cause}; name a later one, or leave out --as-of"
        ) from error


def choose_rows(output: DataFrame, pipeline: Pipeline, wanted: Wanted) -> Rows:
    """The rows of an output that are wanted, in order of window and key.

    output[keys, window_start, window_end, ...] -> Rows. A window matches when it overlaps [start,
    end), and a window without bounds overlaps every range.
    """
    rows = select_windows(output, wanted)
    order = [START, END]
    if INDEX in output.columns:
        order.append(INDEX)
    return collect_in_order(rows, [*order, *pipeline.source.key], wanted)


def select_windows(output: DataFrame, wanted: Wanted) -> DataFrame:
    """The rows of an output whose key and window are wanted; raises as `of_keys` does."""
    rows = of_keys(output, wanted.keys)
    if wanted.start is not None:
        ends_after = F.col(END) > instant(micros(wanted.start))
        rows = rows.where(F.col(END).isNull() | ends_after)
    if wanted.end is not None:
        begins_before = F.col(START) < instant(micros(wanted.end))
        rows = rows.where(F.col(START).isNull() | begins_before)
    return rows


def collect_in_order(rows: DataFrame, columns: Iterable[str], wanted: Wanted) -> Rows:
    """The first rows in the order of `columns`, and the number of all."""
    order = [column_named(c) for c in columns]
    if wanted.newest_first:
        order = [column.desc() for column in order]
    first = records(rows.orderBy(*order), wanted.limit)
    return Rows(tuple(rows.columns), tuple(first), rows.count())


def _select_rows_during(rows: DataFrame, column: str, wanted: Wanted) -> DataFrame:
    """The rows of the wanted keys whose `column` lies in [start, end)."""
    found = of_keys(rows, wanted.keys)
    if wanted.start is not None:
        found = found.where(F.col(column) >= instant(micros(wanted.start)))
    if wanted.end is not None:
        found = found.where(F.col(column) < instant(micros(wanted.end)))
    return found


def of_keys(rows: DataFrame, keys: Keys) -> DataFrame:
    """The rows of `keys`. Raises UsageError where a value can't be one of its column."""
    for column, values in keys.items():
        kind = rows.schema[column].dataType
        literals = [literal(rows.sparkSession, "--key", column, kind, value) for value in values]
        rows = rows.where(column_named(column).isin(*literals))
    return rows


@in_exact_session
def show_refused(
    spark: SparkSession,
    pipeline: Pipeline,
    outcomes: tuple[str, ...],
    wanted: Wanted,
    as_of: str | None = None,
) -> Refused:
    """The wanted refused rows with one of `outcomes`, whole, in order of run and batch.

    [start, end) is a range of event time. `counts` has the number of all rows by outcome. With
    `as_of` the tables are read as that run left them; UsageError where it isn't a finished run.
    """
    counts = dict.fromkeys(outcomes, 0)
    rows: list[Mapping[str, Any]] = []
    # These tables rename a column of the source whose name they use themselves.
    kept_keys = {kept_name(column): values for column, values in wanted.keys.items()}
    wanted = replace(wanted, keys=kept_keys)
    tables = [table for table, its in REFUSED.items() if set(its) & set(outcomes)]
    for table in tables:
        with removal_explained(table, as_of):
            stored = _read_as_of(spark, pipeline, table, as_of)
            if stored is None:
                continue
            matching = _select_rows_during(_drop_emptied(stored), "event_time", wanted)
            matching = matching.where(F.col("outcome").isin(*outcomes))
            by_outcome = matching.groupBy("outcome").count().collect()
            counts |= {row["outcome"]: row["count"] for row in by_outcome}
            rows += collect_in_order(matching, (RUN, BATCH, "event_time"), wanted).rows
    ordered = sorted(rows, key=lambda row: (row[RUN], row[BATCH]), reverse=wanted.newest_first)
    return Refused(counts, tuple(ordered[: wanted.limit]))


def _drop_emptied(rows: DataFrame) -> DataFrame:
    """The refused rows whose values have not expired, without the columns that only expiry uses."""
    # `tidemark maintain` adds this column when it first empties rows of the table.
    if EMPTIED in rows.columns:
        rows = rows.where(F.col(EMPTIED).isNull())
    return rows.drop(EMPTIED, DIGEST)


@in_exact_session
def state_tables(spark: SparkSession, pipeline: Pipeline) -> tuple[StateTable, ...]:
    """The state tables that exist already, with their sizes and newest run."""
    found = []
    for table, windows in state_names(pipeline).items():
        if has_commit(pipeline.table(table)):
            found.append(_describe_state_table(spark, pipeline, table, windows))
    return tuple(found)


@in_exact_session
def show_partials(
    spark: SparkSession,
    pipeline: Pipeline,
    window: Window,
    wanted: Wanted,
    as_of: str | None = None,
) -> Rows:
    """The wanted rows of the state of `window`, in order of time; a sketch is shown as its length.

    [start, end) is a range of the start of panes, or of the event time of fragments and events.
    """
    table = state_of(pipeline, window)
    with removal_explained(table, as_of):
        found = _read_as_of(spark, pipeline, table, as_of)
        return NO_ROWS if found is None else _choose_partials(found, pipeline, wanted)


def _choose_partials(found: DataFrame, pipeline: Pipeline, wanted: Wanted) -> Rows:
    time = next(c for c in (PANE, FIRST, EVENT_TIME) if c in found.columns)
    rows = _select_rows_during(found, time, wanted)
    lengths = {}
    for column in rows.schema.fields:
        if isinstance(column.dataType, T.BinaryType):
            length = F.octet_length(f"`{column.name}`").cast("string")
            lengths[column.name] = F.concat(length, F.lit(" bytes"))
    return collect_in_order(rows.withColumns(lengths), (time, *pipeline.source.key), wanted)


def _describe_state_table(
    spark: SparkSession, pipeline: Pipeline, table: str, windows: tuple[str, ...]
) -> StateTable:
    path = pipeline.table(table)
    files, size = own_tables.size(spark, path)
    rows = own_tables.read(spark, path)
    totals = rows.agg(F.count("*"), F.max(F.struct(RUN, BATCH))).first()
    if totals is None:
        raise UsageError(f"{path} can't be read as a Delta table")
    # The largest (run, batch) is null in a table without rows.
    newest_run, newest_batch = totals[1] or (None, None)
    return StateTable(table, windows, totals[0], files, size, newest_run, newest_batch)
