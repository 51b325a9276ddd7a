"""An executor that is killed in the middle of a command costs time, and nothing else."""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest
from pyspark.sql import SparkSession

from tests.cluster.life import LATER, carry_by_spark, draw_batches, make_lab
from tests.support.cluster import Cluster
from tests.support.pipeline_under_test import ARRIVAL, Lab
from tests.support.random_schedules import BASE, HOUR
from windowing.crash import armed

pytestmark = pytest.mark.cluster
PLACES = ("batch.judged", "state.stored", "output.corrected", "run.drained", "backfill.intended")
ROUNDS = range(10)


@dataclass
class Killer:
    """Kills an executor at the first `place` that it is told of."""

    cluster: Cluster
    place: str
    killed: list[int] = field(default_factory=list)

    def __call__(self, name: str) -> None:
        if name == self.place and not self.killed:
            self.killed.append(self.cluster.kill_executor())


@pytest.fixture
def lab(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A pipeline with every family of windows, whose rows executors carry."""
    carry_by_spark(monkeypatch)
    return make_lab(session, tmp_path)


@pytest.mark.parametrize(
    "place",
    [
        place if place == "batch.judged" else pytest.param(place, marks=pytest.mark.deep)
        for place in PLACES
    ],
)
def test_a_command_goes_on_without_an_executor(place: str, lab: Lab, cluster: Cluster) -> None:
    first, second, third = draw_batches()
    lab.run(first, ARRIVAL)
    killer = Killer(cluster, place)
    before = cluster.wait_for_executors()
    with armed(killer):
        lab.run(second, ARRIVAL)
        if place.startswith("backfill"):
            lab.backfill(BASE, BASE + HOUR, ARRIVAL)
    assert set(killer.killed) < set(before), "one of two was killed"
    lab.check()
    lab.run(third, ARRIVAL)
    lab.check()


@pytest.mark.deep
@pytest.mark.parametrize("seed", ROUNDS)
def test_executors_die_at_any_time(seed: int, lab: Lab, cluster: Cluster) -> None:
    first, second, third = draw_batches()
    lab.run(first, ARRIVAL)
    rng, over, killed = Random(seed), Event(), []

    def kill_one_after_the_other() -> None:
        while not over.wait(rng.uniform(1, 12)):
            killed.append(cluster.kill_executor())
            cluster.wait_for_executors({killed[-1]})

    cluster.wait_for_executors()
    killing = Thread(target=kill_one_after_the_other)
    killing.start()
    try:
        lab.run(second, ARRIVAL)
        lab.backfill(BASE, BASE + HOUR, ARRIVAL)
        lab.respecify(LATER)
        lab.run(third, ARRIVAL)
    finally:
        over.set()
        killing.join()
    assert killed
    lab.check()
