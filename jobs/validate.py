"""Validates the versions that one finished run wrote and records every outcome in `_quality`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from expectations.evaluate import evaluate
from expectations.outcome import Facts, Outcome, passed
from expectations.places import suites_of
from expectations.table import QUALITY, record_outcomes
from jobs.microbatch.context import Batch
from jobs.preflight import lock
from jobs.preflight.exact_session import in_exact_session
from jobs.publish import unseen
from jobs.recompute.totals import held, still_partial
from windowing import delta
from windowing.crash import crashpoint
from windowing.delta import local_path
from windowing.ledger.rule import GENERATION, Entry, Story
from windowing.ledger.table import story
from windowing.panes.rule import NO_BATCH
from windowing.panes.table import Stamp
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline

DOCS = "_docs"


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
        failed = [
            {
                "window": o.window,
                "expectation": o.expectation,
                "severity": o.severity,
                "detail": o.detail,
            }
            for o in self.failed
        ]
        return {
            "run": self.run,
            "passed": self.passed,
            "checked": len(self.outcomes),
            "failed": failed,
            "docs": self.docs,
        }

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The expectations that don't hold, warnings included."""
        return tuple(o for o in self.outcomes if not o.success)


@in_exact_session
def validate(spark: SparkSession, pipeline: Pipeline, suites: Path | None = None) -> Validation:
    """Checks the outputs as the newest finished run or backfill left them; a failure is a result, not an error.

    The suite is looked for in `suites`, else in `expectations/` beside the spec, else among the shipped ones. Before the first
    finished run there is nothing to check. Raises SpecError for a broken suite file.
    """
    with lock.writer(spark, pipeline):
        past = story(spark, pipeline)
        subject = past.newest
        if subject is None:
            return Validation(0, -1, (), "")
        named = [w.name for w in pipeline.windows if w.name in subject.versions]
        outputs = {
            name: delta.read(spark, pipeline.table(name), subject.versions[name]) for name in named
        }
        docs = local_path(pipeline.table(DOCS))
        name, where = f"run {subject.run} entry {subject.seq}", suites or suites_of(pipeline)
        verdict = evaluate(outputs, pipeline, _facts(spark, pipeline, past), docs, name, where)
        outcomes = (*verdict.outcomes, *_overflows(outputs, pipeline, past, subject))
        result = Validation(subject.run or 0, subject.seq, outcomes, str(verdict.docs_index))
        crashpoint("validate.evaluated")
        record_outcomes(
            spark,
            pipeline.table(QUALITY),
            result.run,
            subject.seq,
            subject.versions,
            result.outcomes,
        )
        crashpoint("validate.recorded")
        return result


def facts(pipeline: Pipeline, past: Story) -> Facts:
    """What the ledger says the outputs must add up to."""
    settled = past.settled
    partial = {w.name: settled.total(f"partial.{w.name}") for w in pipeline.windows}
    return Facts(run=settled.last_run, accepted=settled.total("accepted"), partial=partial)


def _facts(spark: SparkSession, pipeline: Pipeline, past: Story) -> Facts:
    """The same, but what state holds while a key is half erased: how much of it is gone no ledger knows yet."""
    told = facts(pipeline, past)
    if past.open_erasure is None or past.open_run is not None or past.worn:
        return told
    batch = Batch(
        spark, pipeline, Stamp(past.last_run, NO_BATCH, GENERATION, None), past.last_arrival or 0
    )
    return replace(
        told, accepted=held(batch), partial=dict.fromkeys(told.partial, 0) | still_partial(batch)
    )


def _overflows(
    outputs: Mapping[str, DataFrame], pipeline: Pipeline, past: Story, subject: Entry
) -> list[Outcome]:
    """One failed outcome for each output in which a sum beyond its type was met since what readers see, and still may be lost."""
    steps = [e.counts for e in unseen(past) if e.seq <= subject.seq]
    met = {
        w.name: sum(counts.get(f"{w.name}.overflow", 0) for counts in steps)
        for w in pipeline.windows
        if w.name in outputs
    }
    lost = {
        w: n
        for w, n in met.items()
        if n
        and (subject.counts.get(f"{w}.overflow") or _lacks_sums(outputs[w], pipeline.window(w)))
    }
    said = "{} times since the last publication a window's sum left its type and is null"
    return [
        Outcome(w, "builtin", "sums_fit_their_type", "critical", False, str(n), said.format(n))
        for w, n in lost.items()
        if n
    ]


def _lacks_sums(rows: DataFrame, window: Window) -> bool:
    sums = [
        F.col(f"`{a.name}`").isNull() for a in window.aggregates if a.function in ("sum", "avg")
    ]
    return bool(sums) and not rows.where(reduce(lambda x, y: x | y, sums)).isEmpty()
