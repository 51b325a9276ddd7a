"""Outputs of every kind of window meet their law when they are right.

When they aren't, they break the one rule that forbids the defect.
"""

import json
import re
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from expectations.builtin import builtin_suite
from expectations.failing import select_failing
from expectations.law import law_from, law_of
from expectations.outcome import CRITICAL, Facts, Outcome, all_passed
from expectations.places import SUITES
from expectations.promises import TYPES
from tests.expectations.conftest import Judge
from tests.expectations.planted import (
    COUNTS,
    DEFECTS,
    END,
    ENDLESS,
    FACTS,
    FLOOR,
    GOOD,
    INDEX,
    NULLS,
    ON_GRID,
    ORDER,
    OVERLAP,
    PIPELINE,
    SEQUENCE,
    TOTAL,
    UNIQUE,
    WINDOWS,
    Row,
    failed,
    frame,
)
from windowing.merge import rule as merge
from windowing.spec.kinds import (
    CHANGES,
    ON_CLOSE,
    Aggregate,
    Aligned,
    Having,
    OutputPolicy,
    Window,
)
from windowing.spec.pipeline import Retention

EVERYWHERE = {"window_columns_to_exist", NULLS, UNIQUE, COUNTS}
SPANS = EVERYWHERE | {ORDER}
ASKED = {
    "hourly": SPANS | {ON_GRID, FLOOR, TOTAL},
    "zoned": SPANS | {ON_GRID, FLOOR, TOTAL},
    "monthly": SPANS | {ON_GRID, FLOOR, TOTAL},
    "mixed": SPANS | {ON_GRID, FLOOR, TOTAL},
    "filled": SPANS | {ON_GRID, FLOOR, TOTAL},
    "closed": SPANS | {ON_GRID},
    "crowded": SPANS | {ON_GRID},
    "rolling": SPANS | {ON_GRID, FLOOR},
    "local": SPANS | {ON_GRID, FLOOR},
    "steps": SPANS | {ON_GRID},
    "so_far": SPANS | {ON_GRID, FLOOR},
    "today": SPANS | {ON_GRID, FLOOR},
    "to_date": SPANS | {ON_GRID, FLOOR},
    "in_year": SPANS | {ON_GRID},
    "busy": SPANS | {OVERLAP, END, FLOOR},
    "shift": SPANS | {OVERLAP, END, FLOOR},
    "recent": SPANS | {ON_GRID, FLOOR},
    "tens": SPANS | {INDEX, SEQUENCE, FLOOR},
    "latest": SPANS | {INDEX, SEQUENCE, FLOOR},
    "climb": SPANS | {INDEX, SEQUENCE, FLOOR},
    "legs": SPANS | {INDEX, SEQUENCE},
    "ever": EVERYWHERE | {ENDLESS, FLOOR},
}


def asked(window: Window) -> set[str]:
    """The names of the expectations the output of `window` has to meet, a total with its column."""
    found = builtin_suite(window, PIPELINE, FACTS)
    assert {e.severity.value for e in found} == {CRITICAL}
    names = [
        e.expectation_type.removeprefix("expect_")
        + (f"({e.column})" if hasattr(e, "column") else "")
        for e in found
    ]
    assert len(set(names)) == len(names)
    return set(names)


@pytest.mark.parametrize("window", WINDOWS, ids=lambda w: w.name)
def test_an_output_is_asked_what_its_kind_and_emission_promise(window: Window) -> None:
    assert asked(window) == ASKED[window.name]


@pytest.mark.parametrize("window", WINDOWS, ids=lambda w: w.name)
def test_only_outputs_that_show_every_window_have_to_hold_one_or_to_add_up(window: Window) -> None:
    for shown in (
        OutputPolicy(ON_CLOSE),
        OutputPolicy(CHANGES),
        OutputPolicy(having=Having("flights", "<", "4")),
        OutputPolicy(ON_CLOSE, empty_limit=1),
    ):
        assert asked(replace(window, shown=shown)) == ASKED[window.name] - {FLOOR, TOTAL}


