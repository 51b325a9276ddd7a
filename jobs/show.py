"""Looks at what a pipeline holds: rows of an output, refused rows, state. Reads only."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.preflight.exact_session import in_exact_session
from jobs.read import whole_of
from windowing import delta
from windowing.admit.digest import EMPTIED
from windowing.admit.table import REFUSED
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
from windowing.ledger.rule import CLOSE, FINISHED, Story
from windowing.ledger.table import story
from windowing.panes.rule import state_names, state_of
from windowing.report.frame import records
from windowing.report.rows import NO_ROWS, Refused, Rows, Seen, StateTable, Version
from windowing.source.table import literal
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.windows.finality import with_finality

_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
Keys = Mapping[str, tuple[str, ...]]
"""For each key column the values that are wanted, any of them; columns left out match all."""


@dataclass(frozen=True)
class Wanted:
    """Which rows of an output: those of `keys` whose window overlaps [start, end), oldest first or newest first."""

    keys: Keys = field(default_factory=dict)
    start: datetime | None = None
    end: datetime | None = None
    newest_first: bool = False
    limit: int = 20


@in_exact_session
def look(
    spark: SparkSession,
    pipeline: Pipeline,
    window: Window,
    wanted: Wanted,
    *,
    published: bool,
    as_of: str | None,
) -> Seen:
    """The rows of `window` that are wanted: newest, as published, or as of a run or version, with is_closed and is_final of that time.

    UsageError for a run or version that isn't there, and where nothing was published yet.
    """
    past = story(spark, pipeline)
    if not past.entries or not delta.exists(spark, pipeline.table(window.name)):
        return Seen()
    if as_of is not None:
        past, number = _at(spark, past, pipeline, window, as_of)
    else:
        number = (
            _published(past, pipeline, window)
            if published
            else delta.version(spark, pipeline.table(window.name))
        )
    run = past.published.run if published and past.published else past.last_run or None
    mark = past.watermark_of(run) if published else past.watermark
    versions = _versions(past, window, number)
    rows = delta.read(spark, pipeline.table(window.name), number)
    rows = with_finality(
        rows, pipeline, window.name, mark, whole_of(spark, pipeline, window.name, versions)
    )
    return Seen(chosen(rows, pipeline, wanted), Version(number, run, mark))


def _versions(past: Story, window: Window, number: int) -> Mapping[str, int] | None:
    """The versions of all tables when the output had version `number`; None for the newest."""
    return next(
        (e.versions for e in reversed(past.entries) if e.versions.get(window.name) == number), None
    )


def _published(past: Story, pipeline: Pipeline, window: Window) -> int:
    if past.published is None or window.name not in past.published.versions:
        raise UsageError(
            f"{pipeline.name}: {window.name} is not published yet; `tidemark publish` does it after `tidemark validate`"
        )
    return past.published.versions[window.name]


def _at(
    spark: SparkSession, past: Story, pipeline: Pipeline, window: Window, text: str
) -> tuple[Story, int]:
    """The story until `text`, which is a run's number or v and a version's, and the version of the output then."""
    if not text.startswith("v"):
        then = past.until_run(_run(past, text))
        version = then.entries[-1].versions.get(window.name)
        if version is None:
            first = next(
                (e.run for e in past.entries if e.step in FINISHED and window.name in e.versions),
                "a later one",
            )
            raise UsageError(
                f"--as-of: {window.name} was not there in run {text}; it came with run {first}"
            )
        return then, version
    newest, asked = delta.version(spark, pipeline.table(window.name)), int(text[1:])
    if asked > newest:
        raise UsageError(f"--as-of: {window.name} has the versions 0 to {newest}, not {asked}")
    steps = [
        e
        for e in past.entries
        if e.step in FINISHED and e.versions.get(window.name, asked + 1) <= asked
    ]
    return Story(tuple(e for e in past.entries if steps and e.seq <= steps[-1].seq)), asked


def _run(past: Story, text: str) -> int:
    """The finished run that `text` names."""
    runs = [e.run for e in past.entries if e.step == CLOSE and e.run is not None]
    if not _NUMBER.fullmatch(text) or int(text) not in runs:
        raise UsageError(
            f"--as-of: run {text} did not finish or never was; {f'runs 1 to {max(runs)} did' if runs else 'no run has'}"
        )
    return int(text)


def _then(
    spark: SparkSession, pipeline: Pipeline, table: str, as_of: str | None
) -> DataFrame | None:
    """An internal table, newest or as the run `as_of` left it; None where it was not there."""
    if as_of is None:
        return (
            delta.read(spark, pipeline.table(table))
            if delta.exists(spark, pipeline.table(table))
            else None
        )
    past = story(spark, pipeline)
    version = past.until_run(_run(past, as_of)).entries[-1].versions.get(table)
    try:
        return None if version is None else delta.read(spark, pipeline.table(table), version)
    except AnalysisException as error:
        raise UsageError(
            f"--as-of: {table} is not kept as run {as_of} left it any more: {delta.reason(error)}"
        ) from error


def chosen(output: DataFrame, pipeline: Pipeline, wanted: Wanted) -> Rows:
    """The rows of an output that are wanted, in order of window and key. output[keys, window_start, window_end, ...] -> Rows.

    A window without bounds overlaps every range.
    """
    rows = of_keys(output, wanted.keys)
    if wanted.start is not None:
        rows = rows.where(F.col(END).isNull() | (F.col(END) > instant(micros(wanted.start))))
    if wanted.end is not None:
        rows = rows.where(F.col(START).isNull() | (F.col(START) < instant(micros(wanted.end))))
    index = [INDEX] if INDEX in output.columns else []
    return _ordered(rows, [START, END, *index, *pipeline.source.key], wanted)


def _ordered(rows: DataFrame, columns: Iterable[str], wanted: Wanted) -> Rows:
    order = [F.col(f"`{c}`") for c in columns]
    return _first(rows, [c.desc() for c in order] if wanted.newest_first else order, wanted.limit)


def _during(rows: DataFrame, column: str, wanted: Wanted) -> DataFrame:
    """The rows of the wanted keys whose `column` lies in [start, end)."""
    found = of_keys(rows, wanted.keys)
    if wanted.start is not None:
        found = found.where(F.col(column) >= instant(micros(wanted.start)))
    return found if wanted.end is None else found.where(F.col(column) < instant(micros(wanted.end)))


def of_keys(rows: DataFrame, keys: Keys) -> DataFrame:
    """The rows of `keys`. UsageError where a value can't be one of its column."""
    for column, values in keys.items():
        kind = rows.schema[column].dataType
        rows = rows.where(
            F.col(f"`{column}`").isin(
                *(literal(rows.sparkSession, column, kind, value) for value in values)
            )
        )
    return rows


