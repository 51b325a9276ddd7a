"""A verdict says of every expectation what was seen, and nothing of a row gets into the pages."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from pyspark.sql import SparkSession

from expectations.acceptance import digest_rule
from expectations.evaluate import evaluate
from expectations.outcome import CRITICAL, Outcome, Standing, all_passed
from expectations.suite import load_suite
from tests.expectations.conftest import Judge
from tests.expectations.planted import FACTS, GOOD, HOUR, PIPELINE, T, failed, frame, row
from windowing.location import Location
from windowing.spec.pipeline import Pipeline

OUTPUTS = {name: GOOD[name] for name in ("hourly", "rolling", "busy", "tens", "ever")}


@pytest.fixture
def own(tmp_path: Path) -> Pipeline:
    """A pipeline with a suite of expectations that fail and would give rows away."""
    text = """
    hourly:
      - type: expect_column_values_to_be_in_set
        kwargs: {column: note, value_set: [quiet]}
        severity: warning
        description: Costs $5 or ${more}
      - {type: expect_column_max_to_be_between, kwargs: {column: revision, max_value: 1}, severity: warning}
      - {type: expect_column_max_to_be_between, kwargs: {column: note, max_value: 2020-01-01}, severity: warning}
      - {type: expect_column_distinct_values_to_be_in_set, kwargs: {column: note, value_set: [quiet]}, severity: warning}
      - {type: expect_column_most_common_value_to_be_in_set, kwargs: {column: note, value_set: [quiet]}, severity: warning}
      - {type: expect_compound_columns_to_be_unique, kwargs: {column_list: [note, revision]}, severity: warning}
      - {type: expect_column_sum_to_be_between, kwargs: {column: flights, min_value: 7}, severity: warning}
      - {type: expect_column_mean_to_be_between, kwargs: {column: flights, min_value: 7}, severity: warning}
      - {type: expect_column_proportion_of_unique_values_to_be_between, kwargs: {column: flights, min_value: 1}, severity: warning}
    """  # noqa: E501
    (tmp_path / "own.yaml").write_text(text)
    return replace(PIPELINE, suite="own")


def test_right_outputs_meet_everything_and_the_verdict_says_what_was_seen(judge: Judge) -> None:
    verdict = judge(OUTPUTS)
    assert failed(verdict.outcomes) == set()
    assert all_passed(verdict.outcomes)
    assert {o.window for o in verdict.outcomes} == set(OUTPUTS)
    assert {o.suite for o in verdict.outcomes} == {"builtin"}
    kept = [
        o
        for o in verdict.outcomes
        if o.expectation == "expect_window_counts_to_add_up(flights)" and o.window == "hourly"
    ]
    detail = "flights adds up to the accepted events that count here: 8 - 2 = 6"
    assert kept == [
        Outcome(
            "hourly",
            "builtin",
            "expect_window_counts_to_add_up(flights)",
            CRITICAL,
            True,
            "6",
            detail,
        )
    ]


def test_a_column_that_is_missing_fails_its_expectation_and_all_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    output = {
        "busy": frame(spark, "busy", GOOD["busy"]).drop("last_event"),
        "tens": frame(spark, "tens", []).drop("window_index"),
    }
    verdict = evaluate(output, PIPELINE, FACTS, Location(str(tmp_path / "docs")), "run-1", tmp_path)
    for window, column in ("busy", "last_event"), ("tens", "window_index"):
        outcomes = [o for o in verdict.outcomes if o.window == window]
        assert [o.success for o in outcomes] == [False] * len(outcomes)
        assert outcomes[0].observed == f"lacks {column}"
        assert {o.detail for o in outcomes[1:]} == {
            f"could not be evaluated: the output lacks {column}"
        }


def test_values_of_rows_are_neither_in_outcomes_nor_in_pages(
    judge: Judge, own: Pipeline, tmp_path: Path
) -> None:
    rows = [
        row(T, T + HOUR, note="canary-4711"),
        row(T + HOUR, T + 2 * HOUR, note="canary-4711"),
        row(T, T + HOUR, origin="canary-4712"),
    ]
    rows = [(*r[:5], 470815, r[6]) for r in rows]
    verdict = judge({"hourly": rows}, pipeline=own)
    written = [p.read_bytes() for p in (tmp_path / "docs").rglob("*") if p.is_file()]
    assert written
    for canary in ("canary", "470815", "470,815"):
        assert not [text for text in written if canary.encode() in text]
        assert canary not in repr(verdict.outcomes)


def test_a_suites_expectations_are_judged_by_their_severity(judge: Judge, own: Pipeline) -> None:
    verdict = judge({"hourly": GOOD["hourly"]}, pipeline=own)
    judged = {o.expectation: o for o in verdict.outcomes if o.suite == "own"}
    assert judged["expect_column_values_to_be_in_set(note)"].observed == "3 of 3 rows"
    assert judged["expect_column_sum_to_be_between(flights)"].observed == "6"
    assert judged["expect_column_mean_to_be_between(flights)"].observed == "2"
    (third,) = [o.observed for o in judged.values() if "proportion_of_unique" in o.expectation]
    assert third == "0.3333333333333333"
    assert judged["expect_column_max_to_be_between(revision)"].observed == ""
    assert not all(o.success for o in verdict.outcomes)
    assert all_passed(verdict.outcomes)
    assert not all_passed([replace(o, severity=CRITICAL) for o in verdict.outcomes])


@pytest.mark.slow
def test_what_observes_no_value_is_accepted_for_one_publication(
    spark: SparkSession, judge: Judge, own: Pipeline, tmp_path: Path
) -> None:
    """All other failures last while readers see the same rows."""
    rules = [digest_rule(e.configuration) for e in load_suite(own, tmp_path)["hourly"]]
    shown = frame(spark, "hourly", GOOD["hourly"])
    standing = {"hourly": Standing(shown, dict.fromkeys(rules, "known"))}
    verdict = judge({"hourly": GOOD["hourly"]}, pipeline=own, standing=standing)
    evaluated = [o for o in verdict.outcomes if not o.success and "evaluated" not in o.detail]
    assert {o.expectation for o in evaluated if o.accepted is None} == {
        "expect_column_distinct_values_to_be_in_set(note)"
    }
    assert {o.accepted for o in evaluated} == {None, "known"}


@pytest.mark.slow
def test_what_cannot_be_evaluated_has_failed_alone_and_says_so_without_values(
    judge: Judge, tmp_path: Path
) -> None:
    (tmp_path / "sum.yaml").write_text("""
    hourly:
      - {type: expect_column_sum_to_be_between, kwargs: {column: note, min_value: 7}}
      - {type: expect_column_sum_to_be_between, kwargs: {column: flights, min_value: 6}}
    """)
    rows = [(*r[:4], "canary", *r[5:]) for r in GOOD["hourly"]]
    verdict = judge({"hourly": rows}, pipeline=replace(PIPELINE, suite="sum"))
    assert failed(verdict.outcomes) == {"column_sum_to_be_between(note)"}
    assert not all_passed(verdict.outcomes)
    detail = next(o.detail for o in verdict.outcomes if not o.success)
    assert detail == "could not be evaluated: Spark says CAST_INVALID_INPUT"
    pages = "".join(page.read_text() for page in verdict.docs_index.parent.local.rglob("*.html"))
    assert detail in pages
    assert "canary" not in pages
    assert "Traceback" not in pages


class Links(HTMLParser):
    """Collects what a page links to inside its own site, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.fetched: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        link = dict(attrs).get("href") or ""
        if tag != "a":
            self.fetched |= {v for k, v in attrs if k in ("src", "href") and v}
        if tag == "a" and link and not link.startswith(("#", "http", "javascript", "mailto")):
            self.found.add(unquote(link.split("#")[0].split("?")[0]))


