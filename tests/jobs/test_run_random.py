"""Random schedules through Spark and Delta: any split of any events, in any order, gives the oracle's tables."""

import os
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.lab import SECOND, Lab, us
from tests.oracle import Event, Session, Sliding, Tumbling

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
BASE = us("2026-03-08T05:00:00")
WINDOWS = (
    Tumbling("hours_ny", HOUR, zone="America/New_York"),
    Sliding("ragged", 25 * MINUTE, 10 * MINUTE, origin=3 * MINUTE),
    Session("visits", 7 * MINUTE),
)
SEEDS = range(int(os.environ.get("TIDEMARK_SCHEDULES", "3")))
"""More of them: TIDEMARK_SCHEDULES=50 make test."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_schedule_gives_the_oracles_tables(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    rng = Random(seed)
    lab = Lab(spark, tmp_path, WINDOWS, rng.choice([None, 0, 10 * MINUTE, HOUR]), rng.choice([0, 5 * MINUTE]), ids=seed % 3 != 2)
    events = [_event(rng, n) for n in range(rng.randrange(20, 60))]
    for batch in _split(events, rng):
        lab.run(batch + [rng.choice(events) for _ in range(rng.randrange(3))])
    lab.check()


def _event(rng: Random, n: int) -> Event:
    t = None if rng.random() < 0.03 else BASE + rng.choice([rng.randrange(3 * HOUR), rng.randrange(36) * 5 * MINUTE])
    value = None if rng.random() < 0.1 else rng.randrange(-50, 50)
    return Event(rng.choice("ab"), t, value, f"e{n}" if rng.random() < 0.95 else None, n)


def _split(events: list[Event], rng: Random) -> list[list[Event]]:
    """In landing order, shuffled a little or wholly, cut in one to four batches."""

    def loose(event: Event) -> float:
        return (event.t or BASE) + rng.choice([0, 20 * MINUTE, 3 * HOUR]) * rng.random()

    landed = sorted(events, key=loose)
    cuts = sorted(rng.randrange(1, len(events)) for _ in range(rng.randrange(4)))
    return [landed[a:b] for a, b in zip([0, *cuts], [*cuts, len(events)], strict=True) if b > a]
