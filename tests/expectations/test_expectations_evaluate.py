"""Every builtin expectation holds of right outputs and fails on the defect it is there for; nothing of a row gets into the pages."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from pyspark.sql import DataFrame, SparkSession

from expectations.builtin import TYPES
from expectations.evaluate import evaluate
from expectations.outcome import CRITICAL, Facts, Outcome, Verdict, passed
from windowing.grid.rule import Grid
from windowing.spec.pipeline import Aggregate, EventTime, Pipeline, Session, Sliding, Source, Tumbling, Watermark, Window

HOUR_US = 3_600_000_000
HOUR = timedelta(hours=1)
T = datetime(2013, 1, 1, tzinfo=UTC)
ZONE = "America/New_York"
SPRING = datetime(2013, 3, 10, 5, tzinfo=UTC)
"""Midnight in New York on the day whose clock jumps from 2 to 3."""
AGGREGATES = (Aggregate("flights", "count"), Aggregate("note", "first", "note"))
HOURLY = Tumbling("hourly", Grid(HOUR_US), AGGREGATES)
ZONED = Tumbling("zoned", Grid(24 * HOUR_US, zone=ZONE), AGGREGATES)
MONTHLY = Tumbling("monthly", Grid(months=1, zone=ZONE), AGGREGATES)
ROLLING = Sliding("rolling", Grid(HOUR_US // 2), HOUR_US, AGGREGATES)
LOCAL = Sliding("local", Grid(HOUR_US, zone=ZONE), 2 * HOUR_US, AGGREGATES)
BUSY = Session("busy", HOUR_US, AGGREGATES)
WINDOWS: tuple[Window, ...] = (HOURLY, ZONED, MONTHLY, ROLLING, LOCAL, BUSY)
PIPELINE = Pipeline("lab", "/lake", Source("t", EventTime("at"), ("origin",)), Watermark(0, None, 0), WINDOWS)
COLUMNS = "origin string, window_start timestamp, window_end timestamp, flights bigint, note string, revision bigint, run bigint"
SESSION_COLUMNS = COLUMNS.replace("flights", "last_event timestamp, flights")

Row = tuple[Any, ...]


def row(start: datetime, end: datetime, flights: int | None = 2, origin: str | None = "JFK", note: str = "") -> Row:
    return (origin, start, end, flights, note, 0, 1)


def session(start: datetime, last: datetime, origin: str = "JFK", end: datetime | None = None) -> Row:
    return (origin, start, end or last + HOUR, last, 2, "", 0, 1)


GOOD: Mapping[str, list[Row]] = {
    "hourly": [row(T, T + HOUR), row(T + 2 * HOUR, T + 3 * HOUR), row(T, T + HOUR, origin="LGA")],
    "zoned": [row(SPRING, SPRING + 23 * HOUR), row(SPRING + 23 * HOUR, SPRING + 47 * HOUR), row(SPRING - 24 * HOUR, SPRING)],
    "monthly": [row(datetime(2013, 3, 1, 5, tzinfo=UTC), datetime(2013, 4, 1, 4, tzinfo=UTC), 6)],
    "rolling": [row(T, T + HOUR), row(T + HOUR / 2, T + HOUR * 1.5)],
    "local": [
        row(SPRING + HOUR, SPRING + 2 * HOUR),
        row(SPRING + 2 * HOUR, SPRING + 3 * HOUR),
        row(SPRING + 2 * HOUR, SPRING + 4 * HOUR),
    ],
    "busy": [session(T, T + HOUR), session(T + 3 * HOUR, T + 3 * HOUR), session(T, T + 5 * HOUR, "LGA")],
}
FACTS = Facts(run=1, accepted=8, partial={"hourly": 2, "zoned": 2, "monthly": 2})

Judge = Callable[..., Verdict]


@pytest.fixture
def judge(spark: SparkSession, tmp_path: Path) -> Judge:
    """Window name -> rows, judged; keyword arguments replace those of `evaluate`."""

    def run(outputs: Mapping[str, list[Row]], **more: Any) -> Verdict:
        given: dict[str, Any] = {"pipeline": PIPELINE, "facts": FACTS, "docs": tmp_path / "docs", "run_name": "run-1", "suites": tmp_path}
        return evaluate({name: frame(spark, name, rows) for name, rows in outputs.items()}, **(given | more))

    return run


def frame(spark: SparkSession, name: str, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(rows, SESSION_COLUMNS if name == "busy" else COLUMNS)


def failed(verdict: Verdict) -> set[str]:
    return {o.expectation.removeprefix("expect_") for o in verdict.outcomes if not o.success}


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
      - {type: expect_column_distinct_values_to_be_in_set, kwargs: {column: note, value_set: [quiet]}, severity: warning}
      - {type: expect_column_most_common_value_to_be_in_set, kwargs: {column: note, value_set: [quiet]}, severity: warning}
      - {type: expect_compound_columns_to_be_unique, kwargs: {column_list: [note, revision]}, severity: warning}
      - {type: expect_column_sum_to_be_between, kwargs: {column: flights, min_value: 7}, severity: warning}
    """
    (tmp_path / "own.yaml").write_text(text)
    return replace(PIPELINE, suite="own")


