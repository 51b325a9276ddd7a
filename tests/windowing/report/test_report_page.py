"""What the report page says of facts, where its links lead, and what never gets onto it."""

import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.report_facts import (
    FACTS,
    HOSTILE,
    MADE,
    PIPELINE,
    SAMPLES,
    SECRET,
    make_publication,
    make_run,
)
from tests.support.report_page import ReadPage, read_page
from windowing.ledger.rule import COUNTS
from windowing.report.ages import count_ages
from windowing.report.alarms import Alarm, Raised
from windowing.report.facts import (
    Check,
    Facts,
    Publishing,
    Ran,
    Refusal,
    Revisions,
    Shape,
    Validated,
)
from windowing.report.page import LIBRARY, render_page
from windowing.report.publications import ACCEPTED, ERASURE, ROLLBACK
from windowing.report.rule import Changed
from windowing.report.section import Cell, Chart, Part, Section, View
from windowing.report.view import view_facts
from windowing.spec.duration import HOUR

ROOT = Path(__file__).parents[3]


def page_of(facts: Facts, docs: str | None = None) -> ReadPage:
    """The page as a reader without scripts has it."""
    return read_page(render_page(view_facts(facts, MADE, docs)))


def test_a_pipeline_that_never_ran_has_a_page_without_a_number_that_is_not_known() -> None:
    page = page_of(Facts(PIPELINE))
    assert page.figures == {}
    assert page.cards["watermark"] == page.cards["published run"] == "-"
    assert "nothing has run yet" in page.sections["runs"].text
    assert "nothing is published yet" in page.sections["outputs"].text
    assert "nothing was validated yet" in page.sections["quality"].text


def test_a_publication_says_why_it_was_made_although_expectations_failed() -> None:
    page = page_of(FACTS)
    assert "although expectations" not in page.sections["outputs"].text
    rows = page.tables["publications, newest first"]
    assert [row["why"] for row in rows] == ["validated", "accepted: the till was broken"]
    assert [row["publication"] for row in rows] == ["189", "7"]
    assert [row["held back"] for row in rows] == ["daily", "-"]
    told = make_publication(2, 0, ACCEPTED, "a <storm>")
    accepted = replace(FACTS, publishings=(Publishing(told, "a <storm>"),))
    said = "published: run 2, although expectations failed: a <storm>"
    assert said in page_of(accepted).sections["outputs"].text


def test_a_rollback_and_an_erasure_say_what_they_are_and_not_an_older_reason() -> None:
    rollback = make_publication(1, 0, ROLLBACK, "wrong fares", 7)
    erasure = make_publication(1, 1, ERASURE)
    found = tuple(Publishing(told, "the till was broken") for told in (rollback, erasure))
    rows = page_of(replace(FACTS, publishings=found)).tables["publications, newest first"]
    assert [row["why"] for row in rows] == ["erasure", "rollback to 7: wrong fares"]


def test_quality_leads_to_the_data_docs_that_are_there() -> None:
    assert page_of(FACTS).sections["quality"].links == []
    page = page_of(FACTS, "_docs/run-2-entry-7/index.html")
    assert page.sections["quality"].links == ["_docs/run-2-entry-7/index.html"]


def test_expectations_have_their_history_and_failing_ones_come_first() -> None:
    page = page_of(FACTS)
    (caption,) = [name for name in page.tables if name.startswith("expectations as of")]
    rows = page.tables[caption]
    assert [row["expectation"] for row in rows] == ["rows_add_up", "expect_a(n)", "expect_b(total)"]
    assert [row["history"] for row in rows] == ["++x", "x++", "+++"]
    failed = next(each for each in page.figures["verdicts"]["data"] if each["name"] == "failed")
    assert failed["y"] == [1, 0, 1]


def test_an_expectation_that_was_accepted_says_why() -> None:
    newest = FACTS.validations[-1]
    accepted = replace(newest.checks[0], accepted="two are usual")
    facts = replace(FACTS, validations=(replace(newest, checks=(accepted,)),))
    page = page_of(facts)
    assert "no, accepted: two are usual" in page.sections["quality"].text
    assert any("accepted: two are usual" in notice for notice in page.notices)


def test_erased_rows_have_a_column_where_there_are_any() -> None:
    ran = Ran(1, 0, 0, 9, 9, 0, 0, 0, Changed())
    assert "erased" not in page_of(replace(FACTS, runs=(ran,))).cards
    page = page_of(replace(FACTS, runs=(ran, replace(ran, run=2, read=11, erased=2))))
    assert page.cards["erased"] == "2"
    assert [row["erased"] for row in page.tables["runs, newest first"]] == ["2", "0"]


