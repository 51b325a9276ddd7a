"""What the report page of a pipeline shows, with rows where they were asked for."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from expectations.outcome import Validation
from expectations.table import read_newest
from jobs.foreign_errors.control_errors import control_errors_explained
from jobs.validation.validated import find_docs
from windowing.admit.outcomes import REFUSED_OUTCOMES
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.report.facts import Facts, FailingRows, Samples
from windowing.report.kept_rows import Asked
from windowing.report.rows import Refused
from windowing.report.table import read_facts
from windowing.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLED = 20
"""How many refused rows are shown, and of each failed expectation how many failing rows."""


def report(
    pipeline: Pipeline, open_session: "Callable[[], SparkSession]", asked: Asked = Asked.COUNTS
) -> Facts:
    """The facts of a pipeline; nothing is written, and before the first run nearly all is empty.

    `open_session` is called where a table can't be read without Spark, and for rows that were asked
    for. Raises StateRefused where the ledger is damaged, and SpecError for an invalid suite.
    """
    with control_errors_explained(pipeline):
        facts = read_facts(pipeline, open_session, asked)
        if asked is Asked.COUNTS:
            return facts
        return replace(facts, samples=_collect_samples(pipeline, open_session, facts))


def locate_docs(pipeline: Pipeline, facts: Facts) -> Location | None:
    """The first page of the Data Docs of the newest validation; None where there are none."""
    if not facts.validations:
        return None
    newest = facts.validations[-1]
    return find_docs(pipeline, newest.run, newest.seq)


def _collect_samples(
    pipeline: Pipeline, open_session: "Callable[[], SparkSession]", facts: Facts
) -> Samples:
    refused = Refused(dict.fromkeys(REFUSED_OUTCOMES, 0), ())
    if facts.refusals:
        from jobs.show import Wanted, show_refused

        wanted = Wanted(newest_first=True, limit=SAMPLED)
        refused = show_refused(open_session(), pipeline, REFUSED_OUTCOMES, wanted)
    return Samples(refused, _list_failing(pipeline, open_session, facts))


def _list_failing(
    pipeline: Pipeline, open_session: "Callable[[], SparkSession]", facts: Facts
) -> tuple[FailingRows, ...]:
    """Of each expectation that failed in the newest validation the first rows that fail it."""
    if all(check.success for check in facts.checks):
        return ()
    from jobs.failing import list_failing

    newest = facts.validations[-1]
    entries = read_history(pipeline).entries
    subject = next(entry for entry in entries if entry.seq == newest.seq)
    windows = {window.name for window in pipeline.windows}
    outcomes = tuple(each for each in read_newest(pipeline, subject) if each.window in windows)
    found = Validation(newest.run, newest.seq, outcomes, "")
    return list_failing(open_session(), pipeline, found, SAMPLED)
