"""Where a change of a closed output is written: into it, beside it, or nowhere."""

from dataclasses import astuple, replace
from itertools import product

import pytest

from tests.windowing.spec.kept_specs import kept
from windowing.closed.rule import (
    Placed,
    Row,
    can_be_frozen,
    list_placed,
    place_row,
    write_digest,
)
from windowing.columns import DELETE, INSERT, UPDATE
from windowing.spec.kinds import (
    CHANGES,
    ON_CHANGE,
    ON_CLOSE,
    Count,
    Delta,
    Global,
    OutputPolicy,
    Punctuation,
    Sliding,
)

ROWS = [Row(*digits) for digits in product((False, True), repeat=6)]
OPEN = Row(
    exists=True, is_held=False, is_frozen=False, is_same=False, in_output=False, in_restated=False
)
FROZEN = replace(OPEN, is_frozen=True, in_output=True, is_held=True)


def after(there: bool, operation: str | None) -> bool:  # noqa: FBT001
    """Whether a table has the row after an operation that fits what it has."""
    assert operation in ({None, UPDATE, DELETE} if there else {None, INSERT})
    return {None: there, INSERT: True, UPDATE: True, DELETE: False}[operation]


@pytest.mark.parametrize("row", [row for row in ROWS if row.is_frozen])
def test_a_frozen_row_is_never_written(row: Row) -> None:
    assert place_row(row).output is None


@pytest.mark.parametrize("row", [row for row in ROWS if row.in_output or not row.is_frozen])
def test_both_tables_together_have_the_row_as_it_would_be(row: Row) -> None:
    placed = place_row(row)
    shown, stated = after(row.in_output, placed.output), after(row.in_restated, placed.restated)
    if row.is_frozen:
        assert shown
        assert stated == (not (row.exists and row.is_same))
    else:
        assert (shown, stated) == (row.exists and not row.is_held, row.exists and row.is_held)


@pytest.mark.parametrize("row", [row for row in ROWS if row.in_output or not row.is_frozen])
def test_what_is_written_twice_comes_to_the_same(row: Row) -> None:
    placed = place_row(row)
    shown, stated = after(row.in_output, placed.output), after(row.in_restated, placed.restated)
    again = place_row(replace(row, in_output=shown, in_restated=stated))
    assert after(shown, again.output) == shown
    assert after(stated, again.restated) == stated


@pytest.mark.parametrize(
    ("row", "placed"),
    [
        (OPEN, Placed(INSERT, None)),
        (replace(OPEN, in_output=True), Placed(UPDATE, None)),
        (replace(OPEN, in_output=True, exists=False), Placed(DELETE, None)),
        (replace(OPEN, is_held=True), Placed(None, INSERT)),
        (replace(OPEN, is_held=True, in_output=True), Placed(DELETE, INSERT)),
        (replace(OPEN, in_restated=True), Placed(INSERT, DELETE)),
        (FROZEN, Placed(None, INSERT)),
        (replace(FROZEN, exists=False), Placed(None, INSERT)),
        (replace(FROZEN, is_same=True), Placed(None, None)),
        (replace(FROZEN, is_same=True, in_restated=True), Placed(None, DELETE)),
    ],
)
def test_some_rows_by_hand(row: Row, placed: Placed) -> None:
    assert place_row(row) == placed


def test_the_list_has_the_answer_for_every_row() -> None:
    digits = [astuple(row) for row in ROWS]
    numbers = [sum(2**place for place, digit in enumerate(each) if digit) for each in digits]
    assert [list_placed()[number] for number in numbers] == [place_row(row) for row in ROWS]
    assert len(list_placed()) == len(ROWS)


def test_windows_without_an_end_of_their_own_are_not_frozen() -> None:
    windows = [window for pipeline in kept().values() for window in pipeline.windows]
    whole = [window for window in windows if window.shown.emit != CHANGES]
    assert {type(window) for window in whole if not can_be_frozen(window)} == {
        Count,
        Delta,
        Global,
        Punctuation,
    }


@pytest.mark.parametrize("emit", [ON_CHANGE, ON_CLOSE, CHANGES])
def test_rows_that_go_by_the_row_before_them_are_not_frozen(emit: str) -> None:
    windows = [window for pipeline in kept().values() for window in pipeline.windows]
    sliding = next(window for window in windows if isinstance(window, Sliding))
    again = replace(sliding, shown=OutputPolicy(emit))
    assert can_be_frozen(again) == (emit != CHANGES)


def test_a_digest_has_all_sums_at_their_places() -> None:
    assert write_digest((1, 2, 3, 4)) == "".join(f"{n:016}" for n in (1, 2, 3, 4))
    assert write_digest((2**64 + 1, 0, 0, 0)) == write_digest((1, 0, 0, 0))
