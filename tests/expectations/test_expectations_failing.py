"""Which rows fail an expectation, and which failures that were accepted before last.

Both are compared with plain loops over the same rows.
"""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from expectations.acceptance import digest_rule, find_accepted, select_changed
from expectations.outcome import Standing
from expectations.suite import expectation_types
from expectations.unexpected import fails_by_rows, names_rows, select_unexpected

SCHEMA = "key string, n bigint, ratio double, revision bigint, run bigint"
Values = tuple[Any, ...]
Fails = Callable[[list[Values], Values], bool]
"""All rows and one of them -> whether that one fails."""


def make(name: str, **arguments: Any) -> Any:
    """An expectation as a suite names it."""
    return expectation_types()[name](**arguments)


BY_ROWS: tuple[tuple[Any, Fails], ...] = (
    (
        make("expect_column_values_to_be_between", column="n", min_value=2, max_value=4),
        lambda rows, row: row[1] is not None and not 2 <= row[1] <= 4,
    ),
    (
        make("expect_column_values_to_be_between", column="n", max_value=3, mostly=0.9),
        lambda rows, row: row[1] is not None and row[1] > 3,
    ),
    (make("expect_column_values_to_not_be_null", column="ratio"), lambda rows, row: row[2] is None),
    (
        make("expect_column_values_to_be_in_set", column="key", value_set=["a", "b"]),
        lambda rows, row: row[0] not in ("a", "b"),
    ),
    (
        make("expect_column_values_to_be_unique", column="n"),
        lambda rows, row: row[1] is not None and [r[1] for r in rows].count(row[1]) > 1,
    ),
    (
        make(
            "expect_column_pair_values_a_to_be_greater_than_b",
            column_A="n",
            column_B="ratio",
            ignore_row_if="either_value_is_missing",
        ),
        lambda rows, row: None not in row[1:3] and row[1] <= row[2],
    ),
    (
        make("expect_column_pair_values_a_to_be_greater_than_b", column_A="n", column_B="ratio"),
        lambda rows, row: row[1:3] != (None, None) and (None in row[1:3] or row[1] <= row[2]),
    ),
    (
        make(
            "expect_column_pair_values_a_to_be_greater_than_b",
            column_A="n",
            column_B="ratio",
            or_equal=True,
            ignore_row_if="neither",
        ),
        lambda rows, row: row[1] != row[2] and (None in row[1:3] or row[1] < row[2]),
    ),
)


def make_rows(chance: random.Random, count: int) -> list[Values]:
    """Rows with every key once, in no order; `revision` and `run` are any numbers."""
    return [
        (
            chance.choice("abcd"),
            chance.choice([None, 1, 2, 3, 4, 5, 100 + n]),
            chance.choice([None, 0.5, 2.5, 9.0]),
            chance.randrange(3),
            chance.randrange(9),
        )
        for n in range(count)
    ]


def change_some(chance: random.Random, rows: list[Values]) -> list[Values]:
    """The rows as a later version could have them: other values, more rows, fewer, or the same."""
    kept = [row for row in rows if chance.random() < 0.9]
    touched = [(*row[:3], row[3] + 1, row[4] + 1) if chance.random() < 0.5 else row for row in kept]
    return touched + make_rows(chance, chance.choice([0, 0, 1, 3]))


def collected(frame: DataFrame) -> Counter[Values]:
    return Counter(tuple(row) for row in frame.collect())


@pytest.fixture
def frame_of(spark: SparkSession) -> Callable[[list[Values]], DataFrame]:
    return lambda rows: spark.createDataFrame(rows, SCHEMA)


def observe_nothing(rows: DataFrame, expectation: Any) -> None:
    raise AssertionError("only expectations over all rows observe a value")


@pytest.mark.parametrize("seed", range(3))
def test_the_rows_that_fail_are_those_of_a_plain_loop(
    seed: int, frame_of: Callable[[list[Values]], DataFrame]
) -> None:
    rows = make_rows(random.Random(seed), 12)
    frame = frame_of(rows)
    for expectation, fails in BY_ROWS:
        expected = Counter(row for row in rows if fails(rows, row))
        found = collected(select_unexpected(frame, expectation))
        assert found == expected, expectation.expectation_type


@pytest.mark.parametrize("seed", range(4))
def test_an_acceptance_lasts_while_every_row_that_fails_is_seen_by_readers(
    seed: int, frame_of: Callable[[list[Values]], DataFrame]
) -> None:
    chance = random.Random(seed)
    shown = make_rows(chance, 6)
    newest = change_some(chance, shown)
    reasons = {digest_rule(e.configuration): f"why {n}" for n, (e, _) in enumerate(BY_ROWS)}
    standing = Standing(frame_of(shown), reasons)
    seen = {row[:3] for row in shown}
    expected = {}
    for expectation, fails in BY_ROWS:
        if all(row[:3] in seen for row in newest if fails(newest, row)):
            rule = digest_rule(expectation.configuration)
            expected[rule] = reasons[rule]
    every = [expectation for expectation, _ in BY_ROWS]
    assert find_accepted(frame_of(newest), every, standing, observe_nothing) == expected


