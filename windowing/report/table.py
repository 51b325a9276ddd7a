"""What the report page is made of, read from a pipeline's tables: runs, outputs, refused rows, quality. Reads only, no row values."""

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
    Entry,
    Story,
)
from windowing.ledger.table import WATERMARKS, story
from windowing.report.frame import records
from windowing.report.rule import Changed
from windowing.report.text import backfilled, kind
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
    """One finished chunk of a backfill after `run`: its event times, and what it changed in all outputs together."""

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
    """How many rows were refused for one reason, and how many of them a backfill has taken in since."""

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
    """Everything the page says; runs oldest first."""

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


def facts(spark: SparkSession, pipeline: Pipeline) -> Facts:
    """The facts of a pipeline; before the first run all but its name is empty."""
    past = story(spark, pipeline)
    backfills = [e for e in past.entries if e.step == BACKFILL_DONE]
    return Facts(
        pipeline=pipeline,
        watermark_us=past.watermark,
        published_run=past.published.run if past.published else None,
        unfinished=_unfinished(past),
        runs=_runs(spark, pipeline, past),
        backfills=tuple(
            Backfilled(e.run, e.at, backfilled(e.note), changed(pipeline.windows, e))
            for e in backfills
        ),
        outputs=tuple(_output(spark, pipeline, window, past) for window in pipeline.windows),
        refusals=tuple(_refusals(spark, pipeline)),
        lost=find_lost(past),
        checks=tuple(_checks(spark, pipeline)),
    )


def changed(windows: Iterable[Window], entry: Entry) -> Changed:
    """What a step changed in `windows` together."""
    each = (
        Changed(*(entry.counts.get(f"{w.name}.{change}", 0) for change in _CHANGES))
        for w in windows
    )
    return sum(each, Changed())


def find_lost(past: Story) -> tuple[Lost, ...]:
    """What expressions lost in each finished run and chunk of a backfill, oldest first."""
    return tuple(
        Lost(_step(entry), column, rows)
        for entry in past.entries
        if entry.step in FINISHED
        for column, rows in read_null_counts(entry.counts).items()
    )


def _unfinished(past: Story) -> tuple[str, ...]:
    begun = (("run", past.open_run), ("backfill", past.open_backfill))
    return tuple(
        f"{what} {entry.run}" if what == "run" else f"the {what} of {backfilled(entry.note)}"
        for what, entry in begun
        if entry
    )


def _runs(spark: SparkSession, pipeline: Pipeline, past: Story) -> tuple[Ran, ...]:
    path = pipeline.table(WATERMARKS)
    if not delta.exists(spark, path):
        return ()
    by_run = {e.run: changed(pipeline.windows, e) for e in past.entries if e.step == CLOSE}
    times = (
        F.unix_micros("arrival").alias("arrival_us"),
        F.unix_micros("watermark").alias("watermark_us"),
    )
    rows = delta.read(spark, path).select("run", *times, *COUNTS).orderBy("run").collect()
    return tuple(Ran(**row.asDict(), changed=by_run.get(row["run"], Changed())) for row in rows)


def _output(spark: SparkSession, pipeline: Pipeline, window: Window, past: Story) -> Output:
    path = pipeline.table(window.name)
    there = delta.exists(spark, path)
    steps = [e for e in past.entries if e.step in FINISHED][::-1][:5]
    return Output(
        name=window.name,
        kind=kind(window),
        rows=DeltaTable.forPath(spark, path).toDF().count() if there else None,
        version=delta.version(spark, path) if there else None,
        published=past.published.versions.get(window.name) if past.published else None,
        changes=tuple((_step(e), changed([window], e)) for e in steps),
    )


def _step(entry: Entry) -> str:
    if entry.step in (EVOLVE_DONE, ERASE_DONE):
        return "change of the spec" if entry.step == EVOLVE_DONE else "erasure"
    return f"run {entry.run}" if entry.step == CLOSE else f"backfill of {backfilled(entry.note)}"


def _refusals(spark: SparkSession, pipeline: Pipeline) -> list[Refusal]:
    found = []
    for table in REFUSED:
        if delta.exists(spark, pipeline.table(table)):
            grouped = delta.read(spark, pipeline.table(table)).groupBy("outcome", "reason")
            counted = grouped.agg(
                F.count("*").alias("n"), F.count("resolved_by").alias("resolved")
            ).orderBy(F.desc("n"))
            found += [
                Refusal(r["outcome"], r["reason"] or "", r["n"], r["resolved"])
                for r in counted.collect()
            ]
    return found


def _checks(spark: SparkSession, pipeline: Pipeline) -> list[Check]:
    """The newest validation: of the newest step that was judged the results written last."""
    path = pipeline.table(QUALITY)
    if not delta.exists(spark, path):
        return []
    rows = delta.read(spark, path)
    newest = rows.agg(F.max(F.struct("seq", "checked_at")).alias("last")).select("last.*")
    own = rows.join(newest, ["seq", "checked_at"], "left_semi").orderBy(
        "success", "severity", "window", "expectation"
    )
    names = [f.name for f in fields(Check)]
    return [Check(**row) for row in records(own.select(*names), 1_000)]
