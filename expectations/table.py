"""The table `_quality`: one row for each expectation and validation, written and read."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import pyarrow as pa

from expectations.outcome import Outcome
from windowing import control
from windowing.files import local_path
from windowing.grid.zone import micros
from windowing.ledger.rule import LedgerHistory
from windowing.spec.pipeline import Pipeline

QUALITY = "_quality"
_SCHEMA = pa.schema(
    [
        ("run", pa.int64()),
        ("seq", pa.int64()),
        ("window", pa.string()),
        ("suite", pa.string()),
        ("expectation", pa.string()),
        ("severity", pa.string()),
        ("success", pa.bool_()),
        ("observed", pa.string()),
        ("detail", pa.string()),
        ("checked_at", pa.timestamp("us", "UTC")),
        ("version", pa.int64()),
    ]
)


def record_outcomes(
    pipeline: Pipeline,
    run: int,
    seq: int,
    versions: Mapping[str, int],
    outcomes: Sequence[Outcome],
) -> None:
    """Records the outcomes for the `versions` that the ledger's step `seq` of `run` names."""
    path = _path(pipeline)
    before = control.read_snapshot(path)
    origin = {"run": run, "seq": seq, "checked_at": _after_others(before)}
    rows = [{**asdict(o), **origin, "version": versions.get(o.window)} for o in outcomes]
    control.append_rows(path, _SCHEMA, rows, before.version)


def _after_others(before: control.Snapshot) -> int:
    """The host clock in microseconds, but later than every check before.

    The last check counts, even after the host clock was set back.
    """
    now_us = micros(datetime.now(UTC))
    newest_us = max((row["checked_at"] for row in before.rows), default=None)
    return now_us if newest_us is None else max(now_us, newest_us + 1)


def read_outcomes(pipeline: Pipeline, past: LedgerHistory) -> list[control.Row]:
    """What every validation of a step not older than what is published has found."""
    since = min(e.seq if e else -1 for e in (past.published, past.newest))
    rows = control.read_snapshot(_path(pipeline)).rows
    return [row for row in rows if row["seq"] >= since]


def _path(pipeline: Pipeline) -> str:
    return str(local_path(pipeline.table(QUALITY)))
