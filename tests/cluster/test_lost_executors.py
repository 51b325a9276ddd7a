"""An executor that is killed in the middle of a command costs time, and nothing else."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event, Lock, Thread

import pytest
from pyspark.sql import SparkSession

from tests.cluster.life import carry_by_spark, draw_batches, make_lab
from tests.support.cluster import WORKERS, Cluster
from tests.support.pipeline_under_test import ARRIVAL, Lab
from tests.support.random_schedules import BASE, HOUR
from windowing.crash import armed
from windowing.storage.pinned_rows import pin_rows

pytestmark = pytest.mark.cluster
PLACES = ("batch.judged", "state.stored", "output.corrected", "run.drained", "backfill.intended")
ROUNDS = range(10)


@dataclass
class Killer:
    """Kills so many executors at the first `place` that it is told of, in whatever thread."""

    cluster: Cluster
    place: str
    many: int = 1
    killed: list[int] = field(default_factory=list)
    turn: Lock = field(default_factory=Lock)

    def __call__(self, name: str) -> None:
        with self.turn:
            if name == self.place and not self.killed:
                self.killed += [self.cluster.kill_executor() for _ in range(self.many)]


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
    before = cluster.wait_for_executors(lab.spark)
    with armed(killer):
        lab.run(second, ARRIVAL)
        if place.startswith("backfill"):
            lab.backfill(BASE, BASE + HOUR, ARRIVAL)
    assert len(killer.killed) == 1 and set(killer.killed) < set(before), "one of two was killed"
    lab.check()
    lab.run(third, ARRIVAL)
    lab.check()


def test_rows_are_copied_to_an_executor_that_has_replaced_another(
    session: SparkSession, cluster: Cluster
) -> None:
    before = cluster.wait_for_executors(session)
    lost = cluster.kill_executor()
    (left,) = {*before} - {lost}
    # Whoever is left has found now that there is no other one.
    assert pin_rows(session.range(100)).count() == 100
    cluster.wait_for_executors(session)
    time.sleep(2)
    pinned = pin_rows(session.range(100))
    assert cluster.kill_executor() == left
    assert pinned.count() == 100


@contextmanager
def losing_an_executor(cluster: Cluster, session: SparkSession, after: float) -> Iterator[None]:
    """So many seconds after the block has begun, or at its end, an executor is killed."""
    before = cluster.wait_for_executors(session)
    over = Event()

    def kill_then() -> None:
        over.wait(after)
        cluster.kill_executor()

    killing = Thread(target=kill_then)
    killing.start()
    try:
        yield
    finally:
        over.set()
        killing.join()
    assert cluster.executors() != before


@pytest.mark.deep
@pytest.mark.parametrize("seed", ROUNDS)
def test_an_executor_dies_in_each_command_at_any_time(
    seed: int, lab: Lab, cluster: Cluster
) -> None:
    first, second, third = draw_batches()
    rng = Random(seed)
    commands: list[Callable[[], object]] = [
        lambda: lab.run(first, ARRIVAL),
        lambda: lab.run(second, ARRIVAL),
        lambda: lab.backfill(BASE, BASE + HOUR, ARRIVAL),
        lambda: lab.run(third, ARRIVAL),
        lab.maintain,
    ]
    for command in commands:
        with losing_an_executor(cluster, lab.spark, rng.uniform(0, 20)):
            command()
        lab.check()


@pytest.mark.deep
def test_all_executors_may_die_where_rows_are_pinned_in_files(
    lab: Lab, cluster: Cluster, session: SparkSession, tmp_path: Path
) -> None:
    first, second, _ = draw_batches()
    session.sparkContext.setCheckpointDir(str(tmp_path / "pinned"))
    try:
        for batch in (first, second):
            killer = Killer(cluster, "state.stored", WORKERS)
            before = cluster.wait_for_executors(session)
            with armed(killer):
                lab.run(batch, ARRIVAL)
            assert sorted(killer.killed) == before
    finally:
        session.sparkContext._jsc.sc().setCheckpointDir(None)
    lab.check()