def test_rows_that_differ_in_revision_and_run_alone_are_the_same(
    frame_of: Callable[[list[Values]], DataFrame],
) -> None:
    nan = float("nan")
    shown = frame_of([("a", 1, None, 0, 1), ("b", 2, nan, 0, 1), ("c", None, 0.5, 0, 1)])
    newest = [("a", 1, None, 5, 6), ("b", 2, nan, 5, 6), ("c", 0, 0.5, 0, 1), ("d", 1, None, 0, 1)]
    changed = select_changed(frame_of(newest), shown)
    assert collected(changed) == Counter(newest[2:])


def test_where_readers_lack_a_column_every_row_has_changed(
    frame_of: Callable[[list[Values]], DataFrame],
) -> None:
    frame = frame_of([("a", 1, None, 0, 1)])
    assert select_changed(frame, frame.drop("ratio")).count() == 1


def test_another_limit_is_another_rule_and_was_not_accepted(
    frame_of: Callable[[list[Values]], DataFrame],
) -> None:
    frame = frame_of([("a", 9, None, 0, 1)])
    before = make(
        "expect_column_values_to_be_between", column="n", max_value=3, severity="critical"
    )
    described = make(
        "expect_column_values_to_be_between",
        column="n",
        max_value=3,
        severity="warning",
        description="At most three",
    )
    stricter = make("expect_column_values_to_be_between", column="n", max_value=2)
    standing = Standing(frame, {digest_rule(before.configuration): "known"})
    assert find_accepted(frame, [described], standing, observe_nothing) == {
        digest_rule(before.configuration): "known"
    }
    assert find_accepted(frame, [stricter], standing, observe_nothing) == {}


def test_an_expectation_over_all_rows_lasts_while_it_observes_the_same(
    frame_of: Callable[[list[Values]], DataFrame],
) -> None:
    expectation = make("expect_column_max_to_be_between", column="n", max_value=3)
    rule = digest_rule(expectation.configuration)
    shown, same, higher = (frame_of([("a", n, None, 0, 1)]) for n in (9, 9, 10))
    standing = Standing(shown, {rule: "known"})

    def observe(rows: DataFrame, _: Any) -> Any:
        return rows.agg({"n": "max"}).collect()[0][0]

    assert find_accepted(same, [expectation], standing, observe) == {rule: "known"}
    assert find_accepted(higher, [expectation], standing, observe) == {}
    assert find_accepted(same, [expectation], standing, lambda rows, _: None) == {}


def test_a_row_that_fails_because_of_others_is_never_accepted_for_good(
    frame_of: Callable[[list[Values]], DataFrame],
) -> None:
    expectation = make(
        "expect_column_value_z_scores_to_be_less_than", column="n", threshold=1, double_sided=True
    )
    frame = frame_of([("a", n, None, 0, 1) for n in (1, 2, 3, 40)])
    standing = Standing(frame, {digest_rule(expectation.configuration): "known"})
    assert find_accepted(frame, [expectation], standing, observe_nothing) == {}


def test_types_of_great_expectations_are_known_by_how_they_fail() -> None:
    """A type that a new version of Great Expectations adds has to be looked at."""
    types = expectation_types()
    by_rows = {name for name, kind in types.items() if fails_by_rows(kind)}
    by_other_rows = {name for name, kind in types.items() if names_rows(kind)} - by_rows
    assert by_other_rows == {
        "expect_column_value_z_scores_to_be_less_than",
        "expect_column_values_to_not_be_outliers",
    }
    assert by_rows == {
        "expect_column_pair_values_a_to_be_greater_than_b",
        "expect_column_pair_values_to_be_equal",
        "expect_column_pair_values_to_be_in_set",
        "expect_column_value_lengths_to_be_between",
        "expect_column_value_lengths_to_equal",
        "expect_column_values_to_be_between",
        "expect_column_values_to_be_in_set",
        "expect_column_values_to_be_json_parseable",
        "expect_column_values_to_be_null",
        "expect_column_values_to_be_unique",
        "expect_column_values_to_match_json_schema",
        "expect_column_values_to_match_regex",
        "expect_column_values_to_match_regex_list",
        "expect_column_values_to_match_strftime_format",
        "expect_column_values_to_not_be_in_set",
        "expect_column_values_to_not_be_null",
        "expect_column_values_to_not_match_regex",
        "expect_column_values_to_not_match_regex_list",
        "expect_compound_columns_to_be_unique",
        "expect_multicolumn_sum_to_equal",
        "expect_multicolumn_values_to_be_equal",
        "expect_select_column_values_to_be_unique_within_record",
    }