def test_right_outputs_meet_everything_and_the_verdict_says_what_was_seen(judge: Judge) -> None:
    verdict = judge(GOOD)
    assert failed(verdict) == set()
    assert passed(verdict.outcomes)
    assert {o.window for o in verdict.outcomes} == set(GOOD)
    assert {o.suite for o in verdict.outcomes} == {"builtin"}
    kept = [o for o in verdict.outcomes if o.expectation == "expect_window_counts_to_add_up(flights)" and o.window == "hourly"]
    detail = "flights adds up to the accepted events that count here: 8 - 2 = 6"
    assert kept == [Outcome("hourly", "builtin", "expect_window_counts_to_add_up(flights)", CRITICAL, True, "6", detail)]


DEFECTS: list[tuple[str, str, list[Row], set[str]]] = [
    ("twice", "hourly", [*GOOD["hourly"][:2], row(T, T + HOUR)], {"windows_to_be_unique"}),
    ("twice the same session start", "busy", [session(T, T), session(T, T + HOUR)], {"windows_to_be_unique", "sessions_not_to_overlap"}),
    ("no key", "hourly", [*GOOD["hourly"][:2], row(T, T + HOUR, origin=None)], {"window_key_and_bounds_not_to_be_null"}),
    (
        "backwards",
        "hourly",
        [*GOOD["hourly"][:2], row(T + HOUR, T)],
        {"window_start_before_end", "windows_to_lie_on_grid"},
    ),
    ("off the grid", "hourly", [*GOOD["hourly"][:2], row(T + HOUR / 2, T + HOUR * 1.5)], {"windows_to_lie_on_grid"}),
    ("too long", "hourly", [*GOOD["hourly"][:2], row(T + 4 * HOUR, T + 6 * HOUR)], {"windows_to_lie_on_grid"}),
    ("24 hours on a day of 23", "zoned", [*GOOD["zoned"][1:], row(SPRING, SPRING + 24 * HOUR)], {"windows_to_lie_on_grid"}),
    ("a day of UTC", "zoned", [*GOOD["zoned"][1:], row(T, T + 24 * HOUR)], {"windows_to_lie_on_grid"}),
    ("two days as one", "zoned", [*GOOD["zoned"][:2], row(SPRING - 48 * HOUR, SPRING)], {"windows_to_lie_on_grid"}),
    ("half a month", "monthly", [row(SPRING, datetime(2013, 4, 1, 4, tzinfo=UTC), 6)], {"windows_to_lie_on_grid"}),
    ("wrong size", "rolling", [row(T, T + HOUR / 2)], {"windows_to_lie_on_grid"}),
    ("no slide begins there", "rolling", [row(T + HOUR / 4, T + HOUR * 1.25)], {"windows_to_lie_on_grid"}),
    ("no end for that start", "local", [row(SPRING + HOUR, SPRING + 3 * HOUR)], {"windows_to_lie_on_grid"}),
    ("below zero", "rolling", [row(T, T + HOUR, -1)], {"window_counts_not_to_be_negative"}),
    ("no count", "rolling", [row(T, T + HOUR, None)], {"window_counts_not_to_be_negative"}),
    ("one event lost", "hourly", [*GOOD["hourly"][:2], row(T, T + HOUR, 1, "LGA")], {"window_counts_to_add_up(flights)"}),
    ("one event twice", "hourly", [*GOOD["hourly"][:2], row(T, T + HOUR, 3, "LGA")], {"window_counts_to_add_up(flights)"}),
    ("empty", "rolling", [], {"windows_once_events_were_accepted"}),
    ("a gap that is touched", "busy", [session(T, T), session(T + HOUR, T + HOUR)], {"sessions_not_to_overlap"}),
    ("one session inside another", "busy", [session(T, T + 9 * HOUR), session(T + HOUR, T + HOUR)], {"sessions_not_to_overlap"}),
    ("an end too soon", "busy", [session(T, T, end=T + HOUR / 2)], {"sessions_to_end_gap_after_last_event"}),
    ("last before first", "busy", [session(T + HOUR / 2, T)], {"sessions_to_end_gap_after_last_event"}),
]


