"""Validates the versions that one finished run wrote and records every outcome in `_quality`."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from expectations.evaluate import evaluate
from expectations.outcome import Facts, Outcome, passed
from jobs import lock
from jobs.newest import QUALITY, newest
from windowing import delta
from windowing.delta import local_path
from windowing.errors import UsageError
from windowing.ledger.rule import Entry, Story
from windowing.ledger.table import story
from windowing.spec.pipeline import Pipeline

DOCS = "_docs"
SUITES = Path(__file__).parents[1] / "expectations" / "suites"
_SCHEMA = """run bigint, seq bigint, window string, suite string, expectation string, severity string, success boolean, observed string,
detail string, checked_at timestamp, version bigint"""


@dataclass(frozen=True)
class Validation:
    """What the expectations said of one run's outputs; `seq` is the ledger entry that names the versions."""

    run: int
    seq: int
    outcomes: tuple[Outcome, ...]
    docs: str

    @property
    def passed(self) -> bool:
        """No critical expectation failed."""
        return passed(self.outcomes)

    def as_json(self) -> dict[str, object]:
        """The verdict as plain JSON values; only failed expectations are listed."""
        failed = [{"window": o.window, "expectation": o.expectation, "severity": o.severity, "detail": o.detail} for o in self.failed]
        return {"run": self.run, "passed": self.passed, "checked": len(self.outcomes), "failed": failed, "docs": self.docs}

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The expectations that don't hold, warnings included."""
        return tuple(o for o in self.outcomes if not o.success)


def validate(spark: SparkSession, pipeline: Pipeline, suites: Path = SUITES) -> Validation:
    """Checks the outputs as the newest finished run or backfill left them; a failure is a result, not an error.

    Raises UsageError before the first finished run, SpecError for a broken suite file.
    """
    with lock.writer(spark, pipeline):
        past = story(spark, pipeline)
        subject = newest(pipeline, past)
        outputs = {w.name: delta.read(spark, pipeline.table(w.name), subject.versions[w.name]) for w in pipeline.windows}
        docs = local_path(pipeline.table(DOCS))
        verdict = evaluate(outputs, pipeline, facts(pipeline, past), docs, f"run {subject.run} entry {subject.seq}", suites)
        result = Validation(subject.run or 0, subject.seq, (*verdict.outcomes, *_overflows(pipeline, subject)), str(verdict.docs_index))
        _record(spark, pipeline, subject, result)
        return result


def facts(pipeline: Pipeline, past: Story) -> Facts:
    """What the ledger says the outputs must add up to."""
    partial = {w.name: past.total(f"partial.{w.name}") for w in pipeline.windows}
    return Facts(run=past.last_run, accepted=past.total("accepted"), partial=partial)


def _overflows(pipeline: Pipeline, subject: Entry) -> list[Outcome]:
    """One failed outcome for each output in which the run met a sum beyond its type."""
    lost = {w.name: subject.counts.get(f"{w.name}.overflow", 0) for w in pipeline.windows}
    said = "{} windows hold a sum that left its type and is null"
    return [Outcome(w, "builtin", "sums_fit_their_type", "critical", False, str(n), said.format(n)) for w, n in lost.items() if n]


def _record(spark: SparkSession, pipeline: Pipeline, subject: Entry, result: Validation) -> None:
    now = datetime.now(UTC)
    origin = {"run": result.run, "seq": subject.seq, "checked_at": now}
    rows = [{**asdict(o), **origin, "version": subject.versions.get(o.window)} for o in result.outcomes]
    delta.append(delta.rows(spark, rows, _SCHEMA), pipeline.table(QUALITY))
