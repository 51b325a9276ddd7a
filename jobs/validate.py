"""Validates the versions that one finished run wrote and records every outcome in `_quality`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from expectations.evaluate import evaluate
from expectations.law import law_of
from expectations.outcome import NO_VALIDATION, Facts, Outcome, Standing, Validation
from expectations.places import docs_of, suites_of
from expectations.table import record_outcomes
from jobs.diagnosis.spec_changes import check_kept_names, spec_difference
from jobs.locking import lock
from jobs.microbatch.context import RunContext, context_after
from jobs.recompute.totals import count_accepted, count_partly_late
from jobs.sessions.exact_session import in_exact_session
from jobs.validation.alarming import find_holding
from jobs.validation.lost_sums import SUMS_FIT, has_lost_sums, select_lacking_sums
from jobs.validation.validated import (
    count_overflows,
    depends_on_state,
    digest_basis,
    list_reopened,
    name_site,
    recorded_facts,
)
from windowing.closed.rule import restated_name
from windowing.crash import crashpoint
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import LedgerEntry
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.merge import table as outputs
from windowing.merge.rule import output_table
from windowing.report.text import left_open
from windowing.rows import column_named
from windowing.spec.kinds import Aligned, Window
from windowing.spec.pipeline import Pipeline
from windowing.storage import control, delta, table_figures

_IS_NULL = " and is null"
_MAY_BE_NULL = (
    "; a sum is null, and whether for that reason can't be computed again, "
    "because state has expired or a step is not finished"
)


@in_exact_session
def validate(spark: SparkSession, pipeline: Pipeline, suites: Path | None = None) -> Validation:
    """Evaluates the expectations of the outputs as the newest finished run or backfill left them.

    A failed expectation is a result, not an error. The suite is read from `suites`, else from the
    folder `expectations` beside the spec, else from the shipped ones. What `publish` was told to
    accept stays accepted as long as it is the same rows that fail. Before the first finished run
    nothing is evaluated. Raises SpecError for an invalid suite file, and StateRefused where the
    spec describes under a name something else than what was made under it.
    """
    with lock.writer(spark, pipeline):
        past = read_history(pipeline)
        subject = past.newest
        if subject is None:
            return NO_VALIDATION
        check_kept_names(pipeline, past)
        shown: dict[str, DataFrame] = {}
        for window in pipeline.windows:
            version = subject.versions.get(window.name)
            if version is not None:
                shown[window.name] = delta.read(spark, pipeline.table(window.name), version)
        suites = suites or suites_of(pipeline)
        basis = digest_basis(pipeline, past, subject, suites)
        expected = _read_facts(spark, pipeline, past)
        expected = _count_restated(spark, pipeline, subject, expected)
        title = name_site(subject.run, subject.seq)
        standing = _find_standing(spark, pipeline, past)
        verdict = evaluate(shown, pipeline, expected, docs_of(pipeline), title, suites, standing)
        overflows = _list_overflows(context_after(spark, pipeline, past), shown, past, subject)
        outcomes = (*verdict.outcomes, *overflows, *find_holding(pipeline, past, subject))
        result = Validation(subject.run or 0, subject.seq, outcomes, str(verdict.docs_index))
        crashpoint("validate.evaluated")
        record_outcomes(pipeline, subject, result.outcomes, basis)
        crashpoint("validate.recorded")
        return result


def _find_standing(
    spark: SparkSession, pipeline: Pipeline, past: LedgerHistory
) -> dict[str, Standing]:
    """Window name -> what readers see of it, where that had failed and was accepted."""
    published, acceptance = past.published, past.acceptance
    found: dict[str, Standing] = {}
    if published is None or acceptance is None:
        return found
    for name, reasons in acceptance.failed.items():
        version = published.versions.get(name)
        if version is None:
            continue
        try:
            shown = delta.read(spark, pipeline.table(name), version)
        except AnalysisException:
            # Its commit has expired, so no row is known to be the same.
            continue
        found[name] = Standing(shown, reasons)
    return found


def _count_restated(
    spark: SparkSession, pipeline: Pipeline, subject: LedgerEntry, expected: Facts
) -> Facts:
    """The facts, by which what closed outputs lack counts as late for them.

    It is what their restated rows have more than the frozen ones, which may be less than nothing.
    """
    missing: dict[str, int] = {}
    for window in pipeline.windows:
        restated = subject.versions.get(restated_name(window.name))
        totals = law_of(window, pipeline.source.key).totals
        if restated is None or not totals:
            continue
        if not _may_have_rows(pipeline.table(restated_name(window.name)), restated):
            continue
        target, version = output_table(pipeline, window), subject.versions[window.name]
        total = F.coalesce(F.sum(column_named(totals[0])), F.lit(0))
        by_state = outputs.read_version(spark, target, version, restated)
        shown = outputs.read_version(spark, target, version, None)
        ((of_state,),) = by_state.agg(total).collect()
        ((of_shown,),) = shown.agg(total).collect()
        missing[window.name] = expected.partial.get(window.name, 0) + of_state - of_shown
    return replace(expected, partial={**expected.partial, **missing})


def _may_have_rows(path: Location, version: int) -> bool:
    """Whether a version of a table has a row, by its log; true where only Spark can tell."""
    try:
        return table_figures.count_rows(path, version) > 0
    except control.TableError:
        return True


def _read_facts(spark: SparkSession, pipeline: Pipeline, past: LedgerHistory) -> Facts:
    """The facts of the ledger, or those of state while an erase is incomplete.

    The ledger counts what is erased only once the erase is done.
    """
    recorded = recorded_facts(pipeline, past)
    if not depends_on_state(past):
        return recorded
    batch = context_after(spark, pipeline, past)
    accepted = count_accepted(batch)
    partial = dict.fromkeys(recorded.partial, 0) | count_partly_late(batch)
    return replace(recorded, accepted=accepted, partial=partial)


def _list_overflows(
    batch: RunContext, outputs: Mapping[str, DataFrame], past: LedgerHistory, subject: LedgerEntry
) -> list[Outcome]:
    """A failed outcome for each output that lacks a sum, because it overflowed its type.

    Overflows are counted since the published versions. An output passes again once no null of its
    sums is due to one. What a reopened period shows may have such a null, however long ago the sum
    overflowed.
    """
    outcomes: list[Outcome] = []
    counted = count_overflows(batch.pipeline, past, subject)
    reopened = list_reopened(batch.pipeline, past, subject)
    for name in outputs:
        if name not in counted and name not in reopened:
            continue
        reason = _find_lost_sums(batch, outputs[name], batch.pipeline.window(name), past, subject)
        if reason is not None:
            times = counted.get(name)
            detail = "while a period was closed a window's sum left its type"
            if times is not None:
                detail = f"{times} times since the last publication a window's sum left its type"
            outcomes.append(_overflow_outcome(name, times or 1, f"{detail}{reason}"))
    return outcomes


def _find_lost_sums(
    batch: RunContext, rows: DataFrame, window: Window, past: LedgerHistory, subject: LedgerEntry
) -> str | None:
    """The end of a sentence about sums that left their type; None where there is none."""
    has_one_batch = subject.run is None or len(past.done(subject.run)) < 2
    is_restated = f"{window.name}.restated" in subject.counts
    # What a batch has found may be right again since a later one of its run, or not be shown.
    if has_one_batch and not is_restated and subject.counts.get(f"{window.name}.overflow"):
        return _IS_NULL
    lacking = select_lacking_sums(rows, window)
    if lacking is None:
        return None
    if _can_state_tell(batch.pipeline, window, past):
        return _IS_NULL if has_lost_sums(batch, window, lacking) else None
    return None if lacking.isEmpty() else _MAY_BE_NULL


def _can_state_tell(pipeline: Pipeline, window: Window, past: LedgerHistory) -> bool:
    """Whether state has all that the newest output of `window` was computed from, and no more."""
    if left_open(past) or spec_difference(pipeline, past):
        return False
    return not (isinstance(window, Aligned) and past.state_may_be_expired)


def _overflow_outcome(name: str, times: int, detail: str) -> Outcome:
    return Outcome(name, "builtin", SUMS_FIT, "critical", False, str(times), detail)
