"""Which values windows have had, what made each, and which events belong to them.

ledger + change feed of an output + what was kept of it -> values of each window
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.diagnosis.spec_changes import check_columns, list_changed_names
from jobs.evidence.accepted_events import (
    AcceptedEvents,
    Place,
    Subject,
    find_events,
    tell_events,
)
from jobs.evidence.steps import tell_period, tell_step
from jobs.read import explain_missing
from jobs.sessions.exact_session import in_exact_session
from jobs.show import Wanted, of_keys, select_windows, show_refused
from windowing.admit.outcomes import REFUSED_OUTCOMES
from windowing.columns import END, START
from windowing.errors import UsageError
from windowing.grid.frame import instant
from windowing.grid.zone import micros
from windowing.ledger.history import LedgerHistory
from windowing.ledger.table import read_history
from windowing.report.frame import records
from windowing.report.text import plain
from windowing.revisions.evidence import Untold, find_bounds, find_evidence
from windowing.revisions.rule import Change, Value, list_values
from windowing.revisions.table import (
    CHANGE,
    DELETED,
    IDENTITY,
    INSERTED,
    VALUES,
    VERSION,
    Recorded,
    read_recorded,
)
from windowing.spec.description import describe_window
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.storage.chosen_columns import list_columns
from windowing.storage.few_rows import Collected
from windowing.storage.kept_open import newest_version

_BEGINS = "__begins"
_MOST = 1_000_000
"""So many changes of the windows that are shown are read at most."""


def _tell_value(value: Value) -> dict[str, object]:
    """A value as plain JSON values."""
    known = value.known
    made_by = None if value.made_by is None else tell_step(value.made_by)
    return {
        "values": plain(value.values),
        "made_by": made_by,
        "known_from": plain(known.start),
        "known_to": plain(known.end),
        "published": [tell_period(period) for period in value.published],
        "published_known": value.is_published_known,
    }


@dataclass(frozen=True)
class WindowHistory:
    """The `values` that a window has had, oldest first.

    `identity` has the values that distinguish its row, and `bounds` its newest start and end; None
    where it is not bounded. `refused` has by outcome how many refused events of its key lie inside
    of them, where only one window is wanted. `events` are by value those that the step has accepted
    which made it; there are none where they were not asked for.
    """

    identity: Mapping[str, Any]
    bounds: tuple[Any, Any]
    values: tuple[Value, ...]
    refused: Mapping[str, int]
    events: tuple[AcceptedEvents | Untold, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The history as plain JSON values."""
        values = [_tell_value(value) for value in self.values]
        if self.events:
            told = zip(values, self.events, strict=True)
            values = [value | tell_events(events) for value, events in told]
        return {
            "identity": plain(self.identity),
            START: plain(self.bounds[0]),
            END: plain(self.bounds[1]),
            "values": values,
            "refused": dict(self.refused),
        }


