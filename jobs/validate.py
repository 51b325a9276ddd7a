"""Validates the versions that one finished run wrote and records every outcome in `_quality`."""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from expectations.evaluate import evaluate
from expectations.outcome import NO_VALIDATION, Facts, Outcome, Validation
from expectations.places import docs_of, suites_of
from expectations.table import record_outcomes
from jobs.microbatch.context import RunContext
from jobs.preflight import lock
from jobs.preflight.exact_session import in_exact_session
from jobs.preflight.validated import (
    count_overflows,
    depends_on_state,
    digest_basis,
    name_site,
    recorded_facts,
)
from jobs.recompute.totals import count_accepted, count_partly_late
from windowing import delta
from windowing.crash import crashpoint
from windowing.ledger.rule import GENERATION, LedgerEntry, LedgerHistory
from windowing.ledger.table import read_history
from windowing.panes.rule import NO_BATCH
from windowing.panes.table import Stamp
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline


@in_exact_session
def validate(spark: SparkSession, pipeline: Pipeline, suites: Path | None = None) -> Validation:
    """Evaluates the expectations of the outputs as the newest finished run or backfill left them.

    A failed expectation is a result, not an error. The suite is read from `suites`, else from the
    folder `expectations` beside the spec, else from the shipped ones. Before the first finished run
    nothing is evaluated. Raises SpecError for an invalid suite file.
    """
    with lock.writer(spark, pipeline):
        past = read_history(pipeline)
        subject = past.newest
        if subject is None:
            return NO_VALIDATION
        outputs: dict[str, DataFrame] = {}
        for window in pipeline.windows:
            version = subject.versions.get(window.name)
            if version is not None:
                outputs[window.name] = delta.read(spark, pipeline.table(window.name), version)
        suites = suites or suites_of(pipeline)
        basis = digest_basis(pipeline, past, subject, suites)
        expected = _read_facts(spark, pipeline, past)
        title = name_site(subject)
        verdict = evaluate(outputs, pipeline, expected, docs_of(pipeline), title, suites)
        overflows = _list_overflows(outputs, pipeline, past, subject)
        outcomes = (*verdict.outcomes, *overflows)
        result = Validation(subject.run or 0, subject.seq, outcomes, str(verdict.docs_index))
        crashpoint("validate.evaluated")
        record_outcomes(pipeline, subject, result.outcomes, basis)
        crashpoint("validate.recorded")
        return result


def _read_facts(spark: SparkSession, pipeline: Pipeline, past: LedgerHistory) -> Facts:
    """The facts of the ledger, or those of state while an erase is incomplete.

    The ledger counts what is erased only once the erase is done.
    """
    recorded = recorded_facts(pipeline, past)
    if not depends_on_state(past):
        return recorded
    stamp = Stamp(past.last_run, NO_BATCH, GENERATION, None)
    batch = RunContext(spark, pipeline, stamp, past.last_arrival or 0)
    accepted = count_accepted(batch)
    partial = dict.fromkeys(recorded.partial, 0) | count_partly_late(batch)
    return replace(recorded, accepted=accepted, partial=partial)


def _list_overflows(
    outputs: Mapping[str, DataFrame], pipeline: Pipeline, past: LedgerHistory, subject: LedgerEntry
) -> list[Outcome]:
    """A failed outcome for each output that lacks a sum, because it overflowed its type.

    Overflows are counted since the published versions. An output that has all its sums again
    passes.
    """
    outcomes: list[Outcome] = []
    for name, times in count_overflows(pipeline, past, subject).items():
        if name not in outputs:
            continue
        has_overflowed_now = bool(subject.counts.get(f"{name}.overflow"))
        if has_overflowed_now or _lacks_sums(outputs[name], pipeline.window(name)):
            outcomes.append(_overflow_outcome(name, times))
    return outcomes


def _overflow_outcome(name: str, times: int) -> Outcome:
    detail = f"{times} times since the last publication a window's sum left its type and is null"
    return Outcome(name, "builtin", "sums_fit_their_type", "critical", False, str(times), detail)


def _lacks_sums(rows: DataFrame, window: Window) -> bool:
    """Whether a sum or an average of any window is null."""
    is_null = []
    for aggregate in window.aggregates:
        if aggregate.function in ("sum", "avg"):
            is_null.append(F.col(f"`{aggregate.name}`").isNull())
    if not is_null:
        return False
    lacking = rows.where(reduce(lambda left, right: left | right, is_null))
    return not lacking.isEmpty()
