"""What entries of the ledger say has changed: days of publications, and starts of runs."""

import json
from dataclasses import replace
from datetime import date, timedelta

import pytest

from windowing.ledger.acceptance import Acceptance, Rollback, parse_note, parse_rollback
from windowing.ledger.changed import (
    MOST_CHANGES,
    MOST_SHOWN_RANGES,
    ShownChange,
    add_to_note,
    list_changes,
    parse_changed,
)
from windowing.ledger.counts import add_counts, name_starts, read_starts
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import PUBLISH, LedgerEntry

THIRD, SEVENTH = date(2026, 3, 3), date(2026, 3, 7)
CHANGED = {"hourly": ((THIRD, THIRD), (SEVENTH, SEVENTH)), "ever": ()}


def published(*notes: str | None, first: int = 0) -> LedgerHistory:
    """A ledger of publications with these notes, each of another version."""
    entries = [
        LedgerEntry(PUBLISH, seq, at=seq * 10, versions={"hourly": seq}, note=note)
        for seq, note in enumerate(notes, first)
    ]
    return LedgerHistory(tuple(entries))


def changes_of(past: LedgerHistory, window: str) -> tuple[ShownChange, ...]:
    """The changes of one output."""
    return list_changes(past, [window])[window]


def test_a_note_says_why_and_what_changed() -> None:
    assert parse_changed(add_to_note(None, CHANGED)) == CHANGED
    assert parse_changed(add_to_note(None, {})) == {}
    accepted = Acceptance("a storm", {"hourly": {"rule": "a storm"}})
    note = add_to_note(accepted.as_note(), CHANGED)
    assert (parse_note(note), parse_changed(note)) == (accepted, CHANGED)
    again = add_to_note(Rollback(4, "wrong").as_note(parse_note(note)), {})
    assert (parse_rollback(again), parse_changed(again)) == (Rollback(4, "wrong"), {})
    assert parse_changed(add_to_note(note, {})) == {}, "what was said before is replaced"


def test_entries_of_earlier_versions_say_nothing() -> None:
    assert parse_changed(None) is None
    assert parse_changed(Acceptance("a storm").as_note()) is None
    assert read_starts({"hourly.inserted": 3}, "hourly") is None


def test_changes_of_an_output() -> None:
    days = add_to_note(None, CHANGED)
    past = published(None, days, add_to_note(None, {}), days)
    found = [(each.number, each.at_us, each.days) for each in changes_of(past, "hourly")]
    days_of_each = CHANGED["hourly"]
    assert found == [(0, 0, None), (1, 10, days_of_each), (3, 30, days_of_each)]
    assert [each.days for each in changes_of(past, "ever")] == [(), ()]
    assert changes_of(past, "other") == ()


def test_an_old_publication_of_the_same_version_changed_nothing() -> None:
    past = published(None, None)
    first, second = past.entries
    again = replace(second, versions=first.versions)
    assert len(changes_of(LedgerHistory((first, again)), "hourly")) == 1


def test_the_oldest_change_stands_for_all_before_it() -> None:
    notes = [add_to_note(None, {"hourly": ((date(2026, 1, 1 + n % 20),) * 2,)}) for n in range(70)]
    found = changes_of(published(*notes), "hourly")
    assert len(found) == MOST_CHANGES
    assert found[0].days == ((date(2026, 1, 1), date(2026, 1, 20)),)
    assert [each.number for each in found] == list(range(20, 70))
    assert [each.number for each in changes_of(published(*notes[:50]), "hourly")] == [*range(50)]
    (unknown, *_) = changes_of(published(None, *notes), "hourly")
    assert unknown.days is None


def test_each_note_is_parsed_once_whatever_the_outputs_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed = []

    def parse(text: str) -> object:
        parsed.append(text)
        return json.loads(text)

    monkeypatch.setattr("windowing.ledger.changed.loads", parse)
    notes = [f'{{"changed": {{"hourly": [["2026-01-{day:02}", "2026-01-31"]]}}}}' for day in (1, 2)]
    found = list_changes(published(*notes * 40), ["hourly", "daily", "ever"])
    assert (len(found["hourly"]), found["daily"]) == (MOST_CHANGES, ())
    assert parsed == notes


def test_a_change_with_many_ranges_is_told_as_one() -> None:
    apart = [THIRD + timedelta(days=2 * n) for n in range(MOST_SHOWN_RANGES + 1)]
    ranges = tuple((day, day) for day in apart)
    past = published(*(add_to_note(None, {"hourly": each}) for each in (ranges[1:], ranges)))
    most, more = changes_of(past, "hourly")
    assert (most.days, more.days) == (ranges[1:], ((apart[0], apart[-1]),))


def test_starts_of_several_steps_are_the_first_and_the_last() -> None:
    steps = [
        {"hourly.inserted": 1, **name_starts("hourly", (30, 50))},
        {"hourly.inserted": 2},
        {"hourly.inserted": 4, **name_starts("hourly", (-10, 40)), **name_starts("daily", (1, 2))},
        name_starts("daily", None),
    ]
    found = add_counts(steps)
    assert found["hourly.inserted"] == 7
    assert read_starts(found, "hourly") == (-10, 50)
    assert read_starts(found, "daily") == (1, 2)
    assert read_starts(found, "ever") is None
