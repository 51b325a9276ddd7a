"""What is done in each round of a lane: the same seed gives the same plans."""

from itertools import product
from random import Random
from typing import Any

from tests.support.crash_points import POINTS
from tests.torture.family import FAMILIES

KINDS = ("python", "jvm", "group")
STEPS = {
    "validate": "publish",
    "batch": "run",
    "state": "run",
    "state.swapped": "backfill",
    "output": "run",
    "file": "publish",
}
"""The step that comes by a place, or by places of this kind, where it has another name."""
KILLED_IN = (
    "run",
    "batch",
    "state",
    "output",
    "backfill",
    "maintain",
    "validate",
    "publish",
    "file",
)
PLACES = [name for name in POINTS if name.split(".")[0] in KILLED_IN]
LANES = {"lane-1": ("clock", "ordered"), "lane-2": ("steps", "chains")}
"""Families by the lane they are played in, beside the other: no two lanes have a lake in common."""
COMBINATIONS = list(product(PLACES, KINDS, FAMILIES))


def plan_round(n: int, seed: str, families: tuple[str, ...]) -> dict[str, Any]:
    """The plan of round `n`: in time every place meets every kind of kill in every family."""
    rng = Random(f"{seed}:{n}")
    met = [combination for combination in COMBINATIONS if combination[2] in families]
    order = Random(seed).sample(met, len(met))
    place, whom, family = order[n % len(order)]
    first = place.split(".")[0]
    kill = {
        "nth": rng.choice([1, 1, 2]) if first in ("state", "output") else 1,
        "whom": whom,
        "place": place,
    }
    heal = {"nth": rng.randint(1, 16), "whom": rng.choice(KINDS)} if n % 3 == 2 else None
    return {
        "family": family,
        "runs": 1,
        "step": STEPS.get(place, STEPS.get(first, first)),
        "heal": heal,
        "kill": kill,
    }
