"""Alarms for which the spec holds outputs back, as outcomes of a validation.

ledger -> alarms of the runs since the last publication -> a failed outcome for each output
"""

from expectations.outcome import CRITICAL, Outcome
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import LedgerEntry
from windowing.report.alarms import MAX_AGE, QUARANTINED, ROWS_FACTOR, Raised, list_alarms
from windowing.spec.pipeline import Alarms, Pipeline

_SUITE = "builtin"
_NAMES = {
    QUARANTINED: "rows_are_not_quarantined",
    MAX_AGE: "event_times_are_not_too_old",
    ROWS_FACTOR: "rows_are_as_many_as_usual",
}
_LOST = "values_are_not_lost"


def list_held(pipeline: Pipeline, past: LedgerHistory, subject: LedgerEntry) -> tuple[Raised, ...]:
    """The alarms up to the step `subject` that hold outputs, oldest first."""
    if pipeline.alarms == Alarms():
        return ()
    raised = list_alarms(past, pipeline.alarms)
    return tuple(each for each in raised if each.alarm.holds and each.seq <= subject.seq)


def find_holding(
    pipeline: Pipeline, past: LedgerHistory, subject: LedgerEntry
) -> tuple[Outcome, ...]:
    """By output and kind of alarm the newest one of a run that readers do not see; each fails.

    A run that accepted nothing has left the published version as it was, and fails as well.
    """
    held = list_held(pipeline, past, subject)
    outcomes = []
    for window in pipeline.windows:
        if not held or window.name not in subject.versions:
            continue
        shown = past.run_shown(window.name) or 0
        newest = {each.alarm.name: each for each in held if each.run > shown}
        outcomes += [_to_outcome(window.name, each) for each in newest.values()]
    return tuple(outcomes)


def _to_outcome(window: str, raised: Raised) -> Outcome:
    alarm = raised.alarm
    detail = f"run {raised.run}: {alarm.text}, which is beyond alarms.{alarm.name}"
    name = _NAMES.get(alarm.name, _LOST)
    return Outcome(window, _SUITE, name, CRITICAL, False, f"run {raised.run}", detail)
