"""The facts of the report page, read from a pipeline's tables.

They are runs, outputs, refused rows and quality. Nothing is written, and no value of a row is read.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windowing import delta
from windowing.admit.table import REFUSED
from windowing.ledger.nulls import read_null_counts
from windowing.ledger.rule import (
    BACKFILL_DONE,
    CLOSE,
    COUNTS,
    ERASE_DONE,
    EVOLVE_DONE,
    FINISHED,
    LedgerEntry,
    LedgerHistory,
)
from windowing.ledger.table import WATERMARKS, read_history
from windowing.report.frame import records
from windowing.report.rule import Changed
from windowing.report.text import describe_range
from windowing.spec.description import describe_window
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline

QUALITY = "_quality"
_CHANGES = ("inserted", "updated", "deleted")


@dataclass(frozen=True)
class Ran:
    """One run's row of `_watermarks`, and what it changed in all outputs together."""

    run: int
    arrival_us: int | None
    watermark_us: int | None
    read: int
    accepted: int
    late: int
    duplicate: int
    quarantined: int
    changed: Changed


@dataclass(frozen=True)
class Backfilled:
    """One finished chunk of a backfill after `run`.

    `range` are its event times, and `changed` is what it changed in all outputs together.
    """

    run: int | None
    at_us: int | None
    range: str
    changed: Changed


@dataclass(frozen=True)
class Output:
    """One output: what it is, how large, and what the last runs changed, newest first."""

    name: str
    kind: str
    rows: int | None
    version: int | None
    published: int | None
    changes: tuple[tuple[str, Changed], ...]


@dataclass(frozen=True)
class Refusal:
    """How many rows were refused for one reason, and how many of them are resolved."""

    outcome: str
    reason: str
    rows: int
    resolved: int


@dataclass(frozen=True)
class Lost:
    """Of how many rows of a run, or of a chunk of a backfill, an expression lost the value."""

    step: str
    column: str
    rows: int


@dataclass(frozen=True)
class Check:
    """One expectation of the newest validation; counts and reasons only."""

    run: int
    window: str
    expectation: str
    severity: str
    success: bool
    observed: str
    detail: str


@dataclass(frozen=True)
class Facts:
    """Everything the page shows; runs oldest first."""

    pipeline: Pipeline
    watermark_us: int | None
    published_run: int | None
    unfinished: tuple[str, ...]
    runs: tuple[Ran, ...]
    backfills: tuple[Backfilled, ...]
    outputs: tuple[Output, ...]
    refusals: tuple[Refusal, ...]
    lost: tuple[Lost, ...]
    checks: tuple[Check, ...]

    def total(self, count: str) -> int:
        """The sum of one count over all runs."""
        return sum(getattr(run, count) for run in self.runs)


def read_facts(spark: SparkSession, pipeline: Pipeline) -> Facts:
    """The facts of a pipeline; before the first run all but its name is empty."""
    past = read_history(pipeline)
    return Facts(
        pipeline=pipeline,
        watermark_us=past.watermark,
        published_run=past.published.run if past.published else None,
        unfinished=_list_unfinished(past),
        runs=_read_runs(spark, pipeline, past),
        backfills=_list_backfills(pipeline, past),
        outputs=tuple(_read_output(spark, pipeline, window, past) for window in pipeline.windows),
        refusals=tuple(_read_refusals(spark, pipeline)),
        lost=find_lost(past),
        checks=tuple(_read_checks(spark, pipeline)),
    )


def sum_changes(windows: Iterable[Window], entry: LedgerEntry) -> Changed:
    """What a step changed in `windows` together."""
    sums = Changed()
    for window in windows:
        counts = [entry.counts.get(f"{window.name}.{change}", 0) for change in _CHANGES]
        sums = sums + Changed(*counts)
    return sums


