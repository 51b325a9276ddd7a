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
        (
            entry("type: expect_column_values_to_be_increasing, kwargs: {column: p95}"),
            "hourly[0].type: expect_column_values_to_be_increasing judges the order of rows, and "
            "rows of an output have none; use another one",
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


ABOUT_SETS = (
    *("expect_column_values_to_be_in_set", "expect_column_values_to_not_be_in_set"),
    *("expect_column_distinct_values_to_be_in_set", "expect_column_most_common_value_to_be_in_set"),
)
"""Types that judge by a set of values, which NULLs are never compared with."""


@pytest.mark.parametrize("kind", ABOUT_SETS)
def test_a_null_in_a_set_is_refused_because_every_value_would_meet_it(
    tmp_path: Path, kind: str
) -> None:
    sentence = refused(
        tmp_path, entry(f"type: {kind}, kwargs: {{column: p95, value_set: [1, null]}}")
    )
    assert sentence.endswith(
        "hourly[0].kwargs.value_set[1]: is null, but a NULL in a row passes anyway; leave it out, "
        "or forbid NULLs by expect_column_values_to_not_be_null"
    )


@pytest.mark.parametrize(
    ("kind", "kwargs"),
    [
        (
            "pair_values_to_be_in_set",
            "column_A: p95, column_B: worst, value_pairs_set: [[null, 1]]",
        ),
        (
            "quantile_values_to_be_between",
            "column: p95, quantile_ranges: {quantiles: [0.5], value_ranges: [[null, 1]]}",
        ),
        ("values_to_match_json_schema", "column: p95, json_schema: {type: object, const: null}"),
        (
            "kl_divergence_to_be_less_than",
            "column: p95, partition_object: {values: [1], weights: [1]}, threshold: 0.1",
        ),
        ("max_to_be_between", "column: p95, max_value: 0"),
        ("values_to_be_in_set", "column: p95, value_set: [0, false, '']"),
    ],
)
def test_what_can_be_compared_with_is_taken(tmp_path: Path, kind: str, kwargs: str) -> None:
    body = f"type: expect_column_{kind}, kwargs: {{{kwargs}}}"
    (tmp_path / "departures.yaml").write_text(entry(body))
    assert len(load_suite(DEPARTURES, tmp_path)["hourly"]) == 1


OVER_ALL_ROWS = (
    *("max", "min", "sum", "mean", "median", "stdev", "unique_value_count"),
    *("proportion_of_unique_values", "proportion_of_non_null_values"),
)


@pytest.mark.parametrize(
    ("kind", "column", "limits"),
    [
        *((f"column_{name}_to_be_between", "column: p95", "") for name in OVER_ALL_ROWS),
        ("column_max_to_be_between", "column: p95", ", min_value: null, max_value: null"),
        ("table_row_count_to_be_between", "", ""),
        ("table_column_count_to_be_between", "", ""),
    ],
)
def test_without_limits_an_expectation_judges_nothing(
    tmp_path: Path, kind: str, column: str, limits: str
) -> None:
    sentence = refused(
        tmp_path, entry(f"type: expect_{kind}, kwargs: {{{(column + limits).removeprefix(', ')}}}")
    )
    assert sentence.endswith(
        f"hourly[0].kwargs: lacks min_value or max_value, without which expect_{kind} "
        "judges nothing; give one of them"
    )


@pytest.mark.parametrize(
    ("kind", "kwargs", "lacking"),
    [
        ("column_values_to_be_in_type_list", "column: p95", "type_list"),
        ("column_values_to_be_in_type_list", "column: p95, type_list: null", "type_list"),
        ("table_columns_to_match_set", "exact_match: false", "column_set"),
        ("table_columns_to_match_ordered_list", "column_list: null", "column_list"),
        ("column_kl_divergence_to_be_less_than", "column: p95", "partition_object"),
        (
            "column_kl_divergence_to_be_less_than",
            "column: p95, partition_object: {values: [1], weights: [1]}, min_value: 3",
            "threshold",
        ),
    ],
)
def test_without_what_it_compares_with_an_expectation_judges_nothing(
    tmp_path: Path, kind: str, kwargs: str, lacking: str
) -> None:
    sentence = refused(tmp_path, entry(f"type: expect_{kind}, kwargs: {{{kwargs}}}"))
    assert sentence.endswith(
        f"hourly[0].kwargs: lacks {lacking}, without which expect_{kind} judges nothing; give it"
    )


@pytest.mark.parametrize(
    ("kind", "kwargs", "message"),
    [
        ("max_to_be_between", "max_value: ''", "max_value: is empty; write a value, or leave it"),
        ("max_to_be_between", "max_value: {}", "max_value: is empty"),
        ("values_to_be_in_type_list", "type_list: []", "type_list: is empty"),
        ("values_to_not_be_in_set", "value_set: []", "value_set: is empty"),
        ("distinct_values_to_contain_set", "value_set: []", "value_set: is empty"),
        ("quantile_values_to_be_between", "quantile_ranges: {}", "quantile_ranges: is empty"),
        (
            "quantile_values_to_be_between",
            "quantile_ranges: {at: [0.5]}",
            "quantile_ranges: has to be such as {quantiles: [0.5], value_ranges: [[1, 60]]}",
        ),
        *(
            (
                "quantile_values_to_be_between",
                f"quantile_ranges: {{quantiles: {quantiles}, value_ranges: {ranges}}}",
                "quantile_ranges: has to be such as",
            )
            for quantiles, ranges in (
                ("[]", "[]"),
                ("[0.5]", "[[null, null]]"),
                ("[0.5, 0.9]", "[[1, 2]]"),
                ("[0.5]", "[[1]]"),
                ("[0.5]", "[1]"),
                ("0.5", "[[1, 2]]"),
            )
        ),
        ("max_to_be_between", "max_value: {a: 1}", "max_value: can't be {'a': 1}"),
        (
            "max_to_be_between",
            "max_value: {$PARAMETER: most}",
            "max_value: is a parameter, which nothing gives a value here; write the value itself",
        ),
        (
            "values_to_match_json_schema",
            "json_schema: {$PARAMETER: x}",
            "json_schema: is a parameter",
        ),
        (
            "max_to_be_between",
            "max_value: .nan",
            "max_value: nan is not a finite number; write one, or leave it out",
        ),
        ("max_to_be_between", "max_value: .inf", "max_value: inf is not a finite number"),
        ("values_to_be_in_set", "value_set: [1, .nan]", "value_set[1]: nan is not a finite number"),
        (
            "quantile_values_to_be_between",
            "quantile_ranges: {quantiles: [0.5], value_ranges: [[0, .inf]]}",
            "quantile_ranges.value_ranges[0][1]: inf is not a finite number",
        ),
    ],
)
def test_an_argument_that_can_not_be_compared_with_is_refused(
    tmp_path: Path, kind: str, kwargs: str, message: str
) -> None:
    body = f"type: expect_column_{kind}, kwargs: {{column: p95, {kwargs}}}"
    assert f"hourly[0].kwargs.{message}" in refused(tmp_path, entry(body))


def test_an_empty_list_of_columns_is_refused(tmp_path: Path) -> None:
    kind = "expect_table_columns_to_match_ordered_list"
    sentence = refused(tmp_path, entry(f"type: {kind}, kwargs: {{column_list: []}}"))
    assert "hourly[0].kwargs.column_list: is empty" in sentence


def test_the_import_can_be_begun_in_the_background() -> None:
    thread = preload()
    thread.join(60)
    assert not thread.is_alive()
