"""What may be published of a validated step, and what of it is accepted or held back."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from expectations.outcome import CRITICAL, Outcome
from windowing.ledger.acceptance import Acceptance, Reasons
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import (
    BACKFILL_DONE,
    CLOSE,
    FINISHED,
    PERIOD_CLOSED,
    PERIOD_INTENT,
    PUBLISH,
    RUN_OF,
    LedgerEntry,
)
from windowing.merge.rule import is_internal, name_complete
from windowing.spec.pipeline import Pipeline


def publishable_entry(past: LedgerHistory, validated: Container[int]) -> LedgerEntry | None:
    """The newest step that was validated and is not published yet.

    None unless only runs and backfills came after it: an erased key or a changed spec must not be
    undone for readers, and rows from before a close are not those that it freezes.
    """
    looked_at = (*FINISHED, PERIOD_INTENT, PERIOD_CLOSED, PUBLISH)
    for entry in reversed([e for e in past.entries if e.step in looked_at]):
        if entry.step == PUBLISH:
            return None
        if entry.seq in validated:
            return entry
        if entry.step not in (CLOSE, BACKFILL_DONE):
            return None
    return None


def list_broken(outcomes: Iterable[Outcome]) -> dict[str, list[str]]:
    """Window name -> the expectations for which its output may not be published."""
    broken: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.blocks:
            broken.setdefault(outcome.window, []).append(outcome.expectation)
    return broken


def accept_failures(
    outcomes: Iterable[Outcome], reason: str | None, kept: Mapping[str, Reasons]
) -> Acceptance | None:
    """What a publication accepts: all critical failures for `reason`, or those accepted before.

    `kept` has what was accepted of outputs that are held back, which readers go on to see. None
    where nothing fails and no reason is given.
    """
    failed = {window: dict(reasons) for window, reasons in kept.items() if reasons}
    for outcome in outcomes:
        because = outcome.accepted or reason
        if outcome.success or outcome.severity != CRITICAL or because is None:
            continue
        # A builtin expectation has no rule. What Tidemark itself promises is looked at each time.
        if outcome.rule and outcome.window not in kept:
            failed.setdefault(outcome.window, {})[outcome.rule] = because
    if reason is None:
        # Each reason once, in the order of the outcomes.
        lasting = dict.fromkeys(why for reasons in failed.values() for why in reasons.values())
        reason = "; ".join(lasting) or None
    return None if reason is None else Acceptance(reason, failed)


def keep_accepted(past: LedgerHistory, held: Iterable[str]) -> dict[str, Reasons]:
    """What was accepted of each output in `held`, as readers see it now."""
    before = {} if past.acceptance is None else past.acceptance.failed
    return {name: before.get(name, {}) for name in held}


def join_acceptances(
    earlier: Acceptance | None, now: Acceptance | None, kept: Iterable[str]
) -> Acceptance | None:
    """What was accepted of an earlier publication, and of the outputs `kept` as they are now."""
    failed_now = {} if now is None else now.failed
    failed = {name: failed_now[name] for name in kept if name in failed_now}
    if now is None or not failed:
        return earlier
    if earlier is None:
        return Acceptance(now.reason, failed)
    return Acceptance(earlier.reason, {**earlier.failed, **failed})


@dataclass(frozen=True)
class Versions:
    """By table the version that readers are to see, and the run of each output held back."""

    by_table: Mapping[str, int]
    runs: Mapping[str, int]


def list_removed(pipeline: Pipeline, past: LedgerHistory, subject: LedgerEntry) -> list[str]:
    """The outputs of `subject` that the spec has no more, unless readers see what it has of them.

    Nothing has judged these rows, and with the window in the spec again readers would see them.
    """
    shown = {} if past.published is None else past.published.versions
    windows = {window.name for window in pipeline.windows}
    return [
        name
        for name, version in subject.versions.items()
        if not is_internal(name) and name not in windows and shown.get(name) != version
    ]


def hold_back(past: LedgerHistory, subject: LedgerEntry, held: Iterable[str]) -> Versions:
    """The versions of `subject`, but of the outputs `held` those that readers see now.

    An output that they have not seen yet is left out.
    """
    shown = {} if past.published is None else past.published.versions
    by_table = dict(subject.versions)
    runs: dict[str, int] = {}
    for name in held:
        # What is closed in an output may be recorded in another table, which goes with it.
        for table in (name, name_complete(name)):
            by_table.pop(table, None)
            if table in shown:
                by_table[table] = shown[table]
        run = past.run_shown(name)
        if run is not None:
            runs[f"{RUN_OF}{name}"] = run
    return Versions(by_table, runs)


def is_shown(past: LedgerHistory, run: int | None, versions: Versions) -> bool:
    """Whether readers see exactly that already."""
    seen = past.published
    return seen is not None and (seen.versions, seen.run, seen.counts) == (
        versions.by_table,
        run,
        versions.runs,
    )
