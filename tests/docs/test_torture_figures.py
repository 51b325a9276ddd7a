"""What the documentation says of the torture is what the kept tallies of its lanes add up to."""

from collections import Counter
from pathlib import Path

import pytest

from tests.torture import on_shared_storage
from tests.torture.plan import COMBINATIONS, KINDS
from tests.torture.tally import Tally, sum_tallies

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests" / "torture" / "results"


def test_the_figures_of_the_torture_are_those_of_the_kept_tallies() -> None:
    total = sum_tallies(Tally.load(lane) for lane in sorted(KEPT.glob("lane-*")))
    done, of_kind = total.done, Counter[str]()
    for combination, kills in total.kills.items():
        of_kind[combination.split()[1]] += kills
    assert set(of_kind) <= set(KINDS) and of_kind.total() == done["kills"]
    kinds = ", ".join(str(of_kind[kind]) for kind in ("jvm", "python", "group"))
    compared = f"{done['events compared']:,} in {done['comparisons']}"
    expected = {
        "rounds": f"{total.rounds}",
        "kills: JVM, Python, process group": kinds,
        "of these while interrupted work was being finished": f"{done['double']}",
        "runs, also of processes that raced": f"{done['runs']:,}",
        "events landed": f"{done['events landed']:,}",
        "events compared with the oracle": compared,
        "races of two runs": f"{done['races']}",
        "crowds of two runs, a backfill, a maintenance and more": f"{done['crowds']}",
        "commands that exited with 75, being second": f"{done['busy']}",
        "reads of the pointer meanwhile, none of them torn": f"{done['pointer reads']:,}",
        "combinations of place, kill and windows that were met": (
            f"{len(total.kills)} of {len(COMBINATIONS)}"
        ),
    }
    shown = list_rows()
    assert {what: shown[what] for what in expected} == expected


@pytest.mark.parametrize("store", ["s3"])
def test_the_figures_on_shared_storage_are_those_of_the_kept_tally(store: str) -> None:
    tally = Tally.load(KEPT / store)
    deeds = Counter[str]()
    for combination, rounds in tally.kills.items():
        deeds[combination.split()[0]] += rounds
    assert deeds.total() == tally.rounds - tally.done["passed fewer places"]
    expected = {
        "rounds on S3": f"{tally.rounds}",
        "slept while another finished, and ended with 4 or 75": str(
            tally.done["slept, exit code 4"] + tally.done["slept, exit code 75"]
        ),
        "slept behind its last commit, and ended with 0": f"{tally.done['slept, exit code 0']}",
        "killed with its JVM": f"{deeds['kill']}",
        "lost its server, which was killed": f"{deeds['lose_server']}",
        "combinations of place and deed that were met": (
            f"{len(on_shared_storage.list_played(tally))} of {len(on_shared_storage.COMBINATIONS)}"
        ),
    }
    shown = list_rows()
    assert {what: shown.get(what) for what in expected} == expected


def list_rows() -> dict[str, str]:
    """The second cell of each row of the page's tables by the first."""
    lines = (ROOT / "docs" / "reliability.md").read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return {row[0]: row[1] for row in rows if len(row) > 1}
