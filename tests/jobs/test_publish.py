"""Which step `publish` takes when a run or backfill came after the one that was validated."""

from dataclasses import replace

from jobs.validation.publishable import publishable_entry
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import (
    BACKFILL_DONE,
    CLOSE,
    ERASE_DONE,
    EVOLVE_DONE,
    OPEN,
    PERIOD_CLOSED,
    PERIOD_REOPENED,
    PUBLISH,
    LedgerEntry,
)


def taken(validated: set[int], *steps: str) -> int | None:
    """The number of the step that is published, of steps numbered from 0."""
    found = publishable_entry(
        LedgerHistory(tuple(replace(LedgerEntry(step), seq=n) for n, step in enumerate(steps))),
        validated,
    )
    return None if found is None else found.seq


def test_the_newest_that_was_validated() -> None:
    assert taken({1}, OPEN, CLOSE) == 1
    assert taken({1, 3}, OPEN, CLOSE, OPEN, CLOSE) == 3
    assert taken({1}, OPEN, CLOSE, BACKFILL_DONE) == 1, "a chunk came between validate and publish"
    assert taken({1}, OPEN, CLOSE, BACKFILL_DONE, OPEN, CLOSE, OPEN) == 1


def test_nothing_that_is_published_already_or_was_never_validated() -> None:
    assert taken(set()) is None
    assert taken(set(), OPEN, CLOSE) is None
    assert taken({1}, OPEN, CLOSE, PUBLISH) is None
    assert taken({1}, OPEN, CLOSE, PUBLISH, OPEN, CLOSE) is None
    assert taken({1, 4}, OPEN, CLOSE, PUBLISH, OPEN, CLOSE, BACKFILL_DONE) == 4


def test_nothing_from_before_a_key_was_erased_or_the_spec_changed() -> None:
    assert taken({1}, OPEN, CLOSE, ERASE_DONE) is None
    assert taken({1}, OPEN, CLOSE, EVOLVE_DONE) is None
    assert taken({2}, OPEN, CLOSE, ERASE_DONE, BACKFILL_DONE) == 2


def test_nothing_from_before_a_period_was_closed_or_reopened() -> None:
    assert taken({1}, OPEN, CLOSE, OPEN, CLOSE, PERIOD_CLOSED) is None
    assert taken({1}, OPEN, CLOSE, PERIOD_CLOSED, OPEN, CLOSE) is None
    assert taken({1}, OPEN, CLOSE, PERIOD_REOPENED) is None
    assert taken({3}, OPEN, CLOSE, PERIOD_CLOSED, CLOSE, BACKFILL_DONE) == 3
    assert taken({2}, OPEN, CLOSE, PERIOD_REOPENED, CLOSE) == 2
