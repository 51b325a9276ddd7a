"""The story a ledger tells, step by step, over crashes and replays."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowing.ledger.counts import sum_entry_counts
from windowing.ledger.history import LedgerHistory, find_ends_of_erasures, until_own_publication
from windowing.ledger.period import Period, Reopening
from windowing.ledger.rule import (
    BACKFILL_DONE,
    BACKFILL_INTENT,
    CLOSE,
    DONE,
    ERASE_DONE,
    ERASE_INTENT,
    EVOLVE_DONE,
    EVOLVE_INTENT,
    INTENT,
    KEPT_OUTPUT,
    KEPT_STATE,
    MAINTAIN_INTENT,
    OPEN,
    PERIOD_CLOSED,
    PERIOD_REOPENED,
    PUBLISH,
    RUN_OF,
    LedgerEntry,
)


def story(*entries: LedgerEntry) -> LedgerHistory:
    """The entries, numbered from 0."""
    return LedgerHistory(tuple(replace(e, seq=n) for n, e in enumerate(entries)))


def finished(
    run: int, *batches: int, watermark: int | None = 10, accepted: int = 1
) -> list[LedgerEntry]:
    """Every step of one run."""
    steps = [
        entry
        for b in batches
        for entry in (
            LedgerEntry(INTENT, run=run, batch=b, arrival=100 + run),
            LedgerEntry(DONE, run=run, batch=b, counts={"accepted": accepted}),
        )
    ]
    return [
        LedgerEntry(OPEN, run=run),
        *steps,
        LedgerEntry(CLOSE, run=run, watermark_out=watermark),
    ]


def test_before_the_first_run_there_is_nothing() -> None:
    empty = LedgerHistory()
    assert (
        empty.next_seq,
        empty.watermark,
        empty.last_run,
        empty.last_arrival,
        empty.total("accepted"),
    ) == (0, None, 0, None, 0)
    assert [
        empty.open_run,
        empty.open_backfill,
        empty.source,
        empty.closed,
        empty.published,
        empty.newest,
    ] == [None] * 6
    assert not empty.any_done
    assert empty.intent(0) is None
    assert empty.done(1) == ()


def test_a_killed_run_stays_open_until_it_is_closed() -> None:
    opened = [LedgerEntry(OPEN, run=2), LedgerEntry(INTENT, run=2, batch=5)]
    killed = story(*finished(1, 0, watermark=7), *opened)
    assert killed.open_run is not None
    assert (killed.open_run.run, killed.last_run, killed.watermark) == (2, 2, 7)
    assert killed.done(2) == ()
    resumed = story(
        *finished(1, 0, watermark=7),
        *opened,
        LedgerEntry(DONE, run=2, batch=5),
        LedgerEntry(CLOSE, run=2, watermark_out=9),
    )
    assert resumed.open_run is None
    assert (resumed.last_run, resumed.watermark) == (2, 9)


def test_a_replayed_batch_counts_once_and_keeps_its_first_meaning() -> None:
    once, again = (
        LedgerEntry(DONE, run=1, batch=0, counts={"accepted": 3}),
        LedgerEntry(DONE, run=1, batch=0, counts={"accepted": 3}),
    )
    replayed = story(
        LedgerEntry(OPEN, run=1),
        LedgerEntry(INTENT, run=1, batch=0, watermark_in=4),
        once,
        again,
        LedgerEntry(DONE, run=1, batch=1),
    )
    assert [e.batch for e in replayed.done(1)] == [0, 1]
    assert replayed.total("accepted") == 3
    intent = replayed.intent(0)
    assert intent is not None
    assert intent.watermark_in == 4


def test_a_run_without_accepted_rows_leaves_the_watermark_at_minus_infinity() -> None:
    assert story(*finished(1, 0, watermark=None)).watermark is None


def test_a_backfill_is_open_from_its_intent_to_its_done_and_names_the_newest_versions() -> None:
    begun = [*finished(1, 0), LedgerEntry(BACKFILL_INTENT, run=1, note="{}")]
    left = story(*begun).open_backfill
    assert left is not None
    assert left.note == "{}"
    done = story(
        *begun, LedgerEntry(BACKFILL_DONE, run=1, counts={"accepted": -2}, versions={"hourly": 9})
    )
    assert done.open_backfill is None
    assert done.newest is not None
    assert done.newest.versions == {"hourly": 9}
    assert done.total("accepted") == 1 - 2
    assert done.watermark == 10


def test_backfills_and_publications_do_not_move_the_arrival() -> None:
    steps = [
        LedgerEntry(BACKFILL_INTENT, run=1, arrival=999),
        LedgerEntry(BACKFILL_DONE, run=1, arrival=999),
        LedgerEntry(PUBLISH, run=1),
    ]
    past = story(*finished(1, 0), *steps)
    assert past.last_arrival == 101
    assert past.published is not None


def test_the_source_is_that_of_the_newest_entry_that_names_one() -> None:
    past = story(
        LedgerEntry(OPEN, run=1, source_id="a"),
        LedgerEntry(CLOSE, run=1, source_id="b"),
        LedgerEntry(PUBLISH, run=1),
    )
    assert past.source is not None
    assert past.source.source_id == "b"


def test_counts_of_batches_add_up() -> None:
    assert sum_entry_counts(
        [LedgerEntry(DONE, counts={"read": 2, "late": 1}), LedgerEntry(DONE, counts={"read": 3})]
    ) == {"read": 5, "late": 1}
    assert sum_entry_counts([]) == {}


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.booleans(), st.integers(0, 5)), max_size=6),
    st.booleans(),
)
def test_any_history_is_reported_as_it_was(
    history: list[tuple[int, bool, int]],
    killed: bool,  # noqa: FBT001 drawn by hypothesis
) -> None:
    """Runs of 1 to 3 batches, some of them retried; the last run may be killed before its close."""
    entries: list[LedgerEntry] = []
    batch = 0
    for run, (batches, replayed, accepted) in enumerate(history, start=1):
        steps = finished(run, *range(batch, batch + batches), watermark=run, accepted=accepted)
        entries += steps[:-1] + ([replace(steps[-2])] if replayed else []) + steps[-1:]
        batch += batches
    told = story(*(entries[:-1] if killed else entries))
    assert told.next_seq == len(told.entries)
    assert told.last_run == len(history)
    assert (told.open_run is not None) == (killed and bool(history))
    assert told.watermark == ((len(history) - killed) or None if history else None)
    assert told.total("accepted") == sum(batches * accepted for batches, _, accepted in history)
    assert [len(told.done(run)) for run in range(1, len(history) + 1)] == [
        batches for batches, _, _ in history
    ]
    assert told.any_done == bool(history)


def test_times_are_touched_by_batches_that_may_have_read_them_and_by_whatever_rewrites_tables() -> (
    None
):
    batch = LedgerEntry(DONE, run=2, batch=1, counts={"min_event_time": 100, "max_event_time": 200})
    past = story(
        *finished(1, 0),
        LedgerEntry(OPEN, run=2),
        batch,
        LedgerEntry(CLOSE, run=2),
        LedgerEntry(PUBLISH),
    )
    since = past.entries[4].seq
    spans = ((0, 100), (0, 101), (150, 160), (200, 300), (201, 300))
    touched = [past.touched_since(since, low, high) for low, high in spans]
    assert touched == [False, True, True, True, False]
    assert not past.touched_since(past.next_seq, 0, 300)
    assert not past.touched_since(since + 2, 0, 300)
    swapped = LedgerHistory((*past.entries, LedgerEntry(BACKFILL_DONE, seq=past.next_seq)))
    assert swapped.touched_since(past.next_seq, 0, 1)


def heard(arrival: int, highest: int, run: int = 1) -> LedgerEntry:
    """A batch that accepted events, the last of them at `highest`."""
    counts = {"accepted": 1, "max_event_time": highest}
    return LedgerEntry(DONE, run=run, arrival=arrival, counts=counts)


def test_no_event_counts_as_later_than_the_arrival_of_its_own_run() -> None:
    assert story(heard(100, 90)).quiet_since == (100, 90)
    assert story(heard(100, 150)).quiet_since == (100, 100)
    assert story(heard(100, 150), heard(200, 120, run=2)).quiet_since == (200, 120)
    assert story(heard(100, 150), heard(200, 80, run=2)).quiet_since == (200, 100)


def test_the_arrival_of_a_run_that_was_resumed_is_that_of_its_last_batch() -> None:
    assert story(heard(100, 150), heard(200, 80)).quiet_since == (200, 150)
    resumed = (heard(100, 150), heard(120, 80))
    assert story(*resumed).quiet_since == (120, 120)
    assert story(*resumed, heard(130, 110, run=2)).quiet_since == (130, 120)


def test_only_runs_that_accepted_something_were_heard() -> None:
    nothing = LedgerEntry(DONE, arrival=300, counts={"accepted": 0})
    times = {"min_event_time": 250, "max_event_time": 250}
    backfilled = LedgerEntry(BACKFILL_DONE, arrival=400, counts={"accepted": 1, **times})
    assert story(nothing, backfilled).quiet_since is None
    assert story(heard(100, 150), nothing, backfilled).quiet_since == (100, 100)


@pytest.mark.parametrize(
    ("intent", "done", "asked"),
    [
        (EVOLVE_INTENT, EVOLVE_DONE, "open_evolution"),
        (ERASE_INTENT, ERASE_DONE, "open_erasure"),
    ],
)
def test_a_step_is_open_from_its_intent_until_it_is_done(
    intent: str, done: str, asked: str
) -> None:
    steps = finished(1, 0)
    opened = story(*steps, LedgerEntry(intent))
    assert getattr(story(*steps), asked) is None
    assert getattr(opened, asked) == opened.entries[-1]
    assert getattr(story(*opened.entries, LedgerEntry(done)), asked) is None
    again = story(*opened.entries, LedgerEntry(done), LedgerEntry(intent))
    assert getattr(again, asked) == again.entries[-1]


def test_what_a_maintenance_may_have_expired_is_what_its_counts_name() -> None:
    def maintained(count: str) -> LedgerHistory:
        return story(*finished(1, 0), LedgerEntry(MAINTAIN_INTENT, counts={count: 1}))

    expired = {
        count: (maintained(count).state_may_be_expired, maintained(count).rows_may_be_expired("w"))
        for count in (KEPT_STATE, "_panes_1h", KEPT_OUTPUT, "w", "other")
    }
    assert expired == {
        KEPT_STATE: (True, False),
        "_panes_1h": (True, False),
        KEPT_OUTPUT: (False, True),
        "w": (False, True),
        "other": (False, False),
    }


def test_an_erasure_is_known_once_it_was_begun() -> None:
    assert not story(*finished(1, 0)).was_erased_from
    assert story(*finished(1, 0), LedgerEntry(ERASE_INTENT)).was_erased_from


def closed(run: int, version: int) -> LedgerEntry:
    """The end of a run that left this version of an output."""
    return LedgerEntry(CLOSE, run=run, watermark_out=run * 10, versions={"hourly": version})


def published(run: int, version: int) -> LedgerEntry:
    """What `run` left is shown to readers."""
    return LedgerEntry(PUBLISH, run=run, versions={"hourly": version})


def freezes(until: int) -> LedgerEntry:
    """A close until then."""
    return LedgerEntry(PERIOD_CLOSED, note=Period(until, "invoiced").as_note())


def test_a_row_was_frozen_by_the_first_close_that_reached_its_end() -> None:
    reopened = LedgerEntry(PERIOD_REOPENED, note=Reopening("wrong").as_note())
    past = story(freezes(90), reopened, freezes(10), closed(1, 1), freezes(10), freezes(20))
    ends = {end: past.find_freezing(end) for end in (5, 10, 11, 20, 21)}
    assert ends == {5: 2, 10: 2, 11: 5, 20: 5, 21: 2}
    with pytest.raises(ValueError, match="no period is closed"):
        story(freezes(10), reopened).find_freezing(5)


def test_readers_use_what_was_published_last() -> None:
    past = story(closed(1, 5), published(1, 5), closed(2, 6))
    first, _, second = past.entries
    assert not story(closed(1, 5)).is_published
    assert story(closed(1, 5), published(1, 5)).is_published
    assert not past.is_published
    assert (past.shows(first), past.shows(second)) == (True, False)


def test_readers_do_not_use_all_of_a_run_while_an_output_of_it_is_held_back() -> None:
    held = replace(published(2, 5), counts={f"{RUN_OF}hourly": 1})
    assert not story(closed(1, 5), closed(2, 5), held).is_published


def test_readers_have_seen_a_step_that_left_the_published_versions() -> None:
    before = (closed(1, 5), closed(2, 6), published(2, 6))
    assert story(*before[:2]).since_shown("hourly") == story(*before[:2]).entries
    assert story(*before).since_shown("hourly") == ()
    unchanged = story(*before, closed(3, 6))
    assert unchanged.since_shown("hourly") == ()
    changed = story(*before, closed(3, 6), closed(4, 7))
    assert changed.since_shown("hourly") == changed.entries[-1:]


def test_a_history_ends_with_a_run_or_without_the_one_that_is_unfinished() -> None:
    done = story(*finished(1, 0, watermark=10), *finished(2, 1, watermark=20))
    left_open = story(*done.entries, LedgerEntry(OPEN, run=3), LedgerEntry(INTENT, run=3, batch=2))
    assert done.settled == done
    assert left_open.settled == done
    assert done.until_run(1).entries == done.entries[:4]
    assert [done.watermark_of(run) for run in (1, 2, 3)] == [10, 20, None]


def test_readers_see_a_version_since_the_first_publication_that_named_it() -> None:
    def publish(**versions: int) -> LedgerEntry:
        return LedgerEntry(PUBLISH, versions=versions)

    past = story(publish(a=1), publish(a=3, b=1), LedgerEntry(CLOSE), publish(a=3, b=2))
    found = {name: past.find_first_shown(name) for name in ("a", "b")}
    assert {name: (each[0].seq, each[1]) for name, each in found.items() if each} == {
        "a": (1, 1),
        "b": (3, 1),
    }
    assert past.find_first_shown("c") is None
    # A version that readers left and were led back to is a new one to them.
    back = story(publish(a=1), publish(a=2), publish(a=1)).find_first_shown("a")
    assert back is not None
    assert (back[0].seq, back[1]) == (2, 2)
    first = story(publish(a=4)).find_first_shown("a")
    assert first is not None
    assert first[1] is None


def test_an_erasure_owns_its_last_publication() -> None:
    told = story(
        LedgerEntry(PUBLISH),
        LedgerEntry(ERASE_INTENT),
        LedgerEntry(PUBLISH),
        LedgerEntry(PUBLISH),
        LedgerEntry(ERASE_DONE),
        LedgerEntry(PUBLISH),
        LedgerEntry(ERASE_INTENT),
        LedgerEntry(ERASE_DONE),
    )
    assert find_ends_of_erasures(told) == {3: told.entries[4]}
    assert until_own_publication(told) == told.until_step(5)


def test_an_erasure_that_published_nothing_owns_no_publication() -> None:
    told = story(LedgerEntry(PUBLISH), LedgerEntry(ERASE_INTENT), LedgerEntry(ERASE_DONE))
    assert find_ends_of_erasures(told) == {}
    assert until_own_publication(told) == told.until_step(0)
