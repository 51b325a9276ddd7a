"""The table `_quality`: one row for each expectation and validation, written and read."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime

import pyarrow as pa

from expectations.outcome import Outcome, all_passed
from windowing.grid.zone import micros
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import LedgerEntry
from windowing.ledger.table import QUALITY, read_newest_validation, select_outcomes
from windowing.report.status import Judgement
from windowing.spec.pipeline import Pipeline
from windowing.storage import control

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
        ("place", pa.int64()),
        ("basis", pa.string()),
        ("rule", pa.string()),
        ("accepted", pa.string()),
    ]
)


def record_outcomes(
    pipeline: Pipeline, subject: LedgerEntry, outcomes: Sequence[Outcome], basis: str | None
) -> None:
    """Records the outcomes, in their order, for the versions that the ledger's `subject` names.

    `basis` is a digest of what they follow from, or None where that is more than can be digested.
    """
    path = pipeline.table(QUALITY)
    before = control.read_contents(path)
    checked_at = _after_others(before, subject)
    rows = []
    for place, outcome in enumerate(outcomes):
        row = {
            **asdict(outcome),
            "run": subject.run or 0,
            "seq": subject.seq,
            "checked_at": checked_at,
            "version": subject.versions.get(outcome.window),
            "place": place,
            "basis": basis,
        }
        rows.append(row)
    control.append_rows(path, _SCHEMA, rows, before.version)


def _after_others(before: control.Contents, subject: LedgerEntry) -> int:
    """The host clock in microseconds, but later than every check before and than `subject`.

    The last check counts, even after the host clock was set back.
    """
    now_us = micros(datetime.now(UTC))
    newest_us = control.find_highest(before, "checked_at")
    return max(now_us, (subject.at or 0) + 1, 0 if newest_us is None else newest_us + 1)


def read_validated(pipeline: Pipeline, past: LedgerHistory) -> frozenset[int]:
    """The numbers of the validated steps that are not older than what is published."""
    since = min(e.seq if e else -1 for e in (past.published, past.newest))
    steps = [entry for entry in past.entries if entry.seq >= since]
    found = select_outcomes(control.read_contents(pipeline.table(QUALITY)), steps)
    return frozenset(row["seq"] for row in found)


def read_newest(pipeline: Pipeline, subject: LedgerEntry) -> tuple[Outcome, ...]:
    """The outcomes of the newest validation of `subject`, in their order; else none."""
    return tuple(map(_to_outcome, _newest_rows(pipeline, subject)))


def read_judgement(pipeline: Pipeline, past: LedgerHistory) -> Judgement | None:
    """The newest validation of any step of the ledger; None where there was none."""
    rows = read_newest_validation(pipeline, past.entries)
    if not rows:
        return None
    passed = all_passed(map(_to_outcome, rows))
    return Judgement(rows[0]["run"], rows[0]["seq"], rows[0]["checked_at"], passed)


def _newest_rows(pipeline: Pipeline, subject: LedgerEntry) -> list[control.Row]:
    newest = read_newest_validation(pipeline, [subject])
    return sorted(newest, key=lambda row: int(row.get("place") or 0))


def read_validation(pipeline: Pipeline, subject: LedgerEntry, basis: str) -> tuple[Outcome, ...]:
    """The outcomes of the newest validation of `subject`, in their order.

    There are none where that was recorded with another `basis`, or without one.
    """
    rows = _newest_rows(pipeline, subject)
    # Rows of earlier versions of Tidemark have no basis.
    if any(row.get("basis") != basis for row in rows):
        return ()
    return tuple(map(_to_outcome, rows))


def _to_outcome(row: control.Row) -> Outcome:
    # Rows of earlier versions of Tidemark lack the last columns.
    there = [field.name for field in fields(Outcome) if row.get(field.name) is not None]
    return Outcome(**{name: row[name] for name in there})
