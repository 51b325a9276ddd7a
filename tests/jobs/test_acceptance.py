"""What a publication accepts, from the outcomes of the validation and the reason that was given."""

from dataclasses import replace

import pytest

from expectations.outcome import CRITICAL, WARNING, Outcome
from jobs.validation.publishable import (
    accept_failures,
    hold_back,
    is_shown,
    keep_accepted,
    list_broken,
    list_removed,
)
from windowing.ledger.acceptance import Acceptance, parse_note
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import CLOSE, PUBLISH, LedgerEntry
from windowing.spec.load import load_pipeline

TENS = "_windows_tens"
"""The table that records which windows of `tens` are complete."""


def outcome(
    rule: str,
    accepted: str | None = None,
    *,
    window: str = "hourly",
    success: bool = False,
    severity: str = CRITICAL,
) -> Outcome:
    return Outcome(window, "own", "expects", severity, success, "", "", rule, accepted)


def test_a_reason_accepts_all_critical_failures_and_keeps_earlier_reasons() -> None:
    found = [
        outcome("a"),
        outcome("b", "a storm"),
        outcome("c", success=True),
        outcome("d", severity=WARNING),
        outcome("e", window="daily"),
        outcome(""),
    ]
    assert accept_failures(found, "a strike", {}) == Acceptance(
        "a strike", {"hourly": {"a": "a strike", "b": "a storm"}, "daily": {"e": "a strike"}}
    )


def test_without_a_reason_what_was_accepted_before_stays_accepted() -> None:
    found = [outcome("a", "a storm"), outcome("b", "a strike"), outcome("c", "a storm")]
    assert accept_failures(found, None, {}) == Acceptance(
        "a storm; a strike", {"hourly": {"a": "a storm", "b": "a strike", "c": "a storm"}}
    )


def test_where_nothing_failed_nothing_is_accepted_unless_a_reason_is_given() -> None:
    passed = [outcome("a", success=True), outcome("b", severity=WARNING)]
    assert accept_failures(passed, None, {}) is None
    assert accept_failures(passed, "sure", {}) == Acceptance("sure")
    assert accept_failures([], "seen already", {}) == Acceptance("seen already")


@pytest.mark.parametrize("failed", [{}, {"hourly": {"a": "why"}, "daily": {"b": 'a "quote"'}}])
def test_a_note_is_read_as_it_was_written(failed: dict[str, dict[str, str]]) -> None:
    acceptance = Acceptance("because", failed)
    published = LedgerEntry(PUBLISH, seq=0, note=acceptance.as_note())
    assert LedgerHistory((published,)).acceptance == acceptance


def test_notes_of_earlier_versions_have_a_reason_alone() -> None:
    assert parse_note('{"accepted": "the airport was closed"}') == Acceptance(
        "the airport was closed"
    )
    assert parse_note(None) is None
    assert LedgerHistory((LedgerEntry(PUBLISH, seq=0),)).acceptance is None
    assert LedgerHistory(()).acceptance is None


def test_only_critical_failures_that_were_not_accepted_block() -> None:
    assert outcome("a").blocks
    assert not outcome("a", "why").blocks
    assert not outcome("a", severity=WARNING).blocks
    assert not outcome("a", success=True).blocks


PIPELINE = load_pipeline(
    {
        "name": "trips",
        "lake": "/lake",
        "source": {"table": "/lake/bronze", "event_time": "at", "key": ["place"]},
        "aggregates": {"n": "count()"},
        "windows": {
            "hourly": {"kind": "tumbling", "size": "1 hour"},
            "tens": {"kind": "count", "count": 10},
        },
    }
)
NEWEST = LedgerEntry(CLOSE, seq=4, run=2, versions={"_panes": 9, "hourly": 7, "tens": 6, TENS: 5})


def seen(note: str | None = None) -> LedgerHistory:
    """Readers see older versions of both outputs."""
    versions = {"_panes": 3, "hourly": 2, "tens": 1, TENS: 1}
    return LedgerHistory((LedgerEntry(PUBLISH, 3, run=1, versions=versions, note=note), NEWEST))


def test_an_output_that_is_held_back_stays_as_readers_see_it_with_what_it_needs() -> None:
    held = hold_back(seen(), NEWEST, ["tens"])
    assert held.by_table == {"_panes": 9, "hourly": 7, "tens": 1, TENS: 1}
    assert held.runs == {"run.tens": 1}
    assert hold_back(seen(), NEWEST, ()).by_table == NEWEST.versions
    assert hold_back(seen(), NEWEST, ()).runs == {}


def test_an_output_that_readers_have_not_seen_yet_is_left_out() -> None:
    held = hold_back(LedgerHistory((NEWEST,)), NEWEST, ["tens"])
    assert held.by_table == {"_panes": 9, "hourly": 7}
    assert held.runs == {}


def test_unseen_rows_of_an_output_that_the_spec_has_no_more_are_held_back() -> None:
    more = {"seen": 4, "unseen": 5, "_windows_unseen": 5}
    newest = replace(NEWEST, versions={**NEWEST.versions, **more})
    shown = LedgerEntry(PUBLISH, 3, run=1, versions={"seen": 4, "unseen": 2})
    past = LedgerHistory((shown, newest))
    assert list_removed(PIPELINE, past, newest) == ["unseen"]
    held = hold_back(past, newest, ["unseen"])
    assert held.by_table == {**NEWEST.versions, "seen": 4, "unseen": 2}
    assert list_removed(PIPELINE, LedgerHistory((newest,)), newest) == ["seen", "unseen"]


def test_an_output_held_back_again_keeps_the_run_that_readers_see() -> None:
    first = hold_back(seen(), NEWEST, ["tens"])
    published = LedgerEntry(PUBLISH, seq=5, run=2, versions=first.by_table, counts=first.runs)
    newer = replace(NEWEST, seq=8, run=3, versions=dict.fromkeys(NEWEST.versions, 20))
    past = LedgerHistory((*seen().entries, published, newer))
    assert past.run_shown("tens") == 1
    assert past.run_shown("hourly") == 2
    again = hold_back(past, newer, ["tens"])
    assert (again.by_table["tens"], again.by_table["hourly"]) == (1, 20)
    assert again.runs == {"run.tens": 1}
    assert is_shown(past, 2, first)
    assert not is_shown(past, 3, again)
    assert not is_shown(LedgerHistory(()), 2, first)


def test_what_was_accepted_of_an_output_held_back_is_kept() -> None:
    before = Acceptance("a storm", {"tens": {"a": "a storm"}, "hourly": {"b": "a strike"}})
    kept = keep_accepted(seen(before.as_note()), ["tens"])
    assert kept == {"tens": {"a": "a storm"}}
    found = [outcome("a", window="tens"), outcome("b", "a strike")]
    assert accept_failures(found, None, kept) == Acceptance(
        "a storm; a strike", {"tens": {"a": "a storm"}, "hourly": {"b": "a strike"}}
    )
    assert keep_accepted(seen(), ["tens"]) == {"tens": {}}
    assert accept_failures([outcome("a", window="tens")], None, {"tens": {}}) is None


def test_outputs_are_broken_by_what_blocks() -> None:
    found = [
        outcome("a"),
        outcome("b", "a storm", window="tens"),
        outcome("c", severity=WARNING, window="tens"),
        outcome(""),
    ]
    assert list_broken(found) == {"hourly": ["expects", "expects"]}
