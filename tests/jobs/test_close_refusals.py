"""What can't be closed, by the ledger and the spec alone, and what an interruption has begun."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from jobs.cli.close import describe_closed
from jobs.close import check_close, was_begun
from jobs.restatements import check_frozen, subtract
from tests.support.json_of_periods import CLOSED
from tests.windowing.spec.specs import changed
from windowing.errors import UsageError
from windowing.ledger.history import LedgerHistory
from windowing.ledger.period import Period, Reopening
from windowing.ledger.rule import (
    CLOSE,
    ERASE_DONE,
    ERASE_INTENT,
    OPEN,
    PERIOD_CLOSED,
    PERIOD_INTENT,
    PERIOD_REOPENED,
    LedgerEntry,
)
from windowing.spec.load import load_pipeline
from windowing.values import is_same

PIPELINE = load_pipeline(changed())
PAIRS = {"pairs": {"kind": "count", "count": 2}}
RAN = (LedgerEntry(OPEN, run=1), LedgerEntry(CLOSE, run=1, watermark_out=100))


def ledger(*entries: LedgerEntry) -> LedgerHistory:
    """The entries as a ledger, numbered."""
    return LedgerHistory(tuple(replace(e, seq=seq) for seq, e in enumerate(entries)))


def noted(step: str, until_us: int | None) -> LedgerEntry:
    """A step of a period."""
    made = Reopening("a bill was wrong") if until_us is None else Period(until_us, "invoiced")
    return LedgerEntry(step, note=made.as_note())


def test_a_close_until_the_watermark_is_allowed() -> None:
    check_close(PIPELINE, ledger(*RAN), 100)
    erased = LedgerEntry(ERASE_INTENT), LedgerEntry(ERASE_DONE)
    check_close(PIPELINE, ledger(*RAN, *erased, noted(PERIOD_CLOSED, 90)), 90)


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ((), "nothing was computed"),
        ((*RAN, LedgerEntry(ERASE_INTENT)), "rerun `tidemark erase`"),
        ((*RAN, noted(PERIOD_CLOSED, 99)), "only moves forward"),
        ((RAN[0], replace(RAN[1], watermark_out=97)), "watermark"),
    ],
)
def test_what_is_refused(entries: Iterable[LedgerEntry], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        check_close(PIPELINE, ledger(*entries), 98)


def test_a_pipeline_whose_rows_are_never_frozen_is_not_closed() -> None:
    pipeline = load_pipeline(changed(windows=PAIRS))
    with pytest.raises(UsageError, match="rows of pairs are never frozen"):
        check_close(pipeline, ledger(*RAN), 98)
    with pytest.raises(UsageError, match="rows of pairs are never frozen"):
        check_frozen(pipeline, pipeline.window("pairs"))
    check_frozen(PIPELINE, PIPELINE.window("hourly"))
    check_frozen(PIPELINE, None)


def test_an_interrupted_step_is_known_by_where_it_ends() -> None:
    closing = ledger(*RAN, noted(PERIOD_INTENT, 98))
    assert [was_begun(closing, until_us) for until_us in (98, 99, None)] == [True, False, False]
    opening = ledger(*RAN, noted(PERIOD_CLOSED, 98), noted(PERIOD_INTENT, None))
    assert [was_begun(opening, until_us) for until_us in (98, None)] == [False, True]
    done = ledger(*opening.entries, noted(PERIOD_REOPENED, None))
    assert not was_begun(done, None)


@pytest.mark.parametrize(("published", "warns"), [(None, False), (True, False), (False, True)])
def test_older_published_rows_are_warned_of_where_there_are_any(
    published: bool | None,  # noqa: FBT001
    warns: bool,  # noqa: FBT001
) -> None:
    said = " ".join(describe_closed(PIPELINE, replace(CLOSED, published=published)))
    assert ("and an older version of others" in said) == warns


def test_what_is_no_number_twice_does_not_differ() -> None:
    nan = float("nan")
    assert is_same(nan, float("nan")) and not is_same(nan, 1.0)
    assert subtract({"x": nan, "y": 1.5}, {"x": float("nan"), "y": 2.0}) == {"x": 0, "y": 0.5}