def test_each_builtin_expectation_fails_on_its_defect_and_on_nothing_else(judge: Judge) -> None:
    """One validation per round, a round has at most one defect per window."""
    rounds: list[dict[str, tuple[str, list[Row], set[str]]]] = []
    for name, window, rows, expected in DEFECTS:
        place = next((r for r in rounds if window not in r), None)
        if place is None:
            rounds.append(place := {})
        place[window] = (name, rows, expected)
    for one in rounds:
        verdict = judge({window: rows for window, (_, rows, _) in one.items()})
        assert not passed(verdict.outcomes)
        for window, (name, _, expected) in one.items():
            own = Verdict(tuple(o for o in verdict.outcomes if o.window == window), verdict.docs_index)
            assert failed(own) == expected, name


def test_the_defects_reach_every_builtin_expectation() -> None:
    reached = {f"expect_{e}".removesuffix("(flights)") for *_, expected in DEFECTS for e in expected}
    assert TYPES - reached == {"expect_window_columns_to_exist"}


def test_a_column_that_is_missing_fails_its_expectation_and_all_others(spark: SparkSession, tmp_path: Path) -> None:
    output = {"busy": frame(spark, "busy", GOOD["busy"]).drop("last_event")}
    verdict = evaluate(output, PIPELINE, FACTS, tmp_path / "docs", "run-1", tmp_path)
    assert [o.success for o in verdict.outcomes] == [False] * len(verdict.outcomes)
    assert verdict.outcomes[0].observed == "lacks last_event"
    assert {o.detail for o in verdict.outcomes[1:]} == {"could not be evaluated: the output lacks last_event"}


def test_an_empty_output_is_right_when_nothing_was_accepted_for_it(judge: Judge) -> None:
    verdict = judge({"hourly": [], "zoned": [], "busy": []}, facts=Facts(1, accepted=3, partial={"hourly": 3, "zoned": 3, "busy": 3}))
    assert failed(verdict) == set()


def test_nulls_in_bounds_are_seen(spark: SparkSession, tmp_path: Path) -> None:
    output = {"zoned": spark.createDataFrame([("JFK", T, None, 6, "", 0, 1)], COLUMNS)}
    verdict = evaluate(output, PIPELINE, FACTS, tmp_path / "docs", "run-1", tmp_path)
    assert "window_key_and_bounds_not_to_be_null" in failed(verdict)


