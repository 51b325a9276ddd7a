"""Random schedules through a warm engine, some of whose commands are killed: the oracle's tables.

A command that was killed is asked for again while the engine starts another JVM. The number in
brackets is the seed; TIDEMARK_SCHEDULES=100 plays more.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.support.long_lived_pipeline import check_records
from tests.support.random_schedules import Backfill, Maintain, Respec, Run, in_the_past, schedule
from tests.support.warm_pipeline import Engine, WarmLab
from tests.system.test_random_schedules import play_schedule, short

MANY = int(os.environ.get("TIDEMARK_SCHEDULES", "12"))
SEEDS = [seed for seed in range(10 * MANY) if short(seed)][:MANY]


@pytest.fixture(scope="module")
def engine(jvm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine that is up."""
    engine = Engine(tmp_path_factory.mktemp("warm"))
    code, _, err = engine.ask("engine", "start", "--json")
    assert code == 0, err
    yield engine
    assert engine.ask("engine", "stop")[0] == 0


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_schedule_through_an_engine_gives_the_oracles_tables(
    seed: int, engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    made = partial(WarmLab, engine=engine, rng=Random(f"engine {seed}"))
    drawn = replace(in_the_past(schedule(seed)), bound=None)
    lab = play_schedule(drawn, seed, spark, tmp_path, made)
    assert isinstance(lab, WarmLab)
    print(f"seed {seed}: {dict(lab.done)}")
    check_records(lab)


def test_the_schedules_have_every_step() -> None:
    steps = {type(step) for seed in SEEDS for step in schedule(seed).steps}
    assert steps == {Run, Backfill, Maintain, Respec}