def _first(rows: DataFrame, order: Iterable[Column], limit: int) -> Rows:
    return Rows(tuple(rows.columns), tuple(records(rows.orderBy(*order), limit)), rows.count())


@in_exact_session
def refused(
    spark: SparkSession,
    pipeline: Pipeline,
    outcomes: tuple[str, ...],
    wanted: Wanted,
    as_of: str | None = None,
) -> Refused:
    """The rows with one of `outcomes` that are wanted, whole, in order of run; a range is one of event times."""
    counts = dict.fromkeys(outcomes, 0)
    rows: list[Mapping[str, Any]] = []
    keys = {kept_name(column): values for column, values in wanted.keys.items()}
    for table in (t for t, its in REFUSED.items() if set(its) & set(outcomes)):
        kept = _then(spark, pipeline, table, as_of)
        if kept is not None:
            kept = _during(_whole(kept), "event_time", replace(wanted, keys=keys)).where(
                F.col("outcome").isin(*outcomes)
            )
            counts |= {
                row["outcome"]: row["count"] for row in kept.groupBy("outcome").count().collect()
            }
            rows += _ordered(kept, (RUN, BATCH, "event_time"), wanted).rows
    ordered = sorted(rows, key=lambda row: (row[RUN], row[BATCH]), reverse=wanted.newest_first)
    return Refused(counts, tuple(ordered[: wanted.limit]))


def _whole(rows: DataFrame) -> DataFrame:
    """The refused rows that still say what they were."""
    whole = rows.where(F.col(EMPTIED).isNull()) if EMPTIED in rows.columns else rows
    return whole.drop(EMPTIED, DIGEST)


@in_exact_session
def state_tables(spark: SparkSession, pipeline: Pipeline) -> tuple[StateTable, ...]:
    """Every state table that there is already."""
    names = state_names(pipeline)
    return tuple(
        _state(spark, pipeline, t, windows)
        for t, windows in names.items()
        if delta.exists(spark, pipeline.table(t))
    )


@in_exact_session
def partials(
    spark: SparkSession,
    pipeline: Pipeline,
    window: Window,
    wanted: Wanted,
    as_of: str | None = None,
) -> Rows:
    """The wanted rows of the state `window` is made from, in order of time; sketches come as their length."""
    found = _then(spark, pipeline, state_of(pipeline, window), as_of)
    if found is None:
        return NO_ROWS
    time = next(c for c in (PANE, FIRST, EVENT_TIME) if c in found.columns)
    rows = _during(found, time, wanted)
    sketches = [f.name for f in rows.schema.fields if isinstance(f.dataType, T.BinaryType)]
    sized = rows.withColumns(
        {
            name: F.concat(F.octet_length(f"`{name}`").cast("string"), F.lit(" bytes"))
            for name in sketches
        }
    )
    return _ordered(sized, (time, *pipeline.source.key), wanted)


def _state(
    spark: SparkSession, pipeline: Pipeline, table: str, windows: tuple[str, ...]
) -> StateTable:
    path = pipeline.table(table)
    detail = DeltaTable.forPath(spark, path).detail().select("numFiles", "sizeInBytes").first()
    rows = delta.read(spark, path)
    newest = rows.agg(F.count("*"), F.max(F.struct(RUN, BATCH))).first()
    if detail is None or newest is None:
        raise UsageError(f"{path} can't be read as a Delta table")
    last = newest[1] or (None, None)
    return StateTable(table, windows, newest[0], int(detail[0]), int(detail[1]), last[0], last[1])
