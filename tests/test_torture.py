"""The plan of the torture: every place meets every kind of kill in every family.

And what was counted survives a stop. No Spark.
"""

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from tests.support.crash_points import POINTS
from tests.torture import on_shared_storage
from tests.torture.family import FAMILIES, Family, lake_of
from tests.torture.plan import COMBINATIONS, LANES, PLACES, plan_round
from tests.torture.soak import said
from tests.torture.tally import Tally, sum_tallies

ELSEWHERE = ("evolve", "erase", "reset", "check", "period", "ledger", "rewrites", "ingest")
"""What is killed in tests of its own: rare commands, and what a run does every eighth time."""
IN_A_LANE = len(COMBINATIONS) // len(LANES)


def _plans(lane: str) -> list[dict]:
    return [plan_round(n, "7", LANES[lane]) for n in range(IN_A_LANE)]


def test_every_combination_is_met_once_in_turn() -> None:
    plans = [plan for lane in LANES for plan in _plans(lane)]
    met = [(p["kill"]["place"], p["kill"]["whom"], p["family"]) for p in plans]
    assert sorted(met) == sorted(COMBINATIONS)
    assert {name for name in POINTS if name.split(".")[0] not in ELSEWHERE} == set(PLACES)


def test_on_shared_storage_every_place_meets_every_deed_once_in_turn() -> None:
    combinations = on_shared_storage.COMBINATIONS
    plans = [on_shared_storage.plan_round(n, "7") for n in range(len(combinations))]
    assert sorted(plans) == sorted(combinations)
    assert plans != combinations


def test_no_family_is_in_two_lanes() -> None:
    assert sorted(chain.from_iterable(LANES.values())) == sorted(FAMILIES)


@pytest.mark.parametrize("lane", LANES)
def test_a_step_passes_the_places_it_is_killed_at(lane: str) -> None:
    steps = {p["kill"]["place"]: p["step"] for p in _plans(lane)}
    assert (steps["state.stored"], steps["state.swapped"], steps["output.corrected"]) == (
        "run",
        "backfill",
        "run",
    )
    others = {
        (place.split(".")[0], step)
        for place, step in steps.items()
        if not place.startswith(("state", "output"))
    }
    assert others == {
        ("batch", "run"),
        ("validate", "publish"),
        ("file", "publish"),
        *((name, name) for name in ("run", "backfill", "maintain", "publish")),
    }


def test_a_third_of_the_rounds_is_killed_twice() -> None:
    plans = [plan_round(n, "7", LANES["lane-1"]) for n in range(300)]
    assert sum(plan["heal"] is not None for plan in plans) == 100


def test_what_was_counted_is_kept(tmp_path: Path) -> None:
    tally = Tally("7", ["abc"], 3, 1.5, Counter(runs=9), Counter({"run.locked jvm clock": 1}))
    tally.save(tmp_path)
    assert Tally.load(tmp_path) == tally
    assert isinstance(Tally.load(tmp_path).done["nothing yet"], int)


def test_what_a_process_prints_is_counted() -> None:
    tally = Tally("7")
    printed = "landed 20\nhealed 1\nchecked 20\nran 1\nlanded 30\nrun.locked"
    tally.count_lines(printed.splitlines())
    assert tally.done == {
        "events landed": 50,
        "runs": 2,
        "comparisons": 1,
        "events compared": 20,
    }


def test_lanes_are_summed_in_the_time_of_the_longest() -> None:
    lanes = [
        Tally("7", ["abc"], 3, 1.5, Counter(runs=9), Counter({"run.locked jvm clock": 1})),
        Tally("8", ["abc", "def"], 4, 2.5, Counter(runs=1), Counter({"run.locked jvm steps": 1})),
    ]
    assert sum_tallies(lanes) == Tally(
        "7 and 8",
        ["abc", "def"],
        7,
        2.5,
        Counter(runs=10),
        Counter({"run.locked jvm clock": 1, "run.locked jvm steps": 1}),
    )


def test_a_lake_that_is_given_up_is_followed_by_an_empty_one(tmp_path: Path) -> None:
    family = Family(None, tmp_path, "ordered", "7")
    (lake_of(tmp_path, "ordered") / "source").mkdir(parents=True)
    later = family.renew()
    assert lake_of(tmp_path, "ordered") == later.lab.root == tmp_path / "ordered" / "2"
    assert list((tmp_path / "ordered").rglob("*")) == [tmp_path / "ordered" / "2"]
    assert later.batch(0) != Family(None, tmp_path / "other", "ordered", "7").batch(0)


def test_a_soak_compares_late_runs_with_early_ones() -> None:
    lines = [
        f"{n} {9.0 if n < 100 else 2.0 if n < 200 else 6.0} {n} {1.0 if n < 200 else 2.0}"
        for n in range(400)
    ]
    told = (
        "400 runs: 2.00 s, then 6.00 s; 2.00 times a run over a new lake, then 3.00 (+50%); at "
        "most 199 files, then 399"
    )
    assert said("\n".join(lines)) == (told, 0.5)
