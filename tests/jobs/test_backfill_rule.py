"""Which chunks of a backfill are passed over when it is asked for again."""

from json import dumps

from jobs.backfill import begun_before
from jobs.repair import Chunk
from windowing.ledger.rule import BACKFILL_DONE, BACKFILL_INTENT, CLOSE, Entry, Story

ASKED = (0, 30)


def chunk(start: int, end: int, asked: tuple[int, int] = ASKED) -> Chunk:
    return Chunk(start, end, 1, asked=asked)


def ended(start: int, end: int, asked: tuple[int, int] | None = ASKED) -> Entry:
    note = {"from_us": start, "to_us": end, "version": 1, "batch": None} | ({"asked": list(asked)} if asked else {})
    return Entry(BACKFILL_DONE, run=start, note=dumps(note))


def passed_over(*entries: Entry) -> list[int]:
    """The starts of the chunks that were done before."""
    return [c.start_us for c in (chunk(0, 10), chunk(10, 20), chunk(20, 30)) if begun_before(Story(entries), c)]


def test_of_the_same_range_what_is_done_is_not_done_again() -> None:
    assert passed_over() == []
    assert passed_over(ended(0, 10)) == [0]
    assert passed_over(ended(0, 10), Entry(CLOSE), Entry(BACKFILL_INTENT), ended(10, 20)) == [0, 10]


def test_a_range_that_was_finished_begins_anew() -> None:
    whole = (ended(0, 10), ended(10, 20), ended(20, 30))
    assert passed_over(*whole) == []
    assert passed_over(*whole, ended(0, 10)) == [0]


def test_another_range_in_between_begins_anew() -> None:
    assert passed_over(ended(0, 10), ended(0, 10, (0, 10))) == []
    assert passed_over(ended(0, 10), ended(0, 10, None)) == []
    assert passed_over(ended(0, 10, (0, 40))) == []