def test_alarms_are_listed_newest_first_and_say_what_is_beyond_a_limit() -> None:
    assert "none" in page_of(replace(FACTS, alarms=())).sections["alarms"].text
    said = Raised(1, 3, Alarm("ahead", "far <ahead>", 9, holds=False))
    held = Raised(2, 7, Alarm("quarantined", "9 of 9 rows were quarantined", 9, holds=True))
    page = page_of(replace(FACTS, alarms=(said, held)))
    rows = page.tables["alarms, newest first"]
    assert "as the spec is now" in page.sections["alarms"].text
    assert [row["alarm"] for row in rows] == ["9 of 9 rows were quarantined", "far <ahead>"]
    assert [row["beyond the limit of the spec"] for row in rows] == ["yes", "no"]


def test_numbers_of_charts_are_those_of_the_facts_and_of_the_tables() -> None:
    page = page_of(FACTS)
    by_name = {each["name"]: each for each in page.figures["rows"]["data"]}
    assert set(by_name) == {*COUNTS} - {"read", "erased"}
    for name, drawn in by_name.items():
        assert drawn["y"] == [getattr(ran, name) for ran in FACTS.runs]
    rows = page.tables["runs, newest first"][::-1]
    assert [int(row["read"].replace(",", "")) for row in rows] == [r.read for r in FACTS.runs]
    lag = page.figures["lag"]["data"][0]
    assert lag["y"] == [round((40 + ran.run) / 1, 4) for ran in FACTS.runs], "in minutes"
    assert page.figures["lag"]["layout"]["yaxis"]["title"]["text"] == "minutes behind arrival"


def test_every_chart_has_a_table_below_it() -> None:
    for section in view_facts(FACTS, MADE).sections:
        for part in section.parts:
            assert part.chart is None or part.table is not None, section.title


def test_verdicts_are_told_of_each_validation() -> None:
    page = page_of(FACTS)
    rows = page.tables["verdicts, newest validation first"]
    assert [(row["validation"], row["run"]) for row in rows] == [
        ("3", "28"),
        ("2", "2"),
        ("1", "1"),
    ]
    for drawn in page.figures["verdicts"]["data"]:
        assert [int(row[drawn["name"]]) for row in rows[::-1]] == drawn["y"]


def test_corrected_windows_are_told_by_how_far_back() -> None:
    page = page_of(FACTS)
    rows = page.tables["corrected windows by how far back"]
    (drawn,) = page.figures["back"]["data"]
    told = {row["back"]: int(row["hourly"]) for row in rows}
    assert told == {at: n for at, n in zip(drawn["y"], drawn["x"], strict=True) if n}


@pytest.mark.parametrize(
    ("runs", "behind"),
    [
        (50, "{}, newest first"),
        (60, "the newest 50 {}; the chart has all 60"),
        (510, "the newest 50 {}; the chart has the newest 500 of 510"),
    ],
)
def test_captions_say_how_many_runs_table_and_chart_have(runs: int, behind: str) -> None:
    page = page_of(replace(FACTS, runs=tuple(map(make_run, range(1, runs + 1)))))
    for what, chart in (("watermarks", "lag"), ("runs", "rows"), ("run times", "times")):
        assert len(page.tables[behind.format(what)]) == 50
        assert len(page.figures[chart]["data"][0]["y"]) == min(runs, 500)
    assert "which says where it has only the newest runs" in page.text


CUT: dict[str, dict[str, tuple[Any, ...]]] = {
    "publications": {"publishings": FACTS.publishings},
    "alarms": {"alarms": FACTS.alarms},
    "backfills": {"backfills": FACTS.backfills},
    "lost values": {"lost": FACTS.lost},
}


@pytest.mark.parametrize("what", CUT)
def test_captions_say_where_a_table_has_only_the_newest(what: str) -> None:
    ((field, one),) = CUT[what].items()
    whole = page_of(replace(FACTS, **{field: one[:1] * 50}))
    assert len(whole.tables[f"{what}, newest first"]) == 50
    page = page_of(replace(FACTS, **{field: one[:1] * 1_051}))
    assert len(page.tables[f"the newest 50 of 1,051 {what}"]) == 50
    assert f"{what}, newest first" not in page.tables


@pytest.mark.parametrize(
    ("runs", "caption"),
    [(500, "changes by run, newest first"), (501, "the newest 500 of 501 changes by run")],
)
def test_changes_have_as_many_runs_as_their_chart(runs: int, caption: str) -> None:
    page = page_of(replace(FACTS, runs=tuple(map(make_run, range(1, runs + 1)))))
    assert len(page.tables[caption]) == len(page.figures["changes"]["data"][0]["x"]) == 500


