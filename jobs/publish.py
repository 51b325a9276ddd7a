"""Publishes validated versions: an entry of the ledger is the truth, `_published.json` its copy."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from json import dumps

from expectations.outcome import CRITICAL, Outcome
from expectations.table import read_newest, read_validated
from jobs.foreign_errors.control_errors import control_errors_explained
from jobs.locking.lock_file import held_here
from windowing.crash import crashpoint
from windowing.errors import ExpectationsFailed, UsageError
from windowing.grid.zone import micros, moment
from windowing.ledger.acceptance import Acceptance
from windowing.ledger.rule import (
    BACKFILL_DONE,
    CLOSE,
    FINISHED,
    PUBLISH,
    LedgerEntry,
    LedgerHistory,
)
from windowing.ledger.table import read_history, record_entries
from windowing.report.rule import Publication, Published
from windowing.source.rule import pending_changes
from windowing.spec.pipeline import Pipeline
from windowing.storage import table_figures
from windowing.storage.store import store_of

POINTER = "_published.json"


def publish(pipeline: Pipeline, accept: str | None = None) -> Publication:
    """Publishes every output at the version that the newest validated run wrote.

    Where a run or backfill came after the one that was validated, the validated one is published,
    unless it was already. What readers use already is not judged again. `accept` publishes although
    expectations failed, and records the reason. Before the first finished run nothing is published.
    Raises ExpectationsFailed when expectations failed or were not evaluated, UsageError while an
    erase or a reprocessing is incomplete, StateRefused where the ledger is damaged, and Busy.
    """
    with control_errors_explained(pipeline):
        if read_history(pipeline).newest is None:
            return Publication(0, {})
    with held_here(pipeline):
        past = read_history(pipeline)
        subject = past.newest
        if subject is None:
            return Publication(0, {})
        if accept is None and not past.shows(subject):
            subject = unpublished_validated(pipeline, past) or subject
            _require_validated(pipeline, subject)
            _require_reprocessed(pipeline, subject, past)
        if past.open_erasure is not None and subject.seq < past.open_erasure.seq:
            raise UsageError(
                f"{pipeline.name}: nothing is published, because an erase is incomplete; "
                "rerun `tidemark erase`, then publish"
            )
        rows = _count_rows(pipeline, subject, subject.versions)
        if accept is not None or not past.shows(subject):
            acceptance = accept_failures(read_newest(pipeline, subject), accept)
            past = _record_publication(pipeline, past, subject, acceptance)
            crashpoint("publish.noted")
        result = _describe(past, subject.run or 0, rows)
        _write_pointer(pipeline, result, past.published)
        return result


def repoint_published(
    pipeline: Pipeline, past: LedgerHistory, versions: Mapping[str, int]
) -> LedgerHistory:
    """Publishes `versions`, which contain what is published now without what was erased.

    Returns the ledger with the new publish entry; does nothing where nothing is published.
    """
    before = past.published
    if before is None:
        return past
    rows = _count_rows(pipeline, before, versions)
    entry = replace(before, at=micros(datetime.now(UTC)), versions=versions)
    past = record_entries(pipeline, past, [entry])
    crashpoint("publish.noted")
    _write_pointer(pipeline, _describe(past, before.run or 0, rows), past.published)
    return past


def _count_rows(
    pipeline: Pipeline, entry: LedgerEntry, versions: Mapping[str, int]
) -> dict[str, int]:
    """The number of rows of every output that `entry` names, as of `versions`."""
    rows: dict[str, int] = {}
    for window in pipeline.windows:
        name = window.name
        if name in entry.versions:
            rows[name] = table_figures.count_rows(pipeline.table(name), versions[name])
    return rows


def _describe(past: LedgerHistory, run: int, rows: Mapping[str, int]) -> Publication:
    """What `past` says is published."""
    outputs: dict[str, Published] = {}
    for name, count in rows.items():
        shown = past.find_first_shown(name)
        if shown is not None:
            first, previous = shown
            at = moment(first.at or 0).isoformat()
            outputs[name] = {
                "version": first.versions[name],
                "rows": count,
                "previous": previous,
                "entry": first.seq,
                "at": at,
            }
    return Publication(run, outputs, past.acceptance.reason if past.acceptance else None)


def unpublished_validated(pipeline: Pipeline, past: LedgerHistory) -> LedgerEntry | None:
    """The validated step that `publish` would publish although other steps came after it."""
    return publishable_entry(past, read_validated(pipeline, past))


def publishable_entry(past: LedgerHistory, validated: Container[int]) -> LedgerEntry | None:
    """The newest step that was validated and is not published yet.

    None unless only runs and backfills came after it: an erased key or a changed spec must not be
    undone for readers.
    """
    for entry in reversed([e for e in past.entries if e.step in (*FINISHED, PUBLISH)]):
        if entry.step == PUBLISH:
            return None
        if entry.seq in validated:
            return entry
        if entry.step not in (CLOSE, BACKFILL_DONE):
            return None
    return None


def _require_validated(pipeline: Pipeline, subject: LedgerEntry) -> None:
    """Raises ExpectationsFailed unless all that failed there was accepted before."""
    outcomes = read_newest(pipeline, subject)
    if not outcomes:
        raise ExpectationsFailed(
            f"{pipeline.name}: run {subject.run} has not been validated; `tidemark validate` first"
        )
    failed = [f"{o.window}: {o.expectation}" for o in outcomes if o.blocks]
    if failed:
        raise ExpectationsFailed(
            f"{pipeline.name}: nothing published, run {subject.run} breaks {len(failed)} "
            f"critical expectations ({'; '.join(failed[:3])}); see the rows with "
            "`tidemark validate --failing`, repair the data, or publish with --accept REASON"
        )


def accept_failures(outcomes: Sequence[Outcome], reason: str | None) -> Acceptance | None:
    """What a publication accepts: all critical failures for `reason`, or those accepted before.

    None where nothing failed and no reason is given.
    """
    failed: dict[str, dict[str, str]] = {}
    for outcome in outcomes:
        because = outcome.accepted or reason
        if outcome.success or outcome.severity != CRITICAL or because is None:
            continue
        # A builtin expectation has no rule. What Tidemark itself promises is looked at each time.
        if outcome.rule:
            failed.setdefault(outcome.window, {})[outcome.rule] = because
    if reason is None:
        # Each reason once, in the order of the outcomes.
        lasting = dict.fromkeys(why for reasons in failed.values() for why in reasons.values())
        reason = "; ".join(lasting) or None
    return None if reason is None else Acceptance(reason, failed)


def _require_reprocessed(pipeline: Pipeline, subject: LedgerEntry, past: LedgerHistory) -> None:
    """Raises UsageError where the source changed rows that were not reprocessed by `subject`."""
    until_subject = LedgerHistory(tuple(e for e in past.entries if e.seq <= subject.seq))
    if any(pending_changes(until_subject)):
        raise UsageError(
            f"{pipeline.name}: run {subject.run} stopped before reprocessing rows that changed in "
            "the source; `tidemark run`, then `tidemark validate`"
        )


def _record_publication(
    pipeline: Pipeline,
    past: LedgerHistory,
    subject: LedgerEntry,
    acceptance: Acceptance | None,
) -> LedgerHistory:
    entry = LedgerEntry(
        PUBLISH,
        run=subject.run,
        at=micros(datetime.now(UTC)),
        versions=subject.versions,
        note=None if acceptance is None else acceptance.as_note(),
    )
    return record_entries(pipeline, past, [entry])


def _write_pointer(pipeline: Pipeline, result: Publication, entry: LedgerEntry | None) -> None:
    seq = entry.seq if entry else None
    text = dumps({"pipeline": pipeline.name, "seq": seq, **result.as_json()}, indent=2)
    pointer = pipeline.table(POINTER)
    store_of(pointer).write(pointer, f"{text}\n".encode())
    crashpoint("publish.pointed")
