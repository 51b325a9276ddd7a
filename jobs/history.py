"""Which values windows have had, what made each, and which refused events belong to them.

ledger + change feed of an output + what was kept of it -> values of each window
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.read import explain_missing
from jobs.sessions.exact_session import in_exact_session
from jobs.show import Wanted, select_windows, show_refused
from windowing.admit.table import REFUSED
from windowing.columns import END, START
from windowing.ledger.history import LedgerHistory
from windowing.ledger.table import read_history
from windowing.report.frame import records
from windowing.report.text import plain
from windowing.revisions.rule import Change, Period, Value, list_values
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
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline

_OUTCOMES = tuple(outcome for outcomes in REFUSED.values() for outcome in outcomes)
_MOST = 1_000_000
"""So many changes of the windows that are shown are read at most."""


def _tell_value(value: Value) -> dict[str, object]:
    """A value as plain JSON values."""
    step, known = value.made_by, value.known
    made_by = None
    if step is not None:
        made_by = {**vars(step), "reprocessed": _tell_period(step.reprocessed)}
    return {
        "values": plain(value.values),
        "made_by": plain(made_by),
        "known_from": plain(known.start),
        "known_to": plain(known.end),
        "published": [_tell_period(period) for period in value.published],
        "published_known": value.is_published_known,
    }


def _tell_period(period: Period | None) -> dict[str, object] | None:
    return None if period is None else {"from": plain(period.start), "to": plain(period.end)}


@dataclass(frozen=True)
class WindowHistory:
    """The `values` that a window has had, oldest first.

    `identity` has the values that distinguish its row, and `bounds` its newest start and end; None
    where it is not bounded. `refused` has by outcome how many refused events of its key lie inside
    of them, where only one window is wanted.
    """

    identity: Mapping[str, Any]
    bounds: tuple[Any, Any]
    values: tuple[Value, ...]
    refused: Mapping[str, int]

    def as_json(self) -> dict[str, object]:
        """The history as plain JSON values."""
        return {
            "identity": plain(self.identity),
            START: plain(self.bounds[0]),
            END: plain(self.bounds[1]),
            "values": [_tell_value(value) for value in self.values],
            "refused": dict(self.refused),
        }


@dataclass(frozen=True)
class Histories:
    """The first of `total` windows.

    `is_complete` says whether every change of them is recorded; otherwise earlier values may be
    missing. Before a run has made the output, `missing` is the reason why there is none.
    """

    windows: tuple[WindowHistory, ...] = ()
    total: int = 0
    is_complete: bool = True
    missing: str | None = None

    def as_json(self) -> dict[str, object]:
        """The histories as plain JSON values."""
        return {
            "total": self.total,
            "complete": self.is_complete,
            "windows": [window.as_json() for window in self.windows],
        }


@in_exact_session
def history(spark: SparkSession, pipeline: Pipeline, window: Window, wanted: Wanted) -> Histories:
    """The values that the wanted windows have had; writes nothing.

    Windows that the output no longer has are among them. Raises UsageError for a key that can't be
    one, and StateRefused where the table was lost.
    """
    past = read_history(pipeline)
    missing = explain_missing(pipeline, window.name, past)
    if missing is not None:
        return Histories(missing=missing)
    recorded = read_recorded(spark, pipeline, window.name)
    rows, total = _choose(recorded, wanted)
    told = tuple(_tell_histories(rows, past, window.name, recorded.first))
    if total == 1:
        refused = _count_refused(spark, pipeline, told[0])
        told = (replace(told[0], refused=refused),)
    # The first commit has only created the table.
    return Histories(told, total, is_complete=recorded.first <= 1)


def _choose(recorded: Recorded, wanted: Wanted) -> tuple[list[dict[str, Any]], int]:
    """All that is recorded of the first wanted windows, and how many are wanted.

    The rows are in order of their window, then of the version.
    """
    all_rows = recorded.changes.unionByName(recorded.newest)
    matching = select_windows(all_rows, wanted)
    begins = F.min(START)
    windows = matching.groupBy(IDENTITY).agg(begins.alias("__begins"))
    order = [F.col("__begins"), F.col(IDENTITY)]
    if wanted.newest_first:
        order = [column.desc() for column in order]
    first = windows.orderBy(*order).limit(wanted.limit)
    chosen = all_rows.join(F.broadcast(first), IDENTITY)
    in_order = chosen.orderBy(*order, VERSION, CHANGE).drop("__begins")
    return records(in_order, _MOST), windows.count()


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
    keys = {name: (str(window.identity[name]),) for name in pipeline.source.key}
    wanted = Wanted(keys, start, end, limit=1)
    counts = show_refused(spark, pipeline, _OUTCOMES, wanted).counts
    return {outcome: n for outcome, n in counts.items() if n}
