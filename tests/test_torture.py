"""The plan of the torture: every place meets every kind of kill in every family.

And what was counted survives a stop. No Spark.
"""

from collections import Counter
from pathlib import Path

from tests.torture.__main__ import COMBINATIONS, PLACES, Tally, round_plan
from tests.torture.soak import said
from windowing.crash import POINTS

ELSEWHERE = ("evolve", "erase", "recover", "reset", "check", "ledger")
"""What is killed in tests of its own: rare commands, and what a run does every eighth time."""


def test_every_combination_is_met_once_in_turn() -> None:
    plans = [round_plan(n, "7") for n in range(len(COMBINATIONS))]
    met = [(p["kill"]["place"], p["kill"]["whom"], p["family"]) for p in plans]
    assert sorted(met) == sorted(COMBINATIONS)
    assert {name for name in POINTS if name.split(".")[0] not in ELSEWHERE} == set(PLACES)


def test_a_step_passes_the_places_it_is_killed_at() -> None:
    steps = {
        p["kill"]["place"]: p["step"]
        for p in (round_plan(n, "7") for n in range(len(COMBINATIONS)))
    }
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
        *((name, name) for name in ("run", "backfill", "maintain", "publish")),
    }


def test_a_third_of_the_rounds_is_killed_twice() -> None:
    assert sum(round_plan(n, "7")["heal"] is not None for n in range(300)) == 100


def test_what_was_counted_is_kept(tmp_path: Path) -> None:
    tally = Tally("7", ["abc"], 3, 1.5, Counter(runs=9), Counter({"run.locked jvm clock": 1}))
    tally.save(tmp_path)
    assert Tally.of(tmp_path) == tally
    assert isinstance(Tally.of(tmp_path).done["nothing yet"], int)


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
