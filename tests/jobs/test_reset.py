"""What a reset calls its own, and what it counts."""

from dataclasses import replace
from pathlib import Path

from jobs.publish import POINTER
from jobs.reset import holding
from tests.windowing.cases import pipeline
from windowing.crash import armed
from windowing.location import Location
from windowing.storage.store import store_of


class Killed(Exception):
    """Ends a write before its rename."""


def kill(place: str) -> None:
    """What happens at a crash point."""
    raise Killed(place)


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
