"""What says which events a step has accepted follows from the ledger and the kind of the window."""

from dataclasses import replace
from json import dumps
from typing import Any

import pytest

from tests.windowing.spec.specs import changed
from windowing.ledger.erased import Erasure, note_erased, note_lifted
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import (
    BACKFILL_DONE,
    BACKFILL_INTENT,
    CLOSE,
    DONE,
    ERASE_INTENT,
    ERASE_LIST,
    INTENT,
    MAX_TIME,
    MIN_TIME,
    SKIP,
    LedgerEntry,
)
from windowing.revisions.evidence import (
    Bounds,
    NothingRead,
    Resolved,
    RunRead,
    Untold,
    find_bounds,
    find_evidence,
    list_steps_into,
)
from windowing.revisions.rule import Cause, Step
from windowing.spec.load import load_pipeline

HOUR_US = 3_600_000_000


def offsets(version: int, index: int = -1, *, starts: bool = False) -> str:
    """Where a stream stands that reads `version` next, or is inside of it."""
    return dumps({"reservoirVersion": version, "index": index, "isStartingVersion": starts})


def batch(number: int, run: int | None, ends: str, source_version: int = 0) -> list[LedgerEntry]:
    """Intent and done of a batch; a batch without a run is one that was skipped."""
    steps = (SKIP,) if run is None else (INTENT, DONE)
    return [
        LedgerEntry(
            step,
            run=run,
            batch=number,
            arrival=5,
            watermark_in=number,
            source_id="table",
            source_version=source_version,
            offsets=ends,
        )
        for step in steps
    ]


def ledger(*parts: list[LedgerEntry]) -> LedgerHistory:
    """The entries, numbered."""
    entries = [entry for part in parts for entry in part]
    return LedgerHistory(tuple(replace(entry, seq=seq) for seq, entry in enumerate(entries)))


def read_of(past: LedgerHistory, run: int) -> RunRead:
    """What a run has read, which is known."""
    found = find_evidence(past, Step(Cause.RUN, run))
    assert isinstance(found, RunRead)
    return found


def test_a_run_reads_from_the_end_of_the_batch_before_to_the_end_of_its_last_one() -> None:
    past = ledger(
        batch(0, 1, offsets(4)),
        batch(1, None, offsets(5)),
        batch(2, 2, offsets(7)),
        batch(3, 2, offsets(9)),
    )
    second = read_of(past, 2)
    assert (second.since, second.until, second.seen_at) == (4, 8, 4)
    assert (second.watermark_us, sorted(second.arrivals)) == (2, [5])
    assert isinstance(find_evidence(past, Step(Cause.RUN, 3)), NothingRead)


def test_the_first_run_reads_all_that_there_was() -> None:
    first = read_of(ledger(batch(0, 1, offsets(8), source_version=6)), 1)
    assert (first.since, first.until, first.seen_at) == (None, 7, 6)
    after_nothing = ledger(batch(0, None, offsets(3, starts=True)), batch(1, 1, offsets(8)))
    assert read_of(after_nothing, 1).since is None


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([batch(0, 1, offsets(8, 3))], "inside of a version"),
        ([batch(0, 1, offsets(8, 3)), batch(1, 2, offsets(9))], "inside of a version"),
        ([batch(1, 2, offsets(9))], "the ledger does not say"),
        ([batch(0, 2, offsets(9, starts=True))], "the ledger does not say"),
    ],
)
def test_it_is_said_why_nobody_knows_what_a_run_has_read(
    parts: list[list[LedgerEntry]], reason: str
) -> None:
    past = ledger(*parts)
    run = past.entries[-1].run
    found = find_evidence(past, Step(Cause.RUN, run))
    assert isinstance(found, Untold)
    assert reason in found.reason


def test_a_run_that_found_changes_of_the_source_ends_with_a_whole_version() -> None:
    rewritten = [replace(e, note='{"ranges": []}') for e in batch(0, 1, offsets(8, 1))]
    second = read_of(ledger(rewritten, batch(1, 2, offsets(10))), 2)
    assert (second.since, second.until) == (8, 9)
    assert read_of(ledger(rewritten), 1).until == 8


def test_what_was_erased_then_counts() -> None:
    erased = LedgerEntry(ERASE_INTENT, note=note_erased("salt", Erasure("digest")))
    past = ledger(batch(0, 1, offsets(2)), [erased], batch(1, 2, offsets(3)))
    assert [bool(read_of(past, run).erased.found) for run in (1, 2)] == [False, True]


