"""Publishes validated versions: an entry of the ledger is the truth, `_published.json` its copy."""

import os
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from json import dumps

from expectations.table import read_outcomes
from jobs.preflight.lock_file import held_here
from windowing import control, table_figures
from windowing.crash import crashpoint
from windowing.errors import ExpectationsFailed, UsageError
from windowing.files import local_path
from windowing.grid.zone import micros
from windowing.ledger.rule import (
    BACKFILL_DONE,
    CLOSE,
    FINISHED,
    PUBLISH,
    LedgerEntry,
    LedgerHistory,
)
from windowing.ledger.table import read_history, record_entries
from windowing.source.rule import pending_changes
from windowing.spec.pipeline import Pipeline

POINTER = "_published.json"


@dataclass(frozen=True)
class Publication:
    """What is published: the run, and for each output its version and number of rows."""

    run: int
    outputs: dict[str, dict[str, int]]
    accepted: str | None = None

    def as_json(self) -> dict[str, object]:
        """The publication as plain JSON values."""
        return {"run": self.run, "outputs": self.outputs, "accepted": self.accepted}


def publish(pipeline: Pipeline, accept: str | None = None) -> Publication:
    """Publishes every output at the version that the newest validated run wrote.

    Where a run or backfill came after the one that was validated, the validated one is published,
    unless it was already. `accept` publishes although expectations failed, and records the reason.
    Before the first finished run nothing is published. Raises ExpectationsFailed when expectations
    failed or were not evaluated, and UsageError while an erase or a reprocessing is incomplete.
    """
    if read_history(pipeline).newest is None:
        return Publication(0, {})
    with held_here(pipeline):
        past = read_history(pipeline)
        subject = past.newest
        if subject is None:
            return Publication(0, {})
        if accept is None:
            outcomes = read_outcomes(pipeline, past)
            subject = publishable_entry(past, {row["seq"] for row in outcomes}) or subject
            subject_outcomes = [row for row in outcomes if row["seq"] == subject.seq]
            _require_validated(pipeline, subject, subject_outcomes)
            _require_reprocessed(pipeline, subject, past)
        if past.open_erasure is not None and subject.seq < past.open_erasure.seq:
            raise UsageError(
                f"{pipeline.name}: nothing is published, because an erase is incomplete; "
                "rerun `tidemark erase`, then publish"
            )
        outputs = _count_rows(pipeline, subject, subject.versions)
        result = Publication(subject.run or 0, outputs, accept)
        if accept is not None or not past.shows(subject):
            past = _record_publication(pipeline, past, subject, accept)
            crashpoint("publish.noted")
        _write_pointer(pipeline, result, past.published)
        return result


def repoint_published(
    pipeline: Pipeline, past: LedgerHistory, versions: Mapping[str, int]
) -> LedgerHistory:
    """Publishes `versions`, which contain what is published now without what was erased.

    Returns the story with the new publish entry; does nothing where nothing is published.
    """
    before = past.published
    if before is None:
        return past
    outputs = _count_rows(pipeline, before, versions)
    entry = replace(before, at=micros(datetime.now(UTC)), versions=versions)
    past = record_entries(pipeline, past, [entry])
    crashpoint("publish.noted")
    _write_pointer(pipeline, Publication(before.run or 0, outputs), past.published)
    return past


def _count_rows(
    pipeline: Pipeline, entry: LedgerEntry, versions: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """Version and number of rows of every output that `entry` names, as of `versions`."""
    outputs: dict[str, dict[str, int]] = {}
    for window in pipeline.windows:
        name = window.name
        if name in entry.versions:
            path = str(local_path(pipeline.table(name)))
            rows = table_figures.count_rows(path, versions[name])
            outputs[name] = {"version": versions[name], "rows": rows}
    return outputs


def unpublished_validated(pipeline: Pipeline, past: LedgerHistory) -> LedgerEntry | None:
    """The validated step that `publish` would publish although other steps came after it."""
    return publishable_entry(past, {row["seq"] for row in read_outcomes(pipeline, past)})


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


def _require_validated(
    pipeline: Pipeline, subject: LedgerEntry, outcomes: list[control.Row]
) -> None:
    if not outcomes:
        raise ExpectationsFailed(
            f"{pipeline.name}: run {subject.run} has not been validated; `tidemark validate` first"
        )
    latest = max(row["checked_at"] for row in outcomes)
    failed = [
        f"{row['window']}: {row['expectation']}"
        for row in outcomes
        if row["checked_at"] == latest and row["severity"] == "critical" and not row["success"]
    ]
    if failed:
        raise ExpectationsFailed(
            f"{pipeline.name}: nothing published, run {subject.run} breaks {len(failed)} "
            f"critical expectations ({'; '.join(failed[:3])}); "
            "repair the data, or publish with --accept REASON"
        )


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
    accept: str | None,
) -> LedgerHistory:
    entry = LedgerEntry(
        PUBLISH,
        run=subject.run,
        at=micros(datetime.now(UTC)),
        versions=subject.versions,
        note=None if accept is None else dumps({"accepted": accept}),
    )
    return record_entries(pipeline, past, [entry])


def _write_pointer(pipeline: Pipeline, result: Publication, entry: LedgerEntry | None) -> None:
    """Replaces the pointer in one step: readers see the old file or the new one, never a part."""
    path = local_path(pipeline.table(POINTER))
    draft = path.with_suffix(".draft")
    seq = entry.seq if entry else None
    text = dumps({"pipeline": pipeline.name, "seq": seq, **result.as_json()}, indent=2)
    with draft.open("w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    crashpoint("publish.drafted")
    os.replace(draft, path)
    # Without this the rename may be lost when the host loses power, although the file is on disk.
    directory = os.open(path.parent, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
    crashpoint("publish.pointed")
