"""What a run says that it followed of commits which removed rows, from the notes of its batches."""

from json import dumps

from windowing.grid.range import Range
from windowing.ledger.rule import CLOSE, DONE, LedgerEntry, LedgerExcerpt
from windowing.source.rule import Followed, find_followed, has_changed_since, list_left_out


def batch(number: int, **note: object) -> LedgerEntry:
    """A finished batch with this note."""
    return LedgerEntry(DONE, seq=number, batch=number, note=dumps(note) if note else None)


def ledger(*entries: LedgerEntry) -> LedgerExcerpt:
    return LedgerExcerpt((*entries, LedgerEntry(CLOSE, seq=99, run=1)))


def test_rows_and_ranges_of_several_batches_are_told_together_in_their_order() -> None:
    past = ledger(
        batch(2, rows=3, ranges=[[100, 200]], left_out=[[500, 600], [700, 701]]),
        batch(1, rows=4, ranges=[[10, 20], [30, 40]], left_out=[]),
    )
    assert find_followed(past, {1, 2}) == Followed(
        7,
        (Range(10, 19), Range(30, 39), Range(100, 199)),
        (Range(500, 599), Range(700, 700)),
    ), "a note says [from, to), and the last microsecond of a range is inside"


def test_only_the_batches_of_the_run_are_told() -> None:
    past = ledger(
        batch(1, rows=4, ranges=[[10, 20]], left_out=[]),
        batch(2, rows=3, ranges=[[100, 200]], left_out=[]),
    )
    assert find_followed(past, [2]) == Followed(3, (Range(100, 199),), ())
    assert find_followed(past, [3]) is None
    assert find_followed(past, []) is None


def test_commits_that_left_every_row_as_it_was_are_no_news() -> None:
    past = ledger(batch(1, rows=0, ranges=[], left_out=[]))
    assert find_followed(past, {1}) is None


def test_ranges_of_a_change_feed_are_not_of_commits_that_removed_rows() -> None:
    past = ledger(batch(1, ranges=[[10, 20]]), batch(2), LedgerEntry(DONE, batch=3, note="an id"))
    assert find_followed(past, {1, 2, 3}) is None


def test_what_is_found_to_have_changed_since_a_step_is_known_by_its_times() -> None:
    past = ledger(
        batch(1, ranges=[[10, 20]], left_out=[]),
        batch(2, ranges=[], left_out=[[100, 200]]),
        batch(3),
    )
    spans = [Range(0, 9), Range(0, 10), Range(19, 30), Range(20, 99), Range(199, 300)]
    assert [has_changed_since(past, 1, span) for span in spans] == [False, True, True, False, True]
    assert [has_changed_since(past, 2, span) for span in spans] == [False] * 4 + [True]
    assert not any(has_changed_since(past, 3, span) for span in spans)
    assert list_left_out(past) == [(100, 200)]


def test_a_batch_that_was_finished_twice_counts_once_as_it_was_finished_last() -> None:
    first = batch(1, rows=4, ranges=[[10, 20]], left_out=[])
    again = LedgerEntry(DONE, seq=5, batch=1, note=first.note)
    assert find_followed(ledger(first, again), {1}) == Followed(4, (Range(10, 19),), ())