def test_of_many_expectations_the_first_are_listed_and_all_are_counted() -> None:
    checks = [Check(28, 196, "hourly", f"n{n}", "critical", n > 11, "", "") for n in range(1_002)]
    earlier = Check(27, 189, "hourly", "n5", "critical", True, "", "")
    validations = (Validated(27, 189, 0, (earlier,)), Validated(28, 196, 0, tuple(checks)))
    page = page_of(replace(FACTS, unfinished=(), validations=validations))
    (caption,) = [name for name in page.tables if "expectations as of" in name]
    of_all = "the first 1,000 of 1,002 expectations as of 1970-01-01 00:00Z, failing ones first"
    assert caption == of_all
    rows = page.tables[caption]
    assert [row["expectation"] for row in rows] == [f"n{n}" for n in range(1_000)]
    assert [row["history"] for row in rows[4:7]] == [".x", "+x", ".x"]
    newest = page.tables["verdicts, newest validation first"][0]
    assert (newest["met"], newest["failed"]) == ("990", "12")
    assert "run 28: 1,002 expectations, 12 broken" in page.sections["quality"].text
    assert page.notices[9:11] == [
        "run 28 breaks n9 of hourly: observed nothing",
        "2 more broken expectations: see Quality",
    ]


def test_the_lag_of_the_newest_event_is_told() -> None:
    rows = page_of(FACTS).tables["watermarks, newest first"]
    assert {row["lag of the newest event"] for row in rows} == {"10 min"}


def test_times_of_stages_sum_to_the_time_of_the_run() -> None:
    page = page_of(FACTS)
    batches, closing = page.figures["times"]["data"]
    assert (batches["name"], closing["name"]) == ("batches", "closing")
    assert batches["y"] == [10 + ran.run for ran in FACTS.runs]
    assert closing["y"] == [4] * len(FACTS.runs)
    untold = replace(FACTS, runs=tuple(replace(ran, updated_us=None) for ran in FACTS.runs))
    page = page_of(untold)
    (whole,) = page.figures["times"]["data"]
    assert whole["y"] == [14 + ran.run for ran in FACTS.runs]
    assert "the ledger does not record when the last batch was done" in page.sections["times"].text


def test_lateness_that_would_be_enough_is_proposed_from_late_rows() -> None:
    page = page_of(FACTS)
    assert "allows lateness of 2 hours" in page.sections["lateness"].text
    assert "The count `late` of runs has only the first" in page.sections["lateness"].text
    assert page.charts["behind"].startswith("4 rows late for all or some of their windows")
    assert "Left out are 1 row without an event time" in page.sections["lateness"].text
    enough = page.tables[""]
    assert [(row["share of the late rows"], row["enough allowed lateness"]) for row in enough] == [
        ("50 %", "40 minutes"),
        ("90 %", "1 day 2 hours"),
        ("99 %", "1 day 2 hours"),
        ("100 %", "1 day 2 hours"),
    ]
    none_late = page_of(replace(FACTS, lateness=None)).sections["lateness"].text
    assert "No row was late" in none_late


@pytest.mark.parametrize(
    ("unknown", "unread", "said"),
    [
        (0, None, "No window was changed after it had ended."),
        (3, None, "Of no window is it known that it was changed after it had ended."),
        (0, "lost", "Of no window is it known that it was changed after it had ended."),
    ],
)
def test_no_correction_is_said_only_where_every_change_is_dated(
    unknown: int, unread: str | None, said: str
) -> None:
    found = Revisions(count_ages(()), 2, unknown, unread=unread)
    facts = replace(FACTS, outputs=(replace(FACTS.outputs[0], revisions=found),))
    text = page_of(facts).sections["corrections"].text
    assert said in text
    assert "counts as not known" in text


def test_reasons_that_begin_alike_have_a_bar_each() -> None:
    begin = "the price of this order is not a number that"
    refusals = [Refusal("quarantined", f"{begin} {end}", 9, 0) for end in ("fits", "is known", "x")]
    page = page_of(replace(FACTS, refusals=tuple(refusals)))
    labels = page.figures["reasons"]["data"][0]["y"]
    assert len({*labels}) == len(labels) == 3


def test_rows_that_were_late_for_some_windows_are_accepted_and_not_refused() -> None:
    refusals = (
        Refusal("late", "window closed", 41, 12),
        Refusal("partial", "late for daily", 50, 20),
    )
    page = page_of(replace(FACTS, refusals=refusals))
    drawn = {each["name"]: each["x"] for each in page.figures["reasons"]["data"]}
    assert page.figures["reasons"]["data"][0]["y"] == [
        "partial: late for daily",
        "late: window closed",
    ]
    assert drawn == {
        "refused": [0, 29],
        "accepted later": [20, 12],
        "accepted, late for some windows": [30, 0],
    }
    assert page.charts["reasons"].startswith("41 refused rows and 50 partly late rows by reason")
    assert "partial were accepted" in page.sections["refused"].text
    without = page_of(FACTS)
    assert [each["name"] for each in without.figures["reasons"]["data"]] == [
        "refused",
        "accepted later",
    ]
    assert "partial were accepted" not in without.sections["refused"].text


