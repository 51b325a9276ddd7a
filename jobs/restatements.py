"""Reads what rows of a closed period would be: the restatements of a pipeline.

frozen rows + restated rows, joined by identity -> old, new and difference of each value
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.evidence.accepted_events import (
    NO_EVENTS,
    AcceptedEvents,
    Place,
    Subject,
    find_events,
    tell_events,
)
from jobs.evidence.steps import tell_step
from jobs.recompute.periods import frozen_windows
from jobs.sessions.exact_session import in_exact_session
from windowing.closed.frame import TOUCHED_END, find_touching
from windowing.closed.rule import DELETED
from windowing.columns import END, RUN, START
from windowing.errors import UsageError
from windowing.grid.zone import micros, moment
from windowing.ledger.history import LedgerHistory
from windowing.ledger.table import read_history
from windowing.merge import table as outputs
from windowing.merge.rule import output_table
from windowing.report.frame import records
from windowing.report.text import plain, plain_fields
from windowing.revisions.evidence import (
    Bounds,
    Untold,
    find_bounds,
    find_evidence,
    join_bounds,
    list_steps_into,
)
from windowing.revisions.rule import Step
from windowing.rows import are_equal
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import is_number
from windowing.storage import own_tables
from windowing.values import is_same

_OLD, _NEW = "__old", "__new"


@dataclass(frozen=True)
class Contribution:
    """The `events` of a window that a step has accepted, or why they are not known."""

    step: Step
    events: AcceptedEvents | Untold

    def as_json(self) -> dict[str, object]:
        """The step and its events as plain JSON values."""
        return {"made_by": tell_step(self.step), **tell_events(self.events)}


@dataclass(frozen=True)
class Restatement:
    """One row that would differ if nothing were closed.

    `operation` says what would be done to the output: insert, update or delete. `run` is the last
    one that has changed what the row would be. `old` and `new` are the values by column, and
    `difference` those of numbers, where an absent one counts as 0. `brought_by` are the steps since
    the close that have accepted events of its window; None where they were not asked for, or are
    not known.
    """

    key: Mapping[str, Any]
    start: datetime | str | None
    end: datetime | str | None
    operation: str
    run: int
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None
    difference: Mapping[str, Any]
    brought_by: tuple[Contribution, ...] | None = None


@dataclass(frozen=True)
class Restatements:
    """The rows of a window that would differ: so many in `total`, and the first of them."""

    window: str
    total: int
    rows: tuple[Restatement, ...]


@dataclass(frozen=True)
class AllRestatements:
    """The restatements of each output that is closed `until` an instant; None where none is."""

    until: datetime | None
    reason: str | None
    windows: tuple[Restatements, ...]

    def as_json(self) -> dict[str, object]:
        """The restatements as plain JSON values."""
        return plain_fields(self)


@in_exact_session
def restatements(
    spark: SparkSession,
    pipeline: Pipeline,
    window: Window | None = None,
    limit: int = 20,
    events: int | None = None,
) -> AllRestatements:
    """What rows of a closed period would be, of one window or of all, at most `limit` of each.

    Rows are in order of their windows and keys. Of each row, the `events` first events are told
    that each run and backfill since the close has accepted, and how many there were; None reads no
    source. Nothing is written, and no lock is taken. Raises UsageError for a window whose rows are
    never frozen, and StateRefused where the ledger is damaged.
    """
    check_frozen(pipeline, window)
    past = read_history(pipeline)
    period = past.period
    if period is None:
        return AllRestatements(None, None, ())
    chosen = frozen_windows(pipeline) if window is None else (window,)
    found = tuple(_read_window(spark, pipeline, past, each, limit, events) for each in chosen)
    return AllRestatements(moment(period.until_us), period.reason, found)


def check_frozen(pipeline: Pipeline, window: Window | None) -> None:
    """Raises UsageError for a window whose rows are never frozen."""
    if window is not None and window not in frozen_windows(pipeline):
        raise UsageError(
            f"{pipeline.name}: rows of {window.name} are never frozen, so nothing of it is restated"
        )


def _read_window(
    spark: SparkSession,
    pipeline: Pipeline,
    past: LedgerHistory,
    window: Window,
    limit: int,
    events: int | None,
) -> Restatements:
    target = output_table(pipeline, window)
    output = outputs.open_output(target)
    if output.closed is None or not output.closed.has_restated(spark):
        return Restatements(window.name, 0, ())
    stored = own_tables.read_snapshot(spark, output.snapshot, own_tables.EVERY_ROW)
    restated = own_tables.read_snapshot(spark, output.closed.restated, own_tables.EVERY_ROW)
    frozen = stored.where(output.closed.rows.is_frozen())
    both = restated.alias("n").join(frozen.alias("o"), are_equal("n", "o", target.identity), "left")
    touching = find_touching(restated, stored, output.closed.rows).alias("t")
    both = both.join(touching, are_equal("n", "t", target.identity), "left")
    identity = [F.col(f"n.`{name}`") for name in target.identity]
    ordered = both.orderBy(F.col(f"n.{START}"), F.col(f"n.{END}"), *identity)
    # A spec that was changed since has aggregates that these rows do not have.
    there = [name for name in target.shown if name in restated.columns]
    names = [name for name in there if name not in pipeline.source.key]
    flags = [
        F.col(f"n.{DELETED}").alias(DELETED),
        F.col(f"n.{RUN}").alias(RUN),
        F.col(f"o.{END}").isNotNull().alias(_OLD),
        F.col(f"t.{TOUCHED_END}").alias(TOUCHED_END),
    ]
    rows = records(
        ordered.select(
            *(F.col(f"n.`{key}`").alias(f"key.{key}") for key in pipeline.source.key),
            *(F.col(f"o.`{name}`").alias(f"{_OLD}.{name}") for name in names),
            *(F.col(f"n.`{name}`").alias(f"{_NEW}.{name}") for name in names),
            *flags,
        ),
        limit,
    )
    values = [name for name in names if name not in (START, END)]
    found = [_describe(row, pipeline.source.key, values) for row in rows]
    if events is not None:
        # A session may be held back by others that are frozen, and else each row by its own end.
        held = (f"{_OLD}.{END}", TOUCHED_END, f"{_NEW}.{END}")
        ends = [next(row[name] for name in held if row[name]) for row in rows]
        ended = list(zip(found, ends, strict=True))
        brought = _find_brought(spark, pipeline, past, window, ended, events)
        found = [replace(each, brought_by=brought.get(n)) for n, each in enumerate(found)]
    return Restatements(window.name, restated.count(), tuple(found))


def _describe(row: Mapping[str, Any], keys: Sequence[str], values: Sequence[str]) -> Restatement:
    old = {name: row[f"{_OLD}.{name}"] for name in values} if row[_OLD] else None
    new = None if row[DELETED] else {name: row[f"{_NEW}.{name}"] for name in values}
    side = _OLD if new is None else _NEW
    operation = "insert" if old is None else "delete" if new is None else "update"
    return Restatement(
        {key: row[f"key.{key}"] for key in keys},
        row[f"{side}.{START}"],
        row[f"{side}.{END}"],
        operation,
        row[RUN],
        old,
        new,
        subtract(old or {}, new or {}),
    )


def _find_brought(
    spark: SparkSession,
    pipeline: Pipeline,
    past: LedgerHistory,
    window: Window,
    rows: Sequence[tuple[Restatement, Any]],
    most: int,
) -> Mapping[int, tuple[Contribution, ...]]:
    """By number of a row the steps that have accepted events of it since it was frozen.

    A row of a window whose bounds are no times has none, because its steps are not known.

    Each row comes with the end of the frozen one. Of each step at most so many events are told.
    """
    places, since = {}, {}
    brought: dict[int, tuple[Contribution, ...]] = {}
    for n, (row, frozen_end) in enumerate(rows):
        bounds = find_bounds(window, {START: plain(row.start), END: plain(row.end)}, {})
        if isinstance(bounds, Bounds):
            places[n] = Place(plain(row.key), bounds)
            brought[n] = ()
            since[n] = past.find_freezing(micros(frozen_end))
    if not places:
        return brought
    around = join_bounds(place.bounds for place in places.values())
    for step in list_steps_into(past, min(since.values()), around):
        later = [n for n in places if since[n] < (step.seq or 0)]
        subject = Subject(pipeline, window, past, [places[n] for n in later], most)
        found = find_events(spark, subject, find_evidence(past, step))
        for n, events in zip(later, found, strict=True):
            if events != NO_EVENTS:
                brought[n] += (Contribution(step, events),)
    return brought


def subtract(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """New values less old ones, of the columns that have numbers; an absent number counts as 0.

    The difference of values that are the same is 0, also where they are no number (NaN).

    >>> subtract({"n": 2, "first": "a"}, {"n": 5, "first": "b"})
    {'n': 3}
    >>> subtract({"ratio": float("nan")}, {"ratio": float("nan")})
    {'ratio': 0}
    """
    found = {}
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        if is_number(before) or is_number(after):
            found[name] = 0 if is_same(before, after) else (after or 0) - (before or 0)
    return found
