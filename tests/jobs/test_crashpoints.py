"""A run that fails at any named place is finished by the next one: no row lost, none counted twice, the oracle's tables.

One pipeline lives through all of it: every place gets a batch, or a backfill, of its own, and the tables are compared after each.
"""

import pytest
from pyspark.sql import SparkSession

from jobs.publish import POINTER, publish
from jobs.read import read
from jobs.validate import validate
from tests.lab import Lab
from tests.life import MINUTE, Crasher, Life, ends_at
from tests.oracle import Session, Tumbling
from windowing.crash import POINTS
from windowing.delta import local_path

WINDOWS = (Tumbling("hourly", 60 * MINUTE), Session("visits", 10 * MINUTE, emit="on_close"))
SEVERAL = {"state.stored": 2, "output.corrected": 3, "state.swapped": 2}
"""Places that a step passes several times, and which time it ends there at the latest."""
OF_RUN = [name for name in POINTS if name.startswith(("run.", "batch.")) or name in ("state.stored", "output.corrected")]
OF_BACKFILL = [name for name in POINTS if name.startswith("backfill.") or name in ("state.swapped", "output.corrected")]
OF_READERS = [name for name in POINTS if name.startswith(("validate.", "publish."))]
ELSEWHERE = [name for name in POINTS if name.startswith(("recover.", "reset.", "evolve.", "erase.", "maintain."))]
"""See the tests of these commands."""


@pytest.fixture(scope="module")
def life(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """A pipeline after its first run, with four hours of lateness."""
    new = Life(Lab(spark, tmp_path_factory.mktemp("life"), WINDOWS, lateness=240 * MINUTE, delay=10 * MINUTE))
    new.run()
    return new


@pytest.mark.parametrize("place", OF_RUN)
def test_a_run_that_ends_at_any_place_is_finished_by_the_next(place: str, life: Life) -> None:
    life.run(Crasher(place, life.rng.randint(1, SEVERAL.get(place, 1))))


@pytest.mark.parametrize(("first", "second"), [
    ("batch.begun", "batch.intended"), ("state.stored", "batch.judged"), ("batch.processed", "output.corrected"),
    ("batch.done", "run.emitted"),
])  # fmt: skip
def test_a_run_that_ends_twice_too(first: str, second: str, life: Life) -> None:
    life.run(Crasher(first), Crasher(second))


@pytest.mark.parametrize("place", OF_BACKFILL)
def test_a_backfill_that_ends_at_any_place_is_finished(place: str, life: Life) -> None:
    life.backfill(Crasher(place, life.rng.randint(1, SEVERAL.get(place, 1))))


@pytest.mark.parametrize("place", OF_READERS)
def test_readers_never_see_what_was_not_validated(place: str, life: Life) -> None:
    lab, pointer = life.lab, local_path(life.lab.pipeline.table(POINTER))
    life.run()
    before = pointer.read_text() if pointer.exists() else None
    step = validate if place.startswith("validate.") else publish
    if step is publish:
        validate(lab.spark, lab.pipeline)
    ends_at(Crasher(place), lambda: step(lab.spark, lab.pipeline))
    if place != "publish.pointed":
        assert (pointer.read_text() if pointer.exists() else None) == before
    validate(lab.spark, lab.pipeline)
    publish(lab.spark, lab.pipeline)
    seen = {w.name: read(lab.spark, lab.pipeline, w.name).count() for w in lab.windows}
    assert seen == {w.name: len(lab.table(w.name)) for w in lab.windows}


def test_every_place_has_its_test() -> None:
    assert {*OF_RUN, *OF_BACKFILL, *OF_READERS, *ELSEWHERE} == set(POINTS)