@pytest.mark.slow
def test_every_link_of_the_pages_leads_somewhere_and_nothing_is_loaded(
    judge: Judge, own: Pipeline
) -> None:
    index = judge({"hourly": GOOD["hourly"], "busy": GOOD["busy"]}, pipeline=own).docs_index.local
    assert "lab.hourly" in index.read_text()
    assert "lab.busy" in index.read_text()
    for page in index.parent.rglob("*.html"):
        links = Links()
        links.feed(page.read_text())
        assert [link for link in links.found if not (page.parent / link).exists()] == [], page
        assert links.fetched == set(), page


def test_pages_say_in_words_what_was_expected(judge: Judge, own: Pipeline) -> None:
    index = judge({"hourly": GOOD["hourly"]}, pipeline=own).docs_index.local
    text = "".join(page.read_text() for page in index.parent.rglob("validations/**/*.html"))
    assert "One row per origin, window_start, window_end" in text
    assert "Costs $5 or ${more}" in text


def test_an_output_whose_page_can_not_be_made_is_judged_and_named(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("expectations.docs._build_pages", lambda _, site: site.mkdir())
    verdict = judge({"ever": GOOD["ever"]})
    assert all_passed(verdict.outcomes)
    index = verdict.docs_index.local.read_text()
    assert "lab.ever (no page could be made)" in index
    assert "<a " not in index


def test_a_run_validated_again_replaces_its_pages_and_old_sites_go(
    judge: Judge, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    for n in range(33):
        (docs / f"old-{n}" / "validations").mkdir(parents=True)
        (docs / f"old-{n}" / "validations" / "hourly.html").touch()
        (docs / f"old-{n}" / "index.html").touch()
    (docs / "notes").mkdir()
    judge({"hourly": GOOD["hourly"]}, run_name="run-3-entry-7")
    judge({"hourly": GOOD["hourly"]}, run_name="run-3-entry-7")
    sites = sorted(p.name for p in docs.iterdir())
    assert len(sites) == 31
    assert "notes" in sites
    assert "run-3-entry-7" in sites
    assert len(list((docs / "run-3-entry-7").rglob("validations/**/*.html"))) == 1
