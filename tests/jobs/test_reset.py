"""What a reset calls its own, and what it counts."""

from dataclasses import replace
from pathlib import Path

from jobs.diagnosis.pointer import POINTER
from jobs.reset import holding, reset
from tests.windowing.cases import pipeline
from windowing.crash import armed
from windowing.ledger.erased import Erasure, note_erased, note_lifted
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import ERASE_LIST, LedgerEntry
from windowing.ledger.table import record_entries
from windowing.location import Location
from windowing.storage.store import store_of


class Killed(Exception):
    """Ends a write before its rename."""


def kill(place: str) -> None:
    """What happens at a crash point."""
    raise Killed(place)


def test_erased_keys_and_values_are_counted_before_they_are_forgotten(tmp_path: Path) -> None:
    shop = replace(pipeline(), lake=Location(str(tmp_path)))
    x, y, of_column = Erasure("x"), Erasure("y"), Erasure("x", "customer")
    notes = [note_erased("s", each) for each in (x, y, of_column)] + [note_lifted("s", x)]
    listed = [LedgerEntry(ERASE_LIST, note=note) for note in notes]
    record_entries(shop, LedgerHistory(), listed)
    deleted = reset(shop)
    assert (deleted.erased_keys, deleted.erased_values) == (1, 1)
    left = holding(shop)
    assert (left.erased_keys, left.erased_values) == (0, 0)


def test_a_damaged_ledger_is_no_reason_against_a_reset(tmp_path: Path) -> None:
    shop = replace(pipeline(), lake=Location(str(tmp_path)))
    record_entries(shop, LedgerHistory(), [LedgerEntry(ERASE_LIST, note="no JSON")])
    assert reset(shop).tables == ("_ledger",)
    assert not shop.root.local.exists()


def test_a_file_that_was_being_written_is_a_pipelines_own(tmp_path: Path) -> None:
    shop = replace(pipeline(), lake=Location(str(tmp_path)))
    (shop.table("_ledger").local / "_delta_log").mkdir(parents=True)
    pointer = shop.table(POINTER)
    try:
        with armed(kill):
            store_of(pointer).write(pointer, b"12345")
    except Killed:
        pass
    shop.table("_lock").local.write_text("held by somebody")
    found = holding(shop)
    assert (found.tables, found.others, found.size) == (("_ledger",), (), 5)
