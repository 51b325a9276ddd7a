"""Which chunks a backfill has, which are passed over when it is repeated, and what ends it."""

from dataclasses import replace
from datetime import UTC, datetime
from json import dumps

import pytest

from jobs.recompute.plan import CHUNK_US, begun_before, chunks_of, must_be_the_same
from jobs.recompute.time_range import TimeRange
from windowing.errors import UsageError
from windowing.grid.zone import micros
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import (
    BACKFILL_DONE,
    BACKFILL_INTENT,
    CLOSE,
    DONE,
    ERASE_DONE,
    ERASE_INTENT,
    ERASE_LIST,
    EVOLVE_DONE,
    MAX_TIME,
    MIN_TIME,
    OPEN,
    LedgerEntry,
)
from windowing.spec.fingerprint import parts
from windowing.spec.load import load_pipeline

ASKED = (0, 30)


def chunk(start: int, end: int, asked: tuple[int, int] = ASKED) -> TimeRange:
    return TimeRange(start, end, 1, asked=asked)


def ended(start: int, end: int, asked: tuple[int, int] | None = ASKED) -> LedgerEntry:
    note = {"from_us": start, "to_us": end, "version": 1, "batch": None} | (
        {"asked": list(asked)} if asked else {}
    )
    return LedgerEntry(BACKFILL_DONE, run=start, note=dumps(note))


def passed_over(*entries: LedgerEntry) -> list[int]:
    """The starts of the chunks that were done before."""
    return [
        c.start_us
        for c in (chunk(0, 10), chunk(10, 20), chunk(20, 30))
        if begun_before(LedgerHistory(entries), c)
    ]


def test_of_the_same_range_what_is_done_is_not_done_again() -> None:
    assert passed_over() == []
    assert passed_over(ended(0, 10)) == [0]
    assert passed_over(
        ended(0, 10), LedgerEntry(CLOSE), LedgerEntry(BACKFILL_INTENT), ended(10, 20)
    ) == [0, 10]


@pytest.mark.parametrize("step", [ERASE_LIST, ERASE_DONE, EVOLVE_DONE])
def test_what_was_done_before_other_rows_were_valid_is_done_again(step: str) -> None:
    assert passed_over(ended(0, 10), LedgerEntry(step), ended(10, 20)) == [10]


def test_a_part_of_a_chunk_is_not_the_chunk() -> None:
    assert passed_over(ended(0, 9)) == []
    assert passed_over(ended(0, 20)) == [0]


def test_a_range_that_was_finished_begins_anew() -> None:
    whole = (ended(0, 10), ended(10, 20), ended(20, 30))
    assert passed_over(*whole) == []
    assert passed_over(*whole, ended(0, 10)) == [0]


def test_another_range_in_between_begins_anew() -> None:
    assert passed_over(ended(0, 10), ended(0, 10, (0, 10))) == []
    assert passed_over(ended(0, 10), ended(0, 10, None)) == []
    assert passed_over(ended(0, 10, (0, 40))) == []


def test_a_last_chunk_that_was_left_open_is_finished_and_none_is_done_again() -> None:
    begun = LedgerEntry(BACKFILL_INTENT, seq=7, run=20, note=ended(20, 30).note)
    assert passed_over(replace(ended(0, 10), seq=3), replace(ended(10, 20), seq=5), begun) == [
        0,
        10,
        20,
    ]
    other = LedgerEntry(BACKFILL_INTENT, seq=7, run=20, note=ended(20, 30, (20, 30)).note)
    assert passed_over(replace(ended(0, 10), seq=3), other) == []


PIPELINE = load_pipeline(
    {
        "name": "p",
        "lake": "/lake",
        "source": {"table": "/t", "event_time": "at", "key": ["k"]},
        "aggregates": {"n": "count()"},
        "windows": {
            "hourly": {"kind": "tumbling", "size": "1 hour"},
            "daily": {"kind": "tumbling", "size": "1 day"},
        },
    }
)
BEGAN = LedgerHistory(
    (
        LedgerEntry(OPEN, seq=0, at=1, note=dumps({"types": {}, "parts": parts(PIPELINE)})),
        LedgerEntry(CLOSE, seq=1, at=2),
    )
)


def with_more(*entries: LedgerEntry) -> LedgerHistory:
    """The ledger when the lock is taken again."""
    return LedgerHistory((*BEGAN.entries, *(replace(e, seq=2 + n) for n, e in enumerate(entries))))


def test_runs_may_come_meanwhile() -> None:
    must_be_the_same(PIPELINE, BEGAN, BEGAN)
    must_be_the_same(PIPELINE, BEGAN, with_more(LedgerEntry(CLOSE, at=3), ended(0, 10)))


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (LedgerHistory(), "was reset"),
        (LedgerHistory((BEGAN.entries[0], LedgerEntry(CLOSE, seq=1, at=9))), "was reset"),
        (with_more(LedgerEntry(ERASE_INTENT)), "had a key or a value erased"),
        (
            with_more(
                LedgerEntry(
                    OPEN,
                    note=dumps({"types": {}, "parts": {**parts(PIPELINE), "windows.weekly": "x"}}),
                )
            ),
            "was given another spec",
        ),
    ],
)
def test_what_makes_it_another_pipeline_ends_a_backfill(now: LedgerHistory, why: str) -> None:
    message = f"^p {why} while this backfill was running.*rerun the backfill$"
    with pytest.raises(UsageError, match=message):
        must_be_the_same(PIPELINE, BEGAN, now)


def day(year: int, month: int = 1, day_of_month: int = 1) -> datetime:
    return datetime(year, month, day_of_month, tzinfo=UTC)


def test_the_chunks_end_where_the_times_of_events_do() -> None:
    first, last = micros(day(2014)), micros(day(2014, 5))
    past = LedgerHistory((LedgerEntry(DONE, counts={MIN_TIME: first, MAX_TIME: last}),))
    chunks = chunks_of(PIPELINE, day(1), day(9999, 12, 31), past)
    assert (chunks[0][0], chunks[-1][1]) == (micros(day(4)), micros(day(9997)))
    assert 0 < chunks[0][1] - first <= CHUNK_US
    assert 0 <= last - chunks[-1][0] < CHUNK_US
    assert {high - low for low, high in chunks[1:-1]} == {CHUNK_US}


@pytest.mark.parametrize(("start", "end"), [(day(1), day(4)), (day(9997), day(9999))])
def test_a_range_in_which_no_event_can_lie_is_refused(start: datetime, end: datetime) -> None:
    sentence = "enclose no time that an event can have; give a range that overlaps"
    with pytest.raises(UsageError, match=sentence):
        chunks_of(PIPELINE, start, end, LedgerHistory())
