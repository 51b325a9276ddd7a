"""Publishes validated versions: an entry of the ledger is the truth.

Published tables show its rows, and `_published.json` is its copy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from json import dumps

from expectations.outcome import Outcome
from expectations.table import read_judgement, read_newest, read_validated
from jobs.diagnosis.pointer import advance_pointer, read_pointer, replace_pointer
from jobs.foreign_errors.control_errors import control_errors_explained
from jobs.locking.lock_file import held_here
from jobs.publication.changed import find_changed_days
from jobs.publication.earlier import (
    choose_earlier,
    has_same_outputs,
    list_earlier,
    list_outputs_since,
)
from jobs.publication.editions import (
    Editions,
    list_editions,
    list_newest_of_left,
    show_editions,
)
from jobs.validation.alarming import advise_on_rows
from jobs.validation.publishable import (
    Versions,
    accept_failures,
    hold_back,
    is_shown,
    join_acceptances,
    keep_accepted,
    list_broken,
    list_removed,
    publishable_entry,
)
from windowing.crash import crashpoint
from windowing.errors import ExpectationsFailed, UsageError
from windowing.grid.zone import micros, moment
from windowing.ledger.acceptance import Rollback, mark_erasure, parse_note, parse_rollback
from windowing.ledger.changed import ChangedDays, add_to_note, list_changes, parse_changed
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import PUBLISH, LedgerEntry
from windowing.ledger.table import read_history, record_entries
from windowing.report import publications
from windowing.report.changed import describe_changed
from windowing.report.publications import Publications, RolledBack
from windowing.report.rule import Publication, Published
from windowing.source.rule import pending_changes
from windowing.spec.pipeline import EACH, Pipeline
from windowing.spec.words import join_names


def publish(pipeline: Pipeline, accept: str | None = None) -> Publication:
    """Publishes every output at the version that the newest validated run wrote.

    Where a run or backfill came after the one that was validated, the validated one is published,
    unless it was already. What readers use already is not judged again. Where the spec says
    `publish: each`, an output that fails is held back and the others are published. `accept`
    publishes the newest run although expectations failed, and records the reason; they have to be
    evaluated, because it accepts failures that were seen. Before the first finished run
    nothing is published.
    Raises ExpectationsFailed when expectations failed or were not evaluated, UsageError while an
    erase or a reprocessing is incomplete and for an empty reason, StateRefused where the ledger is
    damaged, and Busy.
    """
    if accept is not None and not accept.strip():
        raise UsageError(
            f"{pipeline.name}: --accept needs a reason, such as 'the airport was closed that day'"
        )
    with control_errors_explained(pipeline):
        if read_history(pipeline).newest is None:
            return Publication(0, {}, is_new=False)
    with held_here(pipeline):
        past = read_history(pipeline)
        subject = past.newest
        if subject is None:
            return Publication(0, {}, is_new=False)
        is_shown_already = past.shows(subject)
        if accept is None and not is_shown_already:
            subject = unpublished_validated(pipeline, past) or subject
        outcomes = read_newest(pipeline, subject)
        held: Mapping[str, Sequence[str]] = {}
        if not is_shown_already:
            try:
                _require_judged(pipeline, subject, outcomes)
                if accept is None:
                    held = _choose_held(pipeline, subject, outcomes)
                    _require_judged_since_rollback(pipeline, past, outcomes)
            except ExpectationsFailed:
                _finish_showing(pipeline, past)
                raise
        if not is_shown_already:
            _require_reprocessed(pipeline, subject, past)
        if past.open_erasure is not None and subject.seq < past.open_erasure.seq:
            raise UsageError(
                f"{pipeline.name}: nothing is published, because an erase is incomplete; "
                "rerun `tidemark erase`, then publish"
            )
        removed = list_removed(pipeline, past, subject)
        versions = hold_back(past, subject, [*held, *removed])
        editions = list_editions(pipeline, versions.by_table)
        is_recorded = accept is not None or not is_shown(past, subject.run, versions)
        if is_recorded:
            kept = keep_accepted(past, held)
            acceptance = accept_failures(outcomes, accept, kept)
            changed = _find_changed(pipeline, past, editions)
            note = add_to_note(None if acceptance is None else acceptance.as_note(), changed)
            past = _record_publication(pipeline, past, subject, versions, note)
            crashpoint("publish.noted")
        result = _describe(pipeline, past, subject.run or 0, editions, held)
        is_new = _show(pipeline, past, editions, result)
        return replace(_add_changes(result, past), is_new=is_recorded or is_new)


def roll_back(pipeline: Pipeline, to: int | None, reason: str) -> RolledBack:
    """Publishes an earlier publication again, as a publication of its own with a reason.

    `to` is its number; None stands for the last one with other versions of the outputs than readers
    use now, or for that of a rollback which was interrupted. State, outputs and watermark stay as
    they are, and the next publication is that of the newest validated run. An output that the
    earlier publication did not have stays as readers see it. Nothing is recorded where readers use
    those versions already. Raises UsageError where that publication does not exist, can't be read
    any more, or must not be undone, StateRefused where the ledger is damaged, and Busy.
    """
    with held_here(pipeline):
        past = read_history(pipeline)
        chosen = choose_earlier(pipeline, past, to)
        kept = list_outputs_since(pipeline, past, chosen)
        versions = hold_back(past, chosen, kept)
        again = replace(
            chosen, versions=versions.by_table, counts={**chosen.counts, **versions.runs}
        )
        editions = list_earlier(pipeline, past, again)
        now = past.published
        is_recorded = now is None or not has_same_outputs(pipeline, again, now)
        if is_recorded:
            accepted = join_acceptances(parse_note(chosen.note), past.acceptance, kept)
            why = Rollback(chosen.seq, reason).as_note(accepted)
            note = add_to_note(why, _find_changed(pipeline, past, editions))
            at = micros(datetime.now(UTC))
            past = record_entries(pipeline, past, [replace(again, at=at, note=note)])
            crashpoint("publish.noted")
        run = None if past.published is None else past.published.run
        result = _describe(pipeline, past, run or 0, editions)
        is_new = _show(pipeline, past, editions, result)
        return RolledBack(chosen.seq, _add_changes(result, past), is_recorded or is_new, kept)


def list_publications(pipeline: Pipeline) -> Publications:
    """Every publication, oldest first; nothing is written, and no lock is taken.

    Raises StateRefused where the ledger is damaged.
    """
    with control_errors_explained(pipeline):
        past = read_history(pipeline)
    return Publications(tuple(publications.list_publications(past, pipeline.windows)))


def repoint_published(
    pipeline: Pipeline, past: LedgerHistory, versions: Mapping[str, int]
) -> LedgerHistory:
    """Publishes `versions`, which contain what is published now without what was erased.

    Returns the ledger with the new publish entry; does nothing where nothing is published.
    """
    before = past.published
    if before is None:
        return past
    shown = {name: version for name, version in versions.items() if name in before.versions}
    editions = list_editions(pipeline, shown)
    left = list_newest_of_left(pipeline)
    note = add_to_note(mark_erasure(before.note), _find_changed(pipeline, past, editions))
    entry = replace(before, at=micros(datetime.now(UTC)), versions=versions, note=note)
    past = record_entries(pipeline, past, [entry])
    crashpoint("publish.noted")
    result = _describe(pipeline, past, before.run or 0, editions)
    _show(pipeline, past, {**editions, **left}, result)
    return past


def rebuild_pointer(pipeline: Pipeline, past: LedgerHistory) -> None:
    """Writes the pointer and the published tables as the ledger says.

    The pointer is without an output where nothing is published. Busy where the lock was lost.
    """
    published, result = past.published, Publication(0, {})
    if published is not None:
        editions = list_editions(pipeline, published.versions)
        result = _describe(pipeline, past, published.run or 0, editions)
        show_editions(pipeline, editions, published.seq)
    replace_pointer(pipeline, _render_pointer(pipeline, result, published))
    crashpoint("publish.pointed")


def _find_changed(pipeline: Pipeline, past: LedgerHistory, editions: Editions) -> ChangedDays:
    """The days that change for readers once they see `editions`."""
    shown = {} if past.published is None else past.published.versions
    return find_changed_days(pipeline, shown, editions)


def _describe(
    pipeline: Pipeline,
    past: LedgerHistory,
    run: int,
    editions: Editions,
    held: Mapping[str, Sequence[str]] | None = None,
) -> Publication:
    """What `past` says is published, and what was held back of the run."""
    outputs: dict[str, Published] = {}
    for name, edition in editions.items():
        shown = past.find_first_shown(name)
        if shown is not None:
            first, previous = shown
            at = moment(first.at or 0).isoformat()
            outputs[name] = {
                "version": first.versions[name],
                "run": past.run_shown(name),
                "rows": edition.rows,
                "previous": previous,
                "entry": first.seq,
                "at": at,
                "watermark": _write_time(past.watermark_of(past.run_shown(name))),
            }
    accepted = past.acceptance.reason if past.acceptance else None
    entry = past.published
    number, since = (None, None) if entry is None else (entry.seq, _write_time(entry.at))
    watermark = _write_time(past.watermark_of(run))
    changed = None if entry is None else parse_changed(entry.note)
    days = None if changed is None else describe_changed(changed, pipeline.windows)
    held = held or {}
    return Publication(run, outputs, accepted, held, number, since, watermark, days)


def _add_changes(result: Publication, past: LedgerHistory) -> Publication:
    return replace(result, changes=list_changes(past, result.outputs))


def _write_time(us: int | None) -> str | None:
    return None if us is None else moment(us).isoformat()


def unpublished_validated(pipeline: Pipeline, past: LedgerHistory) -> LedgerEntry | None:
    """The validated step that `publish` would publish although other steps came after it."""
    return publishable_entry(past, read_validated(pipeline, past))


def _require_judged(pipeline: Pipeline, subject: LedgerEntry, outcomes: Sequence[Outcome]) -> None:
    """Raises ExpectationsFailed for an output that the newest validation of `subject` lacks."""
    if not outcomes:
        raise ExpectationsFailed(
            f"{pipeline.name}: run {subject.run} has not been validated; `tidemark validate` first"
        )
    unjudged = set(_list_outputs(pipeline, subject)) - {outcome.window for outcome in outcomes}
    if unjudged:
        raise ExpectationsFailed(
            f"{pipeline.name}: {join_names(sorted(unjudged))} of run {subject.run} was not there "
            "to be validated; `tidemark validate` first"
        )


def _list_outputs(pipeline: Pipeline, subject: LedgerEntry) -> list[str]:
    return [window.name for window in pipeline.windows if window.name in subject.versions]


def _choose_held(
    pipeline: Pipeline, subject: LedgerEntry, outcomes: Sequence[Outcome]
) -> Mapping[str, Sequence[str]]:
    """The outputs to hold back, with what they break by the newest validation of `subject`.

    Raises ExpectationsFailed where nothing can be published.
    """
    broken = list_broken(outcomes)
    others = [name for name in _list_outputs(pipeline, subject) if name not in broken]
    if pipeline.publish == EACH and others:
        return {w.name: broken[w.name] for w in pipeline.windows if w.name in broken}
    failed = [f"{window}: {each}" for window, rules in broken.items() for each in rules]
    if failed:
        rules = {each for broken_rules in broken.values() for each in broken_rules}
        raise ExpectationsFailed(
            f"{pipeline.name}: nothing published, run {subject.run} breaks {len(failed)} "
            f"critical expectations ({'; '.join(failed[:3])}); "
            f"{advise_on_rows(pipeline, rules)}repair the data, or publish with --accept REASON"
        )
    return {}


def _require_judged_since_rollback(
    pipeline: Pipeline, past: LedgerHistory, outcomes: Sequence[Outcome]
) -> None:
    """Raises ExpectationsFailed where a failure was accepted as one that readers saw before.

    Since a rollback they may see it no more, and then it is not accepted.
    """
    shown = past.published
    if shown is None or parse_rollback(shown.note) is None:
        return
    if not any(outcome.accepted for outcome in outcomes):
        return
    newest = read_judgement(pipeline, past)
    if newest is None or newest.at_us <= (shown.at or 0):
        raise ExpectationsFailed(
            f"{pipeline.name}: what fails was accepted by a publication that was rolled back since "
            "then; `tidemark validate` first"
        )


def _require_reprocessed(pipeline: Pipeline, subject: LedgerEntry, past: LedgerHistory) -> None:
    """Raises UsageError where the source changed rows that were not reprocessed by `subject`."""
    if any(pending_changes(past.until_step(subject.seq))):
        raise UsageError(
            f"{pipeline.name}: run {subject.run} stopped before reprocessing rows that changed in "
            "the source; `tidemark run`, then `tidemark validate`"
        )


def _record_publication(
    pipeline: Pipeline,
    past: LedgerHistory,
    subject: LedgerEntry,
    versions: Versions,
    note: str,
) -> LedgerHistory:
    entry = LedgerEntry(
        PUBLISH,
        run=subject.run,
        at=micros(datetime.now(UTC)),
        versions=versions.by_table,
        counts=versions.runs,
        note=note,
    )
    return record_entries(pipeline, past, [entry])


def _finish_showing(pipeline: Pipeline, past: LedgerHistory) -> None:
    """Shows readers what the ledger says is published, where a publication was interrupted."""
    published = past.published
    if published is None or read_pointer(pipeline).step == published.seq:
        return
    editions = list_editions(pipeline, published.versions)
    _show(pipeline, past, editions, _describe(pipeline, past, published.run or 0, editions))


def _show(pipeline: Pipeline, past: LedgerHistory, editions: Editions, result: Publication) -> bool:
    """Makes published tables and pointer those of the newest publication, as `result` tells it.

    Returns whether the pointer named other versions before.
    """
    if past.published is None:
        raise ValueError("nothing is published")
    show_editions(pipeline, editions, past.published.seq)
    content = _render_pointer(pipeline, result, past.published)
    is_new = advance_pointer(pipeline, content, past.published.seq)
    crashpoint("publish.pointed")
    return is_new


def _render_pointer(pipeline: Pipeline, result: Publication, entry: LedgerEntry | None) -> bytes:
    seq = entry.seq if entry else None
    text = dumps({"pipeline": pipeline.name, "seq": seq, **result.as_pointer()}, indent=2)
    return f"{text}\n".encode()