@pytest.mark.parametrize("window", WINDOWS, ids=lambda w: w.name)
def test_an_output_whose_rows_expire_may_be_empty(window: Window) -> None:
    """Rows of grid windows expire, and no others."""
    expiring = replace(PIPELINE, retention=Retention(output_us=1))
    least = [e.least for e in builtin_suite(window, expiring, FACTS) if hasattr(e, "least")]
    expires = isinstance(window, Aligned)
    assert least == ([0 if expires else 1] if FLOOR in ASKED[window.name] else [])


@pytest.mark.parametrize("window", WINDOWS, ids=lambda w: w.name)
def test_aggregates_that_count_nothing_are_asked_for_no_count(window: Window) -> None:
    worst = replace(window, aggregates=(Aggregate("worst", "max", "delay"),))
    assert asked(worst) == ASKED[window.name] - {COUNTS, TOTAL}


@pytest.mark.parametrize("window", WINDOWS, ids=lambda w: w.name)
def test_the_law_knows_the_columns_of_an_output_and_survives_json(window: Window) -> None:
    law, output = law_of(window, PIPELINE.source.key), merge.output_table(PIPELINE, window)
    assert (law.columns, law.identity) == (output.columns, output.identity)
    assert law_from(json.loads(json.dumps(law.as_mapping()))) == law


@pytest.mark.slow
def test_right_outputs_of_every_kind_meet_everything(judge: Judge) -> None:
    assert set(GOOD) == {w.name for w in WINDOWS}
    verdict = judge(GOOD)
    assert [
        (o.window, o.expectation, o.observed, o.detail) for o in verdict.outcomes if not o.success
    ] == []
    assert {o.window for o in verdict.outcomes} == set(GOOD)


@pytest.mark.slow
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
        assert not all_passed(verdict.outcomes)
        found = {
            window: failed(o for o in verdict.outcomes if o.window == window) for window in one
        }
        assert found == {window: expected for window, (_, _, expected) in one.items()}, {
            w: name for w, (name, *_) in one.items()
        }


def test_the_defects_reach_every_builtin_expectation() -> None:
    reached = {
        f"expect_{e}".removesuffix("(flights)") for *_, expected in DEFECTS for e in expected
    }
    assert TYPES - reached == {"expect_window_columns_to_exist"}


def test_nothing_has_to_be_there_when_nothing_was_accepted(judge: Judge) -> None:
    names = ("hourly", "so_far", "to_date", "shift", "recent", "latest", "ever")
    assert (
        failed(
            judge(
                dict.fromkeys(names, []),
                facts=Facts(accepted=3, partial=dict.fromkeys(names, 3)),
            ).outcomes
        )
        == set()
    )


def count_named(spark: SparkSession, window: str, rows: list[Row], outcome: Outcome) -> int | None:
    """How many rows are named for a failed outcome; None where no single row fails."""
    selected = select_failing(frame(spark, window, rows), PIPELINE, outcome, SUITES)
    return None if selected is None else len(selected.collect())


def check_named(spark: SparkSession, judge: Judge, window: str, rows: list[Row]) -> None:
    """As many rows are named as were counted, and those of the same window all together."""
    for outcome in judge({window: rows}).outcomes:
        if outcome.success:
            continue
        named = count_named(spark, window, rows, outcome)
        counted = re.match(r"(\d+) of \d+ rows?$", outcome.observed)
        if counted is None:
            assert named is None, outcome
        elif outcome.expectation.endswith("_to_be_unique") and named != int(counted[1]):
            # Here every row of a window that occurs twice is named, and the first is not counted.
            assert named == 2 * int(counted[1]), outcome
        else:
            assert named == int(counted[1]), outcome


@pytest.mark.parametrize("window", ["zoned", "hourly", "busy"])
def test_the_rows_that_break_a_promise_are_named(
    window: str, spark: SparkSession, judge: Judge
) -> None:
    """One defect of each: a window off its local grid, a row twice, sessions that overlap."""
    words = {"zoned": "grid", "hourly": "unique", "busy": "overlap"}
    rows = next(r for _, w, r, broken in DEFECTS if w == window and words[window] in str(broken))
    check_named(spark, judge, window, rows)


@pytest.mark.deep
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: f"{defect[1]} {defect[0]}")
def test_the_rows_of_every_defect_are_named(
    defect: tuple[str, str, list[Row], set[str]], spark: SparkSession, judge: Judge
) -> None:
    check_named(spark, judge, defect[1], defect[2])