def find_lost(past: LedgerHistory) -> tuple[Lost, ...]:
    """The rows that lost a value in each finished run and chunk of a backfill, oldest first."""
    found = []
    for entry in past.entries:
        if entry.step in FINISHED:
            for column, rows in read_null_counts(entry.counts).items():
                found.append(Lost(_describe_step(entry), column, rows))
    return tuple(found)


def _list_unfinished(past: LedgerHistory) -> tuple[str, ...]:
    found = []
    if past.open_run is not None:
        found.append(f"run {past.open_run.run}")
    if past.open_backfill is not None:
        found.append(f"the backfill of {describe_range(past.open_backfill.note)}")
    return tuple(found)


def _list_backfills(pipeline: Pipeline, past: LedgerHistory) -> tuple[Backfilled, ...]:
    found = []
    for entry in past.entries:
        if entry.step == BACKFILL_DONE:
            change = sum_changes(pipeline.windows, entry)
            found.append(Backfilled(entry.run, entry.at, describe_range(entry.note), change))
    return tuple(found)


def _read_runs(spark: SparkSession, pipeline: Pipeline, past: LedgerHistory) -> tuple[Ran, ...]:
    path = pipeline.table(WATERMARKS)
    if not delta.exists(spark, path):
        return ()
    changes = {}
    for entry in past.entries:
        if entry.step == CLOSE:
            changes[entry.run] = sum_changes(pipeline.windows, entry)
    times = (
        F.unix_micros("arrival").alias("arrival_us"),
        F.unix_micros("watermark").alias("watermark_us"),
    )
    rows = delta.read(spark, path).select("run", *times, *COUNTS).orderBy("run").collect()
    found = []
    for row in rows:
        change = changes.get(row["run"], Changed())
        found.append(Ran(**row.asDict(), changed=change))
    return tuple(found)


def _read_output(
    spark: SparkSession, pipeline: Pipeline, window: Window, past: LedgerHistory
) -> Output:
    path = pipeline.table(window.name)
    rows = version = None
    if delta.exists(spark, path):
        rows = DeltaTable.forPath(spark, path).toDF().count()
        version = delta.version(spark, path)
    steps = [entry for entry in past.entries if entry.step in FINISHED]
    changes = []
    for entry in steps[::-1][:5]:
        changes.append((_describe_step(entry), sum_changes([window], entry)))
    published = None
    if past.published:
        published = past.published.versions.get(window.name)
    return Output(
        name=window.name,
        kind=describe_window(window).text,
        rows=rows,
        version=version,
        published=published,
        changes=tuple(changes),
    )


def _describe_step(entry: LedgerEntry) -> str:
    if entry.step == EVOLVE_DONE:
        return "change of the spec"
    if entry.step == ERASE_DONE:
        return "erasure"
    if entry.step == CLOSE:
        return f"run {entry.run}"
    return f"backfill of {describe_range(entry.note)}"


def _read_refusals(spark: SparkSession, pipeline: Pipeline) -> list[Refusal]:
    found = []
    for table in REFUSED:
        path = pipeline.table(table)
        if not delta.exists(spark, path):
            continue
        grouped = delta.read(spark, path).groupBy("outcome", "reason")
        counted = grouped.agg(F.count("*").alias("n"), F.count("resolved_by").alias("resolved"))
        for row in counted.orderBy(F.desc("n")).collect():
            reason = row["reason"] or ""
            found.append(Refusal(row["outcome"], reason, row["n"], row["resolved"]))
    return found


def _read_checks(spark: SparkSession, pipeline: Pipeline) -> list[Check]:
    """The newest validation: the results written last of the newest step that was validated."""
    path = pipeline.table(QUALITY)
    if not delta.exists(spark, path):
        return []
    rows = delta.read(spark, path)
    newest = rows.agg(F.max(F.struct("seq", "checked_at")).alias("last")).select("last.*")
    own = rows.join(newest, ["seq", "checked_at"], "left_semi")
    own = own.orderBy("success", "severity", "window", "expectation")
    names = [field.name for field in fields(Check)]
    return [Check(**row) for row in records(own.select(*names), 1_000)]
