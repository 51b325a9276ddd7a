"""Everything for which the next run would be refused, and the repair of a checkpoint by what the ledger knows."""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from jobs.preflight import checkpoint, lock
from jobs.preflight.diagnose import examine, problems, refused
from jobs.preflight.exact_session import in_exact_session
from windowing.doctor.rule import RECOVER, Finding
from windowing.errors import StateRefused
from windowing.ledger.table import story
from windowing.spec.pipeline import Pipeline

_LOOKS = 5
"""How often at most a diagnosis is made while others are at work."""


@dataclass(frozen=True)
class Repaired:
    """What `recover` found, and where it put the old checkpoint."""

    findings: tuple[Finding, ...]
    kept: str | None

    def as_json(self) -> dict[str, object]:
        """The repair as plain JSON values."""
        return {
            "repaired": [{"code": f.code, "found": f.found} for f in self.findings],
            "kept": self.kept,
        }


@in_exact_session
def recover(spark: SparkSession, pipeline: Pipeline) -> Repaired:
    """Makes the checkpoint anew where the ledger can tell what was in it; StateRefused for anything else."""
    with lock.writer(spark, pipeline):
        past = story(spark, pipeline)
        found = examine(spark, pipeline, past)
        if not found:
            return Repaired((), None)
        if _worst(found).repair != RECOVER:
            raise refused(pipeline, _worst(found))
        kept = checkpoint.rebuild(pipeline, past)
        return Repaired(found, None if kept is None else str(kept))


def _worst(found: tuple[Finding, ...]) -> Finding:
    """The finding whose repair includes the others'."""
    return max(found, key=lambda f: f.repair != RECOVER)


@in_exact_session
def diagnosis(spark: SparkSession, pipeline: Pipeline) -> tuple[StateRefused, ...]:
    """Everything for which a run would be refused before it reads; nothing is written.

    It takes no lock: what was found while another command went on is looked for again, a few times.
    """
    past = story(spark, pipeline)
    for _ in range(_LOOKS):
        found, before = tuple(problems(spark, pipeline, past)), past
        past = story(spark, pipeline)
        if not found or past == before:
            break
    return found
