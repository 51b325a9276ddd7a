"""A run with figures that can't be right: said everywhere, and published only where that is asked.

By hand: the first run reads four rows and quarantines one, the second two and quarantines both.
"""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.publish import publish
from jobs.status import status
from jobs.validate import validate
from jobs.validation.validated import find_validation
from tests.support.report_page import read_page
from tests.system.test_bad_rows import Source
from windowing.errors import ExpectationsFailed
from windowing.ledger.rule import CLOSE
from windowing.ledger.table import read_history
from windowing.report.page import render_page
from windowing.report.table import read_facts
from windowing.report.view import view_facts
from windowing.spec.pipeline import Alarms, Pipeline

NOW = datetime(2026, 1, 2, tzinfo=UTC)
GOOD = tuple(f"'{n}', 'a', timestamp'2026-01-01 10:0{n}', 1" for n in range(3))
TOLD = "2 of 2 rows were quarantined"


def holding(pipeline: Pipeline) -> Pipeline:
    """The pipeline with a spec that holds outputs where over three tenths are quarantined."""
    return replace(pipeline, alarms=Alarms(quarantined=0.3))


@pytest.mark.slow
def test_what_a_run_quarantines_is_said_and_held_where_the_spec_asks(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Source(spark, tmp_path)
    source.land(*GOOD, "'3', null, timestamp'2026-01-01 10:03', 1")
    assert source.run().alarms == (), "a quarter is less than a half"
    assert validate(spark, holding(source.pipeline)).passed, "and less than the limit"
    publish(holding(source.pipeline))
    source.land("'4', null, timestamp'2026-01-01 10:04', 1", "'5', 'a', null, 1")
    (alarm,) = source.run().alarms
    assert (alarm.name, alarm.text, alarm.holds) == ("quarantined", TOLD, False)
    _ledger_and_report_say_so(source)
    _without_a_limit_it_is_published_as_before(source)
    _above_the_limit_nothing_is_published(spark, holding(source.pipeline))


def _ledger_and_report_say_so(source: Source) -> None:
    closed = [e for e in read_history(source.pipeline).entries if e.step == CLOSE]
    assert [e.counts.get("alarm(quarantined)") for e in closed] == [None, 2]
    facts = read_facts(source.pipeline, lambda: source.spark)
    page = read_page(render_page(view_facts(facts, NOW)))
    assert TOLD in page.sections["alarms"].text


def _without_a_limit_it_is_published_as_before(source: Source) -> None:
    found = validate(source.spark, source.pipeline)
    assert found.passed and not [o for o in found.outcomes if not o.success]


def _above_the_limit_nothing_is_published(spark: SparkSession, pipeline: Pipeline) -> None:
    assert find_validation(pipeline) is None, "the spec has changed, so it is judged again"
    found = validate(spark, pipeline)
    (broken,) = found.failed
    assert (broken.window, broken.expectation) == ("hourly", "rows_are_not_quarantined")
    assert broken.detail == f"run 2: {TOLD}, which is beyond alarms.quarantined: 0.3"
    recorded = find_validation(pipeline)
    assert recorded is not None and recorded.failed == found.failed
    with pytest.raises(ExpectationsFailed, match="rows_are_not_quarantined") as refused:
        publish(pipeline)
    assert refused.value.exit_code == 3
    stands = status(pipeline, NOW)
    assert (stands.published_run, stands.run, stands.passed) == (1, 2, False)
    assert stands.needs_attention and stands.state == "failed"
    assert publish(pipeline, "the sender has repaired it").run == 2
    stands = status(pipeline, NOW)
    assert (stands.published_run, stands.passed, stands.needs_attention) == (2, True, False)
    assert (stands.totals["read"], stands.totals["quarantined"], stands.totals["accepted"]) == (
        6,
        3,
        3,
    )
    assert validate(spark, pipeline).passed, "readers have seen what was accepted"
