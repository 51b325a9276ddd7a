"""What a publication accepts, from the outcomes of the validation and the reason that was given."""

import pytest

from expectations.outcome import CRITICAL, WARNING, Outcome
from jobs.publish import accept_failures
from windowing.ledger.acceptance import Acceptance, parse_note
from windowing.ledger.rule import PUBLISH, LedgerEntry, LedgerHistory


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
    assert accept_failures(found, "a strike") == Acceptance(
        "a strike", {"hourly": {"a": "a strike", "b": "a storm"}, "daily": {"e": "a strike"}}
    )


def test_without_a_reason_what_was_accepted_before_stays_accepted() -> None:
    found = [outcome("a", "a storm"), outcome("b", "a strike"), outcome("c", "a storm")]
    assert accept_failures(found, None) == Acceptance(
        "a storm; a strike", {"hourly": {"a": "a storm", "b": "a strike", "c": "a storm"}}
    )


def test_where_nothing_failed_nothing_is_accepted_unless_a_reason_is_given() -> None:
    passed = [outcome("a", success=True), outcome("b", severity=WARNING)]
    assert accept_failures(passed, None) is None
    assert accept_failures(passed, "sure") == Acceptance("sure")
    assert accept_failures([], "not validated") == Acceptance("not validated")


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
