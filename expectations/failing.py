"""Which rows of an output fail an expectation, for whoever asks for them.

Outcomes, reports and Data Docs contain no values of rows. These do, so they are stored nowhere.

failed outcome -> its rule of the output's law (breaches.py), or its expectation of the suite
    -> rows[key, window, columns that the expectation is about]
"""

from pathlib import Path

from pyspark.sql import DataFrame

from expectations.acceptance import digest_rule
from expectations.breaches import select_breaching
from expectations.law import Law, law_of
from expectations.outcome import Outcome
from expectations.promises import BREACHES
from expectations.suite import load_suite, named_columns
from expectations.unexpected import names_rows, select_unexpected
from windowing.columns import quoted
from windowing.spec.pipeline import Pipeline


def select_failing(
    output: DataFrame, pipeline: Pipeline, outcome: Outcome, suites: Path
) -> DataFrame | None:
    """The rows of `output` that fail the expectation of `outcome`; `output` is what was judged.

    [key, window, aggregates] -> [key, window, the columns that the expectation is about]. None
    where no single row fails, because the expectation judges all of them together.
    """
    law = law_of(pipeline.window(outcome.window), pipeline.source.key)
    if not outcome.rule:
        return _select_breaching(output, law, outcome)
    for expectation in load_suite(pipeline, suites).get(outcome.window, []):
        if digest_rule(expectation.configuration) == outcome.rule and names_rows(type(expectation)):
            about = named_columns(expectation.configuration.kwargs).values()
            return name_rows(select_unexpected(output, expectation), law, *about)
    return None


def _select_breaching(output: DataFrame, law: Law, outcome: Outcome) -> DataFrame | None:
    """The rows that break a promise of Tidemark's own."""
    try:
        rows = select_breaching(output, law, BREACHES[outcome.expectation])
    except KeyError:
        return None
    about = law.counts if BREACHES[outcome.expectation] == "negative" else ()
    return name_rows(rows, law, *about)


def name_rows(rows: DataFrame, law: Law, *about: str) -> DataFrame:
    """Of rows of an output the key, the window, and the columns `about` which they are named."""
    columns = dict.fromkeys((*law.key, *law.bounds, *about))
    return rows.select(*map(quoted, columns))
