"""Lists the rows that fail an expectation, with their keys and windows."""

from pyspark.sql import DataFrame, SparkSession

from expectations.failing import name_rows, select_failing
from expectations.law import law_of
from expectations.outcome import Outcome, Validation
from expectations.places import suites_of
from jobs.sessions.exact_session import in_exact_session
from jobs.show import Wanted, collect_in_order
from jobs.validation.lost_sums import SUMS_FIT, list_sums, select_lacking_sums
from windowing.columns import END, START
from windowing.ledger.table import read_history
from windowing.report.facts import FailingRows
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta


@in_exact_session
def list_failing(
    spark: SparkSession,
    pipeline: Pipeline,
    found: Validation,
    limit: int,
) -> tuple[FailingRows, ...]:
    """Of every failed expectation of a validation the first rows by window and key, and how many.

    The rows are those of the versions that were judged, and where a sum left its type all that lack
    one. There are none for an expectation that judges all rows together or could not be evaluated.
    Nothing is written. Raises SpecError for an invalid suite file.
    """
    judged = next(e for e in read_history(pipeline).entries if e.seq == found.seq)
    listed = []
    for outcome in found.failed:
        failing = rows = None
        if not outcome.is_unknown:
            table = pipeline.table(outcome.window)
            output = delta.read(spark, table, judged.versions[outcome.window])
            rows = _select_rows(output, pipeline, outcome)
        if rows is not None:
            order = (START, END, *pipeline.source.key)
            failing = collect_in_order(rows, order, Wanted(limit=limit))
        listed.append(FailingRows(outcome.window, outcome.expectation, failing))
    return tuple(listed)


def _select_rows(output: DataFrame, pipeline: Pipeline, outcome: Outcome) -> DataFrame | None:
    if outcome.expectation != SUMS_FIT:
        return select_failing(output, pipeline, outcome, suites_of(pipeline))
    window = pipeline.window(outcome.window)
    lacking = select_lacking_sums(output, window)
    if lacking is None:
        return None
    return name_rows(lacking, law_of(window, pipeline.source.key), *list_sums(window))