def test_a_backfill_may_bring_back_what_was_erased() -> None:
    steps = [LedgerEntry(BACKFILL_INTENT), LedgerEntry(BACKFILL_DONE)]
    for note, is_told in ((note_erased, True), (note_lifted, False)):
        listed = LedgerEntry(ERASE_LIST, note=note("salt", Erasure("digest")))
        found = find_evidence(ledger([listed], steps), Step(Cause.BACKFILL, 1, seq=2))
        assert isinstance(found, Resolved if is_told else Untold)


def test_a_backfill_is_known_by_its_intent() -> None:
    steps = [
        LedgerEntry(CLOSE, run=1, watermark_out=9),
        LedgerEntry(BACKFILL_INTENT),
        LedgerEntry(BACKFILL_DONE),
        LedgerEntry(BACKFILL_INTENT),
        LedgerEntry(BACKFILL_DONE),
    ]
    found = find_evidence(ledger(steps), Step(Cause.BACKFILL, 1, seq=4))
    assert found == Resolved("backfill 3", 9)
    rewritten = LedgerEntry(DONE, batch=0, note='{"ranges": []}')
    assert isinstance(
        find_evidence(ledger([rewritten], steps), Step(Cause.BACKFILL, 1, seq=5)), Untold
    )


@pytest.mark.parametrize("step", [None, Step(Cause.ERASURE, 1), Step(Cause.SOURCE_CHANGE, 1)])
def test_other_steps_have_accepted_nothing_that_is_told(step: Step | None) -> None:
    assert isinstance(find_evidence(LedgerHistory(), step), Untold)


def accepts(run: int, number: int, low: int, high: int) -> LedgerEntry:
    """A batch that has accepted events from `low` to `high`, both included."""
    counts = {"accepted": 2, MIN_TIME: low, MAX_TIME: high}
    return LedgerEntry(DONE, run=run, batch=number, at=run, counts=counts)


def reprocesses(low: int, high: int) -> LedgerEntry:
    """A chunk of a backfill from `low` (inclusive) to `high` (exclusive)."""
    return LedgerEntry(BACKFILL_DONE, run=9, note=dumps({"from_us": low, "to_us": high}))


def test_steps_are_chosen_by_what_they_may_have_accepted() -> None:
    steps = [
        accepts(1, 0, 10, 20),
        accepts(2, 1, 0, 9),
        accepts(2, 2, 20, 30),
        accepts(3, 3, 0, 10),
        accepts(3, 4, 12, 12),
        accepts(3, 5, 0, 99),
        LedgerEntry(DONE, run=4, batch=6),
        LedgerEntry(DONE, run=5, batch=7, counts={"accepted": 1}),
        reprocesses(0, 10),
        reprocesses(0, 11),
        reprocesses(19, 40),
        reprocesses(20, 40),
        LedgerEntry(CLOSE, run=5),
    ]
    past = ledger(steps)
    found = list_steps_into(past, 0, Bounds(10, 20))
    assert [(step.cause, step.run, step.seq) for step in found] == [
        (Cause.RUN, 3, 3),
        (Cause.RUN, 5, 7),
        (Cause.BACKFILL, 9, 9),
        (Cause.BACKFILL, 9, 10),
    ]
    everything = list_steps_into(past, -1, Bounds(None, None))
    assert [step.seq for step in everything] == [0, 1, 3, 7, 8, 9, 10, 11]


IDENTITY = {"window_start": "1970-01-01T00:00:00Z", "window_end": "1970-01-01T01:00:00Z"}


@pytest.mark.parametrize(
    ("window", "identity", "values", "bounds"),
    [
        ({"kind": "tumbling", "size": "1 hour"}, IDENTITY, None, Bounds(0, HOUR_US)),
        (
            {"kind": "session", "gap": "1 hour"},
            {"window_start": "1970-01-01T00:00:00Z"},
            {"window_end": "1970-01-01T02:00:00Z"},
            Bounds(0, 2 * HOUR_US),
        ),
        ({"kind": "session", "gap": "1 hour"}, IDENTITY, None, "did not have the session"),
        ({"kind": "global"}, {}, {"n": 1}, Bounds(None, None)),
        ({"kind": "count", "count": 2}, {"window_index": 0}, {"n": 1}, "in a count window"),
        (
            {"kind": "tumbling", "size": "1 hour"},
            IDENTITY | {"window_end": "+10000-01-01T00:00:00Z"},
            None,
            "beyond the years",
        ),
    ],
)
def test_bounds_decide_which_events_a_window_has(
    window: dict[str, Any], identity: dict[str, Any], values: Any, bounds: Bounds | str
) -> None:
    pipeline = load_pipeline(changed(windows={"hourly": window}))
    found = find_bounds(pipeline.window("hourly"), identity, values)
    if isinstance(found, Untold):
        assert isinstance(bounds, str)
        assert bounds in found.reason
    else:
        assert found == bounds
