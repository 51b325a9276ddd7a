"""A validation that finds nothing, for tests of what is published after one."""

from expectations.outcome import CRITICAL, Outcome
from expectations.table import record_outcomes
from windowing.ledger.table import read_history
from windowing.spec.pipeline import Pipeline


def record_met(pipeline: Pipeline) -> None:
    """Records that every output of the newest step is right."""
    newest = read_history(pipeline).newest
    assert newest is not None
    outcomes = [
        Outcome(window.name, "own", "is_right", CRITICAL, True, "", "")
        for window in pipeline.windows
        if window.name in newest.versions
    ]
    record_outcomes(pipeline, newest, outcomes, None)