@dataclass(frozen=True)
class Histories:
    """The first of `total` windows.

    `is_complete` says whether every change of them is recorded; otherwise earlier values may be
    missing. Before a run has made the output, `missing` is the reason why there is none. `changed`
    is what in the spec is not what made the outputs.
    """

    windows: tuple[WindowHistory, ...] = ()
    total: int = 0
    is_complete: bool = True
    missing: str | None = None
    changed: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The histories as plain JSON values."""
        return {
            "total": self.total,
            "complete": self.is_complete,
            "windows": [window.as_json() for window in self.windows],
        }


@in_exact_session
def history(
    spark: SparkSession,
    pipeline: Pipeline,
    window: Window,
    wanted: Wanted,
    events: int | None = None,
) -> Histories:
    """The values that the wanted windows have had; writes nothing.

    Windows that the output no longer has are among them. Of each value, the `events` first events
    are told that its run or backfill has accepted, and how many there were; None reads no source.
    Raises UsageError for a key that can't be one, and for the events of more than one window, and
    StateRefused where the table was lost.
    """
    past = read_history(pipeline)
    changed = list_changed_names(pipeline, past)
    missing = explain_missing(pipeline, window.name, past)
    if missing is not None:
        return Histories(missing=missing, changed=changed)
    path = pipeline.table(window.name)
    check_columns(pipeline, past, window, list_columns(path, newest_version(path)))
    recorded = read_recorded(spark, pipeline, window.name)
    select = select_windows if events is None else _select_one
    rows, total = _choose(recorded, window, wanted, select)
    if events is not None and total > 1:
        raise UsageError(
            f"--events: {total:,} windows of {window.name} match, and events are told of one; "
            "choose it by --key and --at, or by --key and its bounds as --from and --to"
        )
    told = tuple(_tell_histories(rows, past, window.name, recorded.first))
    if total == 1:
        refused = _count_refused(spark, pipeline, told[0])
        told = (replace(told[0], refused=refused),)
    if events is not None:
        told = tuple(_with_events(spark, pipeline, window, past, each, events) for each in told)
    # The first commit has only created the table.
    return Histories(told, total, is_complete=recorded.first <= 1, changed=changed)


def _select_one(rows: DataFrame, wanted: Wanted) -> DataFrame:
    """The rows of wanted windows; where some have just the bounds that are wanted, those alone."""
    matching = select_windows(rows, wanted)
    if wanted.start is None or wanted.end is None:
        return matching
    begins, ends = (instant(micros(at)) for at in (wanted.start, wanted.end))
    exact = matching.where((F.col(START) == begins) & (F.col(END) == ends))
    return matching if exact.isEmpty() else exact


def _choose(
    recorded: Recorded,
    window: Window,
    wanted: Wanted,
    select: Callable[[DataFrame, Wanted], DataFrame],
) -> tuple[list[dict[str, Any]], int]:
    """All that is recorded of the first wanted windows that are selected, and how many there are.

    The rows are in order of their window, then of the version.
    """
    of_keys_alone = of_keys(recorded.changes.unionByName(recorded.newest), wanted.keys)
    windows = select(of_keys_alone, wanted).groupBy(IDENTITY).agg(F.min(START).alias(_BEGINS))
    order = [F.col(_BEGINS), F.col(IDENTITY)]
    if wanted.newest_first:
        order = [column.desc() for column in order]
    first = windows.orderBy(*order).limit(wanted.limit)
    found = Collected(first.sparkSession, first.toArrow(), first.schema)
    n = found.rows.num_rows
    total = n if n < wanted.limit else windows.count()
    chosen = of_keys_alone
    if START in describe_window(window).identity and n:
        # Files of other times are not read.
        begins = pc.min_max(found.rows[_BEGINS].cast(pa.int64()))
        low, high = (F.timestamp_micros(F.lit(begins[end].as_py())) for end in ("min", "max"))
        chosen = chosen.where(F.col(START).between(low, high))
    in_order = chosen.join(F.broadcast(found.to_spark()), IDENTITY)
    in_order = in_order.orderBy(*order, VERSION, CHANGE)
    return records(in_order.drop(_BEGINS), _MOST), total


def _tell_histories(
    rows: Sequence[Mapping[str, Any]], past: LedgerHistory, window: str, first: int
) -> Iterator[WindowHistory]:
    for identity, group in groupby(rows, key=lambda row: row[IDENTITY]):
        yield _tell_history(identity, list(group), past, window, first)


def _tell_history(
    identity: str,
    rows: Sequence[Mapping[str, Any]],
    past: LedgerHistory,
    window: str,
    first: int,
) -> WindowHistory:
    newest: Mapping[str, Any] | None = None
    changes = []
    for row in rows:
        values = json.loads(row[VALUES])
        if row[VERSION] is None:
            newest = values
        else:
            before = None if row[CHANGE] == INSERTED else values
            changes.append(Change(row[VERSION], before, stays=row[CHANGE] != DELETED))
    # A row without a version, which is the newest one, comes first.
    shown = rows[0] if rows[0][VERSION] is None else rows[-1]
    return WindowHistory(
        json.loads(identity),
        (shown[START], shown[END]),
        list_values(changes, newest, past, window, first),
        refused={},
    )


def _count_refused(
    spark: SparkSession, pipeline: Pipeline, window: WindowHistory
) -> Mapping[str, int]:
    """How many refused events of the key lie inside of a window, by outcome."""
    start, end = window.bounds
    if not isinstance(start, datetime) or not isinstance(end, datetime):
        start = end = None
    wanted = Wanted(_find_keys(pipeline, window), start, end, limit=1)
    counts = show_refused(spark, pipeline, REFUSED_OUTCOMES, wanted).counts
    return {outcome: n for outcome, n in counts.items() if n}


def _find_keys(pipeline: Pipeline, window: WindowHistory) -> Mapping[str, tuple[str, ...]]:
    return {name: (str(window.identity[name]),) for name in pipeline.source.key}


def _with_events(
    spark: SparkSession,
    pipeline: Pipeline,
    window: Window,
    past: LedgerHistory,
    told: WindowHistory,
    most: int,
) -> WindowHistory:
    """The history of a window with at most so many events of each value."""

    def find(value: Value) -> AcceptedEvents | Untold:
        evidence = find_evidence(past, value.made_by)
        bounds = find_bounds(window, told.identity, value.values)
        if isinstance(bounds, Untold):
            return evidence if isinstance(evidence, Untold) else bounds
        subject = Subject(pipeline, window, past, [Place(told.identity, bounds)], most)
        (found,) = find_events(spark, subject, evidence)
        return found

    return replace(told, events=tuple(map(find, told.values)))