def test_values_of_rows_are_neither_in_outcomes_nor_in_pages(judge: Judge, own: Pipeline, tmp_path: Path) -> None:
    rows = [row(T, T + HOUR, note="canary-4711"), row(T + HOUR, T + 2 * HOUR, note="canary-4711"), row(T, T + HOUR, origin="canary-4712")]
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
    assert judged["expect_column_max_to_be_between(revision)"].observed == ""
    assert not all(o.success for o in verdict.outcomes)
    assert passed(verdict.outcomes)
    assert not passed([replace(o, severity=CRITICAL) for o in verdict.outcomes])


def test_what_cannot_be_evaluated_has_failed_alone_and_says_so_without_values(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "sum.yaml").write_text("""
    hourly:
      - {type: expect_column_sum_to_be_between, kwargs: {column: note, min_value: 7}}
      - {type: expect_column_sum_to_be_between, kwargs: {column: flights, min_value: 6}}
    """)
    rows = [(*r[:4], "canary", *r[5:]) for r in GOOD["hourly"]]
    verdict = judge({"hourly": rows}, pipeline=replace(PIPELINE, suite="sum"))
    assert failed(verdict) == {"column_sum_to_be_between(note)"}
    assert not passed(verdict.outcomes)
    detail = next(o.detail for o in verdict.outcomes if not o.success)
    assert detail == "could not be evaluated: Spark says CAST_INVALID_INPUT"
    pages = "".join(page.read_text() for page in verdict.docs_index.parent.rglob("*.html"))
    assert detail in pages
    assert "canary" not in pages
    assert "Traceback" not in pages


class Links(HTMLParser):
    """Collects what a page links to inside its own site, and what it fetches from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.fetched: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        link = dict(attrs).get("href") or ""
        if tag != "a":
            self.fetched |= {v for k, v in attrs if k in ("src", "href") and v and v.startswith("http")}
        if tag == "a" and link and not link.startswith(("#", "http", "javascript", "mailto")):
            self.found.add(unquote(link.split("#")[0].split("?")[0]))


def test_every_link_of_the_pages_leads_somewhere_and_nothing_is_fetched_from_elsewhere(judge: Judge, own: Pipeline) -> None:
    index = judge({"hourly": GOOD["hourly"], "busy": GOOD["busy"]}, pipeline=own).docs_index
    assert "lab.hourly" in index.read_text()
    assert "lab.busy" in index.read_text()
    for page in index.parent.rglob("*.html"):
        links = Links()
        links.feed(page.read_text())
        assert [link for link in links.found if not (page.parent / link).exists()] == [], page
        assert links.fetched == set(), page


def test_pages_say_in_words_what_was_expected(judge: Judge, own: Pipeline) -> None:
    index = judge({"hourly": GOOD["hourly"]}, pipeline=own).docs_index
    text = "".join(page.read_text() for page in index.parent.rglob("validations/**/*.html"))
    assert "One row per origin, window_start, window_end" in text
    assert "Costs $5 or ${more}" in text


def test_a_run_validated_again_replaces_its_pages_and_old_sites_go(judge: Judge, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    for n in range(33):
        (docs / f"old-{n}" / "validations").mkdir(parents=True)
        (docs / f"old-{n}" / "index.html").touch()
    (docs / "notes").mkdir()
    judge({"hourly": GOOD["hourly"]}, run_name="2013-01-01T00:00:00+00:00/../x")
    judge({"hourly": GOOD["hourly"]}, run_name="2013-01-01T00:00:00+00:00/../x")
    sites = sorted(p.name for p in docs.iterdir())
    assert len(sites) == 31
    assert "notes" in sites
    assert "2013-01-01T00-00-00-00-00-..-x" in sites
    assert len(list((docs / "2013-01-01T00-00-00-00-00-..-x").rglob("validations/**/*.html"))) == 1
