"""Random schedules through Spark and Delta: any windows, any split of any events, copies, quiet times, backfills: the oracle's tables.

The usual ones are the first twenty of at most three runs and backfills. TIDEMARK_SCHEDULES=500 runs more of them, whatever their length;
TIDEMARK_FIRST_SEED with it begins elsewhere. The number in brackets is the seed.
"""

import os
from itertools import count, islice
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.lab import ARRIVAL, Lab
from tests.schedules import KINDS, schedule


def short(seed: int) -> bool:
    """Whether its schedule has at most three runs and backfills."""
    return sum(1 if step.backfill is None else 2 for step in schedule(seed).steps) <= 3


USUAL = tuple(islice(filter(short, count()), 20))
FIRST, MANY = int(os.environ.get("TIDEMARK_FIRST_SEED", "0")), os.environ.get("TIDEMARK_SCHEDULES")
SEEDS = range(FIRST, FIRST + int(MANY)) if MANY else USUAL


@pytest.mark.beside
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_schedule_gives_the_oracles_tables(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    drawn, arrival = schedule(seed), ARRIVAL
    spread = spark.newSession()
    spread.conf.set("spark.sql.shuffle.partitions", "2")
    lab = Lab(spread, tmp_path, drawn.windows, drawn.lateness, drawn.delay, drawn.ids, drawn.idle_after)
    for step in drawn.steps:
        arrival += step.idle
        lab.run(step.batch, arrival)
        if step.backfill is not None:
            lab.check()
            lab.backfill(*step.backfill)
    lab.check()


def test_the_usual_schedules_hold_every_kind_emission_and_lateness() -> None:
    drawn = [schedule(seed) for seed in USUAL]
    windows = [w for s in drawn for w in s.windows]
    assert len({type(w) for w in windows}) == len(set(KINDS)) - 1  # sessions with and without a cap are one type of the oracle
    assert {w.emit for w in windows} == {"on_change", "on_close", "changes"}
    assert any(w.empty for w in windows)
    assert any(w.having for w in windows)
    assert {s.lateness is None for s in drawn} == {True, False}
    assert 0 in {s.lateness for s in drawn}
    assert any(s.idle_after for s in drawn)
    assert sum(step.backfill is not None for s in drawn for step in s.steps) >= 10