def test_a_line_does_not_lead_through_time_without_windows() -> None:
    hourly = FACTS.outputs[0]
    assert hourly.revisions is not None
    hours = [0, 1, 2, 30, 31]
    shape = Shape(HOUR, tuple(hour * HOUR for hour in hours), (5, 6, 7, 8, 9), (5, 6, 7, 0, 0))
    gap = replace(hourly, revisions=replace(hourly.revisions, shape=shape))
    page = page_of(replace(FACTS, outputs=(gap,)))
    newest, published = page.figures["shape0"]["data"]
    assert newest["x"][2:5] == ["1970-01-01 02:00:00", "1970-01-01 03:00:00", "1970-01-02 06:00:00"]
    assert (newest["y"], published["y"]) == ([5, 6, 7, None, 8, 9], [5, 6, 7, None, 0, 0])
    broken = "The line is broken where no window begins for longer than usual."
    assert broken in page.charts["shape0"]
    assert len(page.tables["rows of hourly, stretches of 1 hour"]) == 5
    assert broken not in page_of(FACTS).charts["shape0"]


def test_the_page_says_that_bounds_in_a_zone_have_its_offset() -> None:
    assert "Every time is UTC, or has its offset" in page_of(FACTS).text


def test_what_was_not_read_is_said() -> None:
    assert "not read, because lost" in page_of(FACTS).sections["outputs"].text


def test_values_of_rows_are_on_the_page_only_where_it_says_so() -> None:
    html = render_page(view_facts(FACTS, MADE))
    assert SECRET not in html
    assert "No key and no value of a row is on this page, but times of events are" in html
    page = page_of(replace(FACTS, samples=SAMPLES))
    assert "contains keys and values of rows" in page.text
    assert page.tables["1 of 1 row, newest run first"][0]["shop"] == SECRET
    assert page.tables["1 of 3 rows"][0] == {
        "shop": SECRET,
        "window": "[2026-01-08 06:00Z, 06:00Z)",
        "n": "0",
    }
    assert "No single row is to blame" in page.sections["quality"].text


def test_a_text_of_a_row_cannot_leave_its_place() -> None:
    html = render_page(view_facts(FACTS, MADE))
    assert HOSTILE not in html
    assert html.count("</script>") == 3, "figures, library, script"
    page = read_page(html)
    (row,) = [row for row in page.tables["refused rows by reason"] if row["rows"] == "99"]
    assert row["reason"] == f"price is {HOSTILE}"
    labels = page.figures["reasons"]["data"][0]["y"]
    assert not [label for label in labels if "<" in label], "the library reads some tags"


def test_a_figure_cannot_end_the_script_that_it_stands_in() -> None:
    figure = {"data": [{"name": HOSTILE}]}
    parts = (Part(chart=Chart("odd", HOSTILE, figure)),)
    view = View("odd", "", (), Cell(""), (), (Section("odd", "odd", parts),))
    html = render_page(view)
    assert html.count("</script>") == 3
    assert read_page(html).figures == {"odd": figure}


def test_the_page_loads_nothing_and_runs_nothing_but_its_own_scripts() -> None:
    html = render_page(view_facts(FACTS, MADE, "_docs/x/index.html"))
    page = read_page(html)
    assert page.tags.isdisjoint({"link", "img", "iframe", "object", "embed"})
    assert page.sources == [], "no element names a file"
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', html)
    assert "default-src 'none'" in policy
    assert policy.count("sha256-") == 2
    script = policy.split("script-src")[1].split(";")[0]
    assert "unsafe" not in script


def test_every_figure_has_its_place_and_its_sentence() -> None:
    page = page_of(FACTS)
    assert set(page.charts) == set(page.figures)
    assert all(page.charts.values()), "a figure without a sentence says nothing to some readers"
    assert json.dumps(page.figures)


def test_the_plotting_library_is_the_one_whose_checksum_is_pinned() -> None:
    pinned = dict(re.findall(r"^(version|sha256)=(\S+)$", (ROOT / "bin/plotly").read_text(), re.M))
    library = (ROOT / "windowing/report/assets" / LIBRARY).read_bytes()
    assert sha256(library).hexdigest() == pinned["sha256"]
    assert f"v{pinned['version']}\n".encode() in library[:200]
    licence = (ROOT / "windowing/report/assets/plotly-basic.LICENSE").read_text()
    assert "MIT License" in licence
