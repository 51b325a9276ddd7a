"""Suites are read strictly: what means nothing is refused in one sentence that says where."""

from dataclasses import replace
from pathlib import Path

import pytest

from expectations.library import preload
from expectations.places import SUITES
from expectations.suite import load_suite
from windowing.errors import SpecError
from windowing.grid.rule import Grid
from windowing.location import Location
from windowing.spec.kinds import Aggregate, Session, Sliding, Tumbling
from windowing.spec.pipeline import EventTime, Pipeline, Source, Watermark

HOUR_US = 3_600_000_000
NAMES = ("flights", "delay_minutes", "worst", "mean_delay", "p95", "planes")
AGGREGATES = tuple(Aggregate(name, "max", "x") for name in NAMES)
FLIGHTS = (
    Tumbling("hourly", Grid(HOUR_US), AGGREGATES),
    Tumbling("daily", Grid(24 * HOUR_US), AGGREGATES),
)
DEPARTURES = Pipeline(
    "departures",
    Location("/lake"),
    Source(Location("t"), EventTime("at"), ("origin",)),
    Watermark(0, None, 0),
    (*FLIGHTS, Sliding("rolling", Grid(HOUR_US // 4), 3 * HOUR_US, AGGREGATES[:3])),
    suite="departures",
)
DAY = tuple(
    Aggregate(name, "max", "x")
    for name in ("flights", "airports", "miles", "first_from", "last_to")
)
PLANES = replace(
    DEPARTURES, name="planes", windows=(Session("working_day", HOUR_US, DAY),), suite="planes"
)


def refused(tmp_path: Path, text: str) -> str:
    (tmp_path / "departures.yaml").write_text(text)
    with pytest.raises(SpecError) as error:
        load_suite(DEPARTURES, tmp_path)
    return str(error.value).replace(str(tmp_path), "suites")


def entry(body: str) -> str:
    return f"hourly:\n  - {{{body}}}\n"


def test_the_suites_that_come_along_are_right() -> None:
    assert list(load_suite(DEPARTURES, SUITES)) == ["hourly", "daily", "rolling"]
    assert list(load_suite(PLANES, SUITES)) == ["working_day"]


def test_no_suite_means_no_expectations_of_its_own(tmp_path: Path) -> None:
    assert load_suite(replace(DEPARTURES, suite=None), tmp_path) == {}


def test_a_suite_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "planes.yaml").touch()
    with pytest.raises(
        SpecError,
        match=r"'departures' is not there: no file .*departures.yaml; suites there are: planes",
    ):
        load_suite(DEPARTURES, tmp_path)


def test_severity_and_description_reach_the_expectation(tmp_path: Path) -> None:
    body = (
        "type: expect_column_to_exist, kwargs: {column: p95}, severity: warning, description: There"
    )
    (tmp_path / "departures.yaml").write_text(
        entry(body) + "  - {type: expect_column_to_exist, kwargs: {column: p95}}\n"
    )
    first, second = load_suite(DEPARTURES, tmp_path)["hourly"]
    assert (first.severity.value, first.description) == ("warning", "There")
    assert (second.severity.value, second.description) == ("critical", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "hourli: []",
            "suites/departures.yaml: hourli: is not a window of departures; did you mean hourly?",
        ),
        (
            "x: []",
            "suites/departures.yaml: x: is not a window of departures; "
            "allowed are hourly, daily, rolling",
        ),
        ("[]", "has to be a mapping from window names to lists of expectations"),
        ("hourly: 3", "hourly: has to be a list of expectations, not 3"),
        ("hourly: [3]", "hourly[0]: has to be a mapping with a type, not 3"),
        ("hourly: []\nhourly: []", "hourly: is given twice, again in line 2"),
        ("hourly: [", "is not YAML"),
        (
            entry("type: expect_column_too_exist, kwargs: {column: p95}"),
            "hourly[0].type: 'expect_column_too_exist' is not an exp",
        ),
        (entry("type: [1]"), "hourly[0].type: [1] is not an expectation"),
        (
            entry("type: unexpected_rows_expectation"),
            "unexpected_rows_expectation runs SQL or looks at other tables",
        ),
        (
            entry("type: expect_column_values_to_match_like_pattern"),
            "doesn't exist on Spark; use the regex expectations",
        ),
        (entry("type: expect_window_start_before_end"), "is not an expectation"),
        (
            entry("type: expect_column_to_exist, args: {}"),
            "hourly[0].args: is not a field; did you mean kwargs?",
        ),
        (
            entry("type: expect_column_to_exist, kwargs: 3"),
            "hourly[0].kwargs: has to be a mapping of arguments, not 3",
        ),
        (
            entry("type: expect_column_to_exist, kwargs: {colum: p95}"),
            "hourly[0].kwargs.column: field required; expect_column_to_exist",
        ),
        (
            entry("type: expect_column_to_exist, kwargs: {column: p95, x: 1}"),
            "hourly[0].kwargs.x: extra fields not permitted; expect",
        ),
        (
            entry("type: expect_column_to_exist, kwargs: {column: p59}"),
            "'p59' is not a column of hourly; did you mean p95?",
        ),
        (
            entry("type: expect_compound_columns_to_be_unique, kwargs: {column_list: [p95, q]}"),
            "hourly[0].kwargs.column_list[1]: 'q' is not a column of hourly; "
            "allowed are origin, window_start",
        ),
        (
            entry("type: expect_column_max_to_be_between, kwargs: {column: p95, row_condition: 1}"),
            "row_condition: is code, which a suite",
        ),
        (
            entry("type: expect_column_to_exist, kwargs: {column: p95, severity: warning}"),
            "kwargs.severity: is not an argument here",
        ),
        (
            entry("type: expect_column_to_exist, kwargs: {column: p95}, severity: fatal"),
            "'fatal' is not a severity; use critical",
        ),
        (
            entry("type: expect_column_to_exist, kwargs: {column: p95}, description: 3"),
            "hourly[0].description: 3 is not text; put",
        ),
    ],
)
def test_what_means_nothing_is_refused(tmp_path: Path, text: str, message: str) -> None:
    sentence = refused(tmp_path, text)
    assert message in sentence
    assert "\n" not in sentence


def test_the_import_can_be_begun_in_the_background() -> None:
    thread = preload()
    thread.join(60)
    assert not thread.is_alive()
