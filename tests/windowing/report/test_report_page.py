"""What the report page says of publications and where its links lead."""

from dataclasses import replace
from datetime import UTC, datetime

from windowing.report.alarms import Alarm, Raised
from windowing.report.page import render_page
from windowing.report.rule import Changed
from windowing.report.table import Check, Facts, Ran
from windowing.spec.load import load_pipeline

NOW = datetime(2013, 1, 2, tzinfo=UTC)
PIPELINE = load_pipeline(
    {
        "name": "trips",
        "lake": "/lake",
        "source": {"table": "/lake/source", "event_time": "at", "key": ["place"]},
        "aggregates": {"n": "count()"},
        "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
    }
)
CHECK = Check(2, 7, "hourly", "expect_x(n)", "critical", False, "1", "too few")
FACTS = Facts(PIPELINE, 0, 2, None, (), (), (), (), (), (), (CHECK,))


def test_a_publication_says_why_it_was_made_although_expectations_failed() -> None:
    assert "although expectations" not in render_page(FACTS, NOW)
    text = render_page(replace(FACTS, accepted_because="a <storm>"), NOW)
    assert "published: run 2, although expectations failed: a &lt;storm&gt;" in text


def test_quality_leads_to_the_data_docs_that_are_there() -> None:
    assert "<a " not in render_page(FACTS, NOW)
    text = render_page(FACTS, NOW, "_docs/run-2-entry-7/index.html")
    link = '<a href="_docs/run-2-entry-7/index.html">Data Docs</a>'
    assert link in text.split("<h2>Quality</h2>")[1]


def test_erased_rows_have_a_column_where_there_are_any() -> None:
    ran = Ran(1, 0, 0, 9, 9, 0, 0, 0, Changed())
    assert "erased" not in render_page(replace(FACTS, runs=(ran,)), NOW)
    text = render_page(replace(FACTS, runs=(ran, replace(ran, run=2, read=11, erased=2))), NOW)
    assert text.count("erased") == 2, "the figure at the top and the column of runs"


def test_alarms_are_listed_newest_first_and_say_what_is_held() -> None:
    assert "none" in render_page(FACTS, NOW).split("<h2>Alarms</h2>")[1].split("<h2>")[0]
    said = Raised(1, 3, Alarm("ahead", "far <ahead>", 9, holds=False))
    held = Raised(2, 7, Alarm("quarantined", "9 of 9 rows were quarantined", 9, holds=True))
    text = render_page(replace(FACTS, alarms=(said, held)), NOW)
    section = text.split("<h2>Alarms</h2>")[1].split("<h2>")[0]
    assert section.index("9 of 9 rows") < section.index("far &lt;ahead&gt;")
    assert section.index(">yes<") < section.index(">no<")
