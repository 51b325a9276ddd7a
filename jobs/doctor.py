"""Diagnoses a pipeline, and recovers its pointer from the ledger.

A diagnosis finds everything for which the next run would be refused.
"""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from jobs import publish
from jobs.diagnosis.diagnose import (
    examine_tables,
    find_damaged_tables,
    find_problems,
    refusal_of,
)
from jobs.foreign_errors.control_errors import control_errors_explained
from jobs.locking import lock
from jobs.recompute.periods import find_changed_frozen
from jobs.sessions.exact_session import in_exact_session
from windowing.doctor.rule import RECOVER, Finding
from windowing.errors import StateRefused
from windowing.ledger.table import read_history
from windowing.report.text import plain
from windowing.source import table as source
from windowing.spec.pipeline import Pipeline

_MAX_ATTEMPTS = 5
"""How often a diagnosis is repeated at most while other commands write."""


@dataclass(frozen=True)
class Repaired:
    """What `recover` repaired."""

    findings: tuple[Finding, ...]

    def as_json(self) -> dict[str, object]:
        """The repair as plain JSON values."""
        return {"repaired": plain(self.findings)}


@in_exact_session
def recover(spark: SparkSession, pipeline: Pipeline) -> Repaired:
    """Rebuilds the pointer from the ledger where it is newer than that, or was edited.

    Nothing is done where nothing is found. Raises StateRefused for a finding that the ledger can't
    repair.
    """
    with lock.writer(spark, pipeline):
        past = read_history(pipeline)
        for damaged in find_damaged_tables(pipeline, past):
            raise damaged
        found = examine_tables(spark, pipeline, past)
        if not found:
            return Repaired(())
        worst, *_ = found
        if worst.repair != RECOVER:
            raise refusal_of(pipeline, worst)
        publish.rebuild_pointer(pipeline, past)
        return Repaired(found)


@in_exact_session
def diagnose(spark: SparkSession, pipeline: Pipeline) -> tuple[StateRefused, ...]:
    """Everything for which a run would be refused before it reads; writes nothing.

    Of a closed period also whether its rows are still those of which the ledger has the digests.

    It takes no lock. Another command may write between two of its reads and so cause a finding that
    is none, so a finding counts only if the ledger is the same before and after. Where the ledger
    is damaged, nothing can be compared with it, and that is the only finding.
    """
    try:
        with control_errors_explained(pipeline):
            return _find_lasting_problems(spark, pipeline)
    except StateRefused as refused:
        return (refused,)


def _find_lasting_problems(spark: SparkSession, pipeline: Pipeline) -> tuple[StateRefused, ...]:
    past = read_history(pipeline)
    for _ in range(_MAX_ATTEMPTS):
        schema = source.checked_schema(spark, pipeline)
        found = tuple(find_problems(spark, pipeline, schema, past))
        if not found:
            found = tuple(find_changed_frozen(spark, pipeline, past))
        before = past
        past = read_history(pipeline)
        if not found or past == before:
            break
    return found
