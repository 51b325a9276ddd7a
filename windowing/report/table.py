"""The facts of the report page, read from a pipeline's tables.

They are runs, outputs, refused rows and quality. Nothing is written, and no value of a row is read.
All of it is read without Spark, except from a table with a feature that only Spark can read.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from windowing.ledger.evolved import OF_ERASURE
from windowing.ledger.history import LedgerHistory
from windowing.ledger.nulls import read_null_counts
from windowing.ledger.rule import (
    BACKFILL_DONE,
    CLOSE,
    COUNTS,
    ERASE_DONE,
    EVOLVE_DONE,
    FINISHED,
    ROW_BY_ROW,
    LedgerEntry,
)
from windowing.ledger.table import WATERMARKS, read_history, read_newest_validation
from windowing.location import Location
from windowing.report.alarms import Raised, list_alarms
from windowing.report.rule import Changed, read_changed
from windowing.report.text import describe_range, list_open_steps
from windowing.spec.description import describe_window
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.storage import control, table_figures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OpenSession = Callable[[], "SparkSession"]
"""Returns the session, and starts it when it is called for the first time."""

REFUSED_TABLES = ("_late", "_duplicates", "_quarantine")
"""The tables of refused rows in the order of the page.

They are the keys of `windowing.admit.table.REFUSED`, which can't be imported without Spark.
"""
_SHOWN_CHECKS = 1_000


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
    row_by_row: int = 0
    erased: int = 0


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
    """One expectation of the newest validation; counts and reasons only.

    It judged what `run` left, which is the ledger's entry `seq`. `accepted` is the reason for which
    readers may see that it failed.
    """

    run: int
    seq: int
    window: str
    expectation: str
    severity: str
    success: bool
    observed: str
    detail: str
    accepted: str | None = None


@dataclass(frozen=True)
class Facts:
    """Everything the page shows; runs oldest first.

    `accepted_because` is the reason that was given for publishing although expectations failed.
    """

    pipeline: Pipeline
    watermark_us: int | None
    published_run: int | None
    accepted_because: str | None
    unfinished: tuple[str, ...]
    runs: tuple[Ran, ...]
    backfills: tuple[Backfilled, ...]
    outputs: tuple[Output, ...]
    refusals: tuple[Refusal, ...]
    lost: tuple[Lost, ...]
    checks: tuple[Check, ...]
    alarms: tuple[Raised, ...] = ()

    def total(self, count: str) -> int:
        """The sum of one count over all runs."""
        return sum(getattr(run, count) for run in self.runs)


def read_facts(pipeline: Pipeline, open_session: OpenSession) -> Facts:
    """The facts of a pipeline; before the first run all but its name is empty.

    A session is opened only for a table that can't be read without one.
    """
    past = read_history(pipeline)
    return Facts(
        pipeline=pipeline,
        watermark_us=past.watermark,
        published_run=past.published.run if past.published else None,
        accepted_because=past.acceptance.reason if past.acceptance else None,
        unfinished=tuple(step.what for step in list_open_steps(past)),
        runs=_read_runs(pipeline, past),
        backfills=_list_backfills(pipeline, past),
        outputs=tuple(_read_output(w, pipeline, past, open_session) for w in pipeline.windows),
        refusals=tuple(_read_refusals(pipeline, open_session)),
        lost=find_lost(past),
        alarms=list_alarms(past, pipeline.alarms),
        checks=tuple(_read_checks(pipeline, past)),
    )


def sum_changes(windows: Iterable[Window], entry: LedgerEntry) -> Changed:
    """What a step changed in `windows` together."""
    return sum((read_changed(entry.counts, window.name) for window in windows), start=Changed())


def find_lost(past: LedgerHistory) -> tuple[Lost, ...]:
    """The rows that lost a value in each finished run and chunk of a backfill, oldest first."""
    found = []
    for entry in past.entries:
        if entry.step in FINISHED:
            for column, rows in read_null_counts(entry.counts).items():
                found.append(Lost(_describe_step(entry), column, rows))
    return tuple(found)


def _list_backfills(pipeline: Pipeline, past: LedgerHistory) -> tuple[Backfilled, ...]:
    found = []
    for entry in past.entries:
        if entry.step == BACKFILL_DONE:
            change = sum_changes(pipeline.windows, entry)
            found.append(Backfilled(entry.run, entry.at, describe_range(entry.note), change))
    return tuple(found)


def _read_runs(pipeline: Pipeline, past: LedgerHistory) -> tuple[Ran, ...]:
    closed = {entry.run: entry for entry in past.entries if entry.step == CLOSE}
    rows = control.read_rows(pipeline.table(WATERMARKS))
    found = []
    for row in sorted(rows, key=lambda each: int(each["run"])):
        close = closed.get(row["run"], LedgerEntry(CLOSE))
        ran = Ran(
            run=row["run"],
            arrival_us=row["arrival"],
            watermark_us=row["watermark"],
            # Rows of earlier releases have no count of erased rows.
            **{name: row.get(name) or 0 for name in COUNTS},
            changed=sum_changes(pipeline.windows, close),
            row_by_row=close.counts.get(ROW_BY_ROW, 0),
        )
        found.append(ran)
    return tuple(found)


def _read_output(
    window: Window, pipeline: Pipeline, past: LedgerHistory, open_session: OpenSession
) -> Output:
    path = pipeline.table(window.name)
    version = control.read_version(path)
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
        rows=None if version < 0 else _count_rows(path, version, open_session),
        version=None if version < 0 else version,
        published=published,
        changes=tuple(changes),
    )


def _count_rows(path: Location, version: int, open_session: OpenSession) -> int:
    try:
        return table_figures.count_rows(path, version)
    except control.TableError:
        from windowing.storage import delta

        return delta.read(open_session(), path, version).count()


def _describe_step(entry: LedgerEntry) -> str:
    if entry.step == ERASE_DONE or entry.note == OF_ERASURE:
        return "erasure"
    if entry.step == EVOLVE_DONE:
        return "change of the spec"
    if entry.step == CLOSE:
        return f"run {entry.run}"
    return f"backfill of {describe_range(entry.note)}"


def _read_refusals(pipeline: Pipeline, open_session: OpenSession) -> list[Refusal]:
    """Of each table of refused rows the reasons, the most frequent ones first."""
    found = []
    for table in REFUSED_TABLES:
        path = pipeline.table(table)
        if control.read_version(path) < 0:
            continue
        refusals = []
        for group in _count_groups(path, open_session):
            outcome, reason = (value or "" for value in group.values)
            refusals.append(Refusal(outcome, reason, group.rows, group.filled))
        found += sorted(refusals, key=lambda each: (-each.rows, each.outcome, each.reason))
    return found


def _count_groups(path: Location, open_session: OpenSession) -> list[table_figures.Group]:
    """The refused rows by outcome and reason, and how many of them were accepted later.

    A column of the source whose type was widened makes a table that only Spark can read.
    """
    try:
        return table_figures.count_groups(path, ("outcome", "reason"), "resolved_by")
    except control.TableError:
        return _count_groups_by_spark(path, open_session())


def _count_groups_by_spark(path: Location, spark: "SparkSession") -> list[table_figures.Group]:
    from pyspark.sql import functions as F

    from windowing.storage import own_tables

    grouped = own_tables.read(spark, path).groupBy("outcome", "reason")
    counted = grouped.agg(F.count("*"), F.count("resolved_by")).collect()
    return [table_figures.Group((row[0], row[1]), row[2], row[3]) for row in counted]


def _read_checks(pipeline: Pipeline, past: LedgerHistory) -> list[Check]:
    """The newest validation: the results written last of the newest step that was validated."""
    names = [field.name for field in fields(Check)]
    found = []
    for row in read_newest_validation(pipeline, past.entries):
        # Rows of earlier versions of Tidemark lack the last column.
        found.append(Check(**{name: row[name] for name in names if name in row}))
    found.sort(key=lambda each: (each.success, each.severity, each.window, each.expectation))
    return found[:_SHOWN_CHECKS]
