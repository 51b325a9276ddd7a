"""Every aggregate is described, computed, derived by hand and documented."""

import re
from pathlib import Path

import pytest

from tests.windowing.aggregates.plain import NUMBERS, PLAIN, one_of, value_of
from windowing.aggregates.catalog import AGGREGATES
from windowing.spec.aggregate_description import FUNCTIONS, Call, Takes, describe_aggregate

PAGE = (Path(__file__).parents[3] / "docs/aggregates.md").read_text()
ROWS = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
NAMED = {
    "windowing/spec/aggregate_description.py": {*FUNCTIONS},
    "windowing/aggregates/catalog.py": {*AGGREGATES, "median"},
    "tests/windowing/aggregates/plain.py": {*PLAIN, "median"},
    "docs/aggregates.md": {name for row in ROWS for name in re.findall(r"`(\w+)\(", row)},
}
"""The aggregates that each place names; median is computed as a quantile."""
TAKES = {NUMBERS: Takes.NUMBERS, ("mark",): Takes.CONDITION}
WITH_NUMBER = (Call.FRACTION, Call.PLACES, Call.LIST)


@pytest.mark.parametrize("place", NAMED)
def test_a_place_names_every_aggregate(place: str) -> None:
    missing = set[str]().union(*NAMED.values()) - NAMED[place]
    assert not missing, f"add {', '.join(sorted(missing))} to {place}"


@pytest.mark.parametrize("function", sorted({*PLAIN} & {*FUNCTIONS}))
def test_a_description_says_which_values_are_taken(function: str) -> None:
    taken = TAKES.get(PLAIN[function].columns, Takes.ORDERED)
    assert describe_aggregate(function).takes is taken


@pytest.mark.parametrize("function", sorted({*PLAIN} & {*FUNCTIONS}))
def test_a_description_says_which_arguments_a_call_has(function: str) -> None:
    plain = PLAIN[function]
    form = describe_aggregate(function).call
    assert (form is Call.NOTHING) == (plain.columns == ())
    assert (form is Call.TWO_COLUMNS) == plain.has_two_columns
    assert (form in WITH_NUMBER) == (plain.arguments != (None,))


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if describe_aggregate(f).counts_events])
def test_what_counts_events_is_zero_without_any(function: str) -> None:
    assert value_of(one_of(function), []) == 0
