"""Alarms for which the spec holds outputs back, as outcomes of a validation.

ledger -> alarms of the runs since the last publication -> a failed outcome for each output
"""

from collections.abc import Collection

from expectations.outcome import CRITICAL, Outcome
from windowing.doctor.rule import name_command
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import LedgerEntry
from windowing.report.alarms import MAX_AGE, QUARANTINED, ROWS_FACTOR, Raised, list_alarms
from windowing.spec.pipeline import Alarms, Pipeline

_SUITE = "builtin"
_NOT_QUARANTINED = "rows_are_not_quarantined"
_NAMES = {
    QUARANTINED: _NOT_QUARANTINED,
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


def advise_on_rows(pipeline: Pipeline, broken: Collection[str]) -> str:
    """What shows the rows that break these expectations, as the begin of a list of advice.

    It is empty where no row is to blame, as with an alarm of how many there are.
    """
    commands = []
    if not {*_NAMES.values(), _LOST}.issuperset(broken):
        commands.append(name_command(pipeline, "validate", "--failing"))
    if _NOT_QUARANTINED in broken:
        commands.append(name_command(pipeline, "late", "--outcome quarantined"))
    return f"see the rows with {' and '.join(commands)}, " if commands else ""


def _to_outcome(window: str, raised: Raised) -> Outcome:
    alarm = raised.alarm
    limit = f"alarms.{alarm.name}: {alarm.limit}"
    detail = f"run {raised.run}: {alarm.text}, which is beyond {limit}"
    name = _NAMES.get(alarm.name, _LOST)
    return Outcome(window, _SUITE, name, CRITICAL, False, f"run {raised.run}", detail)
