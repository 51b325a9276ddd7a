"""A rebuild is for a changed spec or for an erasure, which its note says and reports tell."""

from json import dumps

from windowing.ledger.evolved import read_evolved
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import ERASE_INTENT, EVOLVE_INTENT, LedgerEntry
from windowing.report.text import OpenStep, list_open_steps


def note(came: list[str], went: list[str]) -> str:
    """The note of the intent of a rebuild."""
    return dumps({"types": {}, "parts": {}, "came": came, "went": went})


def open_steps(*entries: LedgerEntry) -> tuple[OpenStep, ...]:
    """What is not finished after these entries."""
    numbered = [LedgerEntry(e.step, seq=seq, note=e.note) for seq, e in enumerate(entries)]
    return list_open_steps(LedgerHistory(tuple(numbered)))


def test_a_note_names_what_the_spec_adds_and_removes() -> None:
    assert read_evolved(note(["windows.a"], ["windows.b"])) == ("windows.a", "windows.b")
    assert read_evolved(note([], [])) == read_evolved(None) == ()


def test_an_open_rebuild_is_of_a_spec_or_of_an_erasure() -> None:
    (of_spec,) = open_steps(LedgerEntry(EVOLVE_INTENT, note=note([], ["windows.b"])))
    assert of_spec.what == "a change of the spec"
    rebuild, erasure = open_steps(
        LedgerEntry(ERASE_INTENT), LedgerEntry(EVOLVE_INTENT, note=note([], []))
    )
    assert rebuild == OpenStep("the rebuild of an erasure", "the next run or backfill finishes it")
    assert erasure == OpenStep("an erasure", "rerun `tidemark erase`")
