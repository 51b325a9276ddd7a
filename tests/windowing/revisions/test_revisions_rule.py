"""Values of a window follow from its recorded changes and from the ledger, without a table."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowing.grid.zone import moment
from windowing.ledger.evolved import OF_ERASURE
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import (
    BACKFILL_DONE,
    CLOSE,
    DONE,
    ERASE_DONE,
    EVOLVE_DONE,
    INTENT,
    MAINTAIN_DONE,
    PUBLISH,
    LedgerEntry,
)
from windowing.revisions.rule import (
    Cause,
    Change,
    Period,
    Step,
    find_step,
    find_version_at,
    list_values,
    list_versions_of_runs,
)

RANGE = '{"from_us": 0, "to_us": 3600000000, "version": 5, "batch": %s}'


def ledger(*steps: tuple[str, int]) -> LedgerHistory:
    """A ledger of steps, each with the version of the output afterwards, one second apart."""
    entries = []
    for seq, (step, version) in enumerate(steps):
        entries.append(LedgerEntry(step, seq, run=seq, at=seq, versions={"hourly": version}))
    return LedgerHistory(tuple(entries))


def noted(step: str, note: str | None) -> LedgerHistory:
    """A ledger of one step with a note."""
    return LedgerHistory((LedgerEntry(step, 0, run=1, at=0, versions={"hourly": 1}, note=note),))


@pytest.mark.parametrize(
    ("step", "note", "cause"),
    [
        (DONE, None, Cause.RUN),
        (CLOSE, None, Cause.RUN),
        (BACKFILL_DONE, RANGE % "null", Cause.BACKFILL),
        (BACKFILL_DONE, RANGE % "4", Cause.SOURCE_CHANGE),
        (EVOLVE_DONE, None, Cause.SPEC_CHANGE),
        (EVOLVE_DONE, OF_ERASURE, Cause.ERASURE),
        (ERASE_DONE, None, Cause.ERASURE),
        (MAINTAIN_DONE, None, Cause.MAINTENANCE),
    ],
)
def test_each_step_is_a_cause(step: str, note: str | None, cause: Cause) -> None:
    found = find_step(noted(step, note), "hourly", 1)
    assert (found.cause, found.run, found.at) == (cause, 1, moment(0))


def test_a_backfill_says_its_range() -> None:
    found = find_step(noted(BACKFILL_DONE, RANGE % "null"), "hourly", 1)
    assert found.reprocessed == Period(moment(0), moment(3_600_000_000))


def test_a_version_that_no_step_has_finished_is_of_an_unfinished_one() -> None:
    past = ledger((DONE, 3), (INTENT, 4), (PUBLISH, 4))
    assert find_step(past, "hourly", 4) == Step(Cause.UNFINISHED)


def test_the_first_step_that_names_a_version_or_a_later_one_made_it() -> None:
    past = ledger((DONE, 2), (CLOSE, 5), (MAINTAIN_DONE, 6))
    runs = [find_step(past, "hourly", version).run for version in range(1, 7)]
    assert runs == [0, 0, 1, 1, 1, 2]


def test_the_newest_version_of_a_time_is_that_of_the_last_step_that_had_ended() -> None:
    past = ledger((DONE, 2), (PUBLISH, 9), (BACKFILL_DONE, 3), (DONE, 3), (MAINTAIN_DONE, 4))
    assert [find_version_at(past, "hourly", at) for at in range(-1, 6)] == [-1, 2, 2, 3, 3, 4, 4]


def test_a_window_that_never_changed_has_one_value_of_unknown_age() -> None:
    (value,) = list_values([], {"n": 1}, ledger((DONE, 1)), "hourly", 1)
    assert (value.values, value.made_by, value.known) == ({"n": 1}, None, Period(None, None))


def test_an_insert_that_is_not_recorded_was_that_of_the_run_which_the_row_names() -> None:
    past = ledger((DONE, 2), (BACKFILL_DONE, 3), (DONE, 5), (PUBLISH, 5))
    (value,) = list_values([], {"n": 1, "run": 2}, past, "hourly", 1)
    assert value.made_by == find_step(past, "hourly", 4)
    assert value.published == (Period(moment(3), None),)


def test_what_was_before_anything_is_recorded_is_not_known() -> None:
    past = ledger((DONE, 2), (PUBLISH, 2), (BACKFILL_DONE, 3), (DONE, 4), (PUBLISH, 4))
    (value,) = list_values([], {"n": 1, "run": 0}, past, "hourly", 3)
    assert (value.made_by, value.known) == (None, Period(None, None))
    # Readers saw it from the second publication on, if they had not seen it since the first.
    assert (value.published, value.is_published_known) == ((Period(None, None),), False)


def test_what_was_published_last_before_anything_is_recorded_may_be_the_value() -> None:
    past = ledger((DONE, 2), (PUBLISH, 2), (BACKFILL_DONE, 3))
    (value,) = list_values([], {"n": 1, "run": 0}, past, "hourly", 3)
    assert (value.published, value.is_published_known) == ((), False)
    never = ledger((DONE, 2), (BACKFILL_DONE, 3))
    (value,) = list_values([], {"n": 1, "run": 0}, never, "hourly", 3)
    assert (value.published, value.is_published_known) == ((), True)


def test_versions_of_runs_that_follow_one_another_are_one_range() -> None:
    steps = [(DONE, 2), (CLOSE, 2), (DONE, 5), (BACKFILL_DONE, 7), (MAINTAIN_DONE, 8), (DONE, 9)]
    assert list(list_versions_of_runs(ledger(*steps), "hourly")) == [(1, 5), (9, 9)]
    assert list(list_versions_of_runs(ledger((BACKFILL_DONE, 1)), "hourly")) == []


def test_a_row_that_came_back_without_a_record_begins_at_an_unknown_time() -> None:
    changes = [Change(2, {"n": 1}, stays=False), Change(4, {"n": 2}, stays=True)]
    past = ledger((DONE, 2), (DONE, 4))
    found = list_values(changes, {"n": 3}, past, "hourly", 1)
    assert [value.values for value in found] == [{"n": 1}, None, {"n": 2}, {"n": 3}]
    assert [value.made_by and value.made_by.run for value in found] == [None, 0, None, 1]


def test_a_version_that_replaced_a_row_has_not_removed_it() -> None:
    changes = [Change(2, {"n": 1}, stays=False), Change(2, None, stays=True)]
    found = list_values(changes, {"n": 3}, ledger((DONE, 2)), "hourly", 1)
    assert [value.values for value in found] == [{"n": 1}, {"n": 3}]


def test_what_a_step_has_replaced_itself_is_no_value() -> None:
    changes = [
        Change(1, None, stays=True),
        Change(2, {"n": 1}, stays=False),
        Change(3, None, stays=True),
        Change(4, {"n": 1, "late": None}, stays=True),
    ]
    past = ledger((DONE, 1), (EVOLVE_DONE, 4))
    found = list_values(changes, {"n": 1, "late": 0}, past, "hourly", 1)
    assert [value.values for value in found] == [{"n": 1}, {"n": 1, "late": 0}]
    assert found[0].known.end == found[1].known.start == moment(1)
    unfinished = list_values(changes, {"n": 1, "late": 0}, ledger((DONE, 1)), "hourly", 1)
    assert len(unfinished) == 4, "of a step that is not finished the ledger knows no end"


def test_a_value_is_published_while_readers_are_shown_one_of_its_versions() -> None:
    changes = [Change(1, None, stays=True), Change(3, {"n": 1}, stays=True)]
    steps = [
        (DONE, 1),
        (PUBLISH, 1),
        (DONE, 2),
        (PUBLISH, 2),
        (DONE, 3),
        (PUBLISH, 3),
        (PUBLISH, 2),
    ]
    first, second = list_values(changes, {"n": 2}, ledger(*steps), "hourly", 1)
    assert first.published == (Period(moment(1), moment(5)), Period(moment(6), None))
    assert second.published == (Period(moment(5), moment(6)),)


@given(st.integers(0, 3), st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=12))
def test_whatever_a_row_was_is_told(first: int, others: list[int | None]) -> None:
    """Version n + 1 of the output has left the row as `states[n]` says; None is no row."""
    states = [first, *others]
    changes: list[Change] = []
    seen: list[dict[str, Any] | None] = []
    before: dict[str, Any] | None = None
    for version, state in enumerate(states, 1):
        now = None if state is None else {"n": state}
        if now != before:
            changes.append(Change(version, before, stays=now is not None))
            seen.append(now)
        before = now
    past = ledger(*((DONE, version) for version in range(1, len(states) + 1)))
    found = list_values(changes, before, past, "hourly", 1)
    assert [value.values for value in found] == seen
    begun = [value.made_by and value.made_by.run for value in found]
    assert begun == [change.version - 1 for change in changes]
