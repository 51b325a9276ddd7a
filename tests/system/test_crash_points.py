"""A run that fails at any named place is finished by the next one.

No row lost, none counted twice, the oracle's tables.

One pipeline lives through all of it. A batch, or a backfill, ends at several places one after the
other before it comes to its end, so every place but the first few is also one of a run that
repeats; the tables are compared after each batch.
"""

import ast
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.diagnosis.pointer import POINTER
from jobs.publish import publish
from jobs.read import read
from jobs.validate import validate
from tests.oracle import Event, Session, Tumbling
from tests.support.crash_points import POINTS
from tests.support.faulty_store import Fault, FaultyStore
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, Life, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from tests.support.python_code import files, tree
from windowing.ledger.rule import PUBLISH
from windowing.ledger.table import read_history
from windowing.storage.store import LocalStore

WINDOWS = (Tumbling("hourly", 60 * MINUTE), Session("visits", 10 * MINUTE, emit="on_close"))
SEVERAL = {"state.stored": 2, "output.corrected": 3, "state.swapped": 2}
"""Places that a step passes several times, and which time it ends there at the latest."""
OF_RUN = [
    name
    for name in POINTS
    if name.startswith(("run.", "batch.")) or name in ("state.stored", "output.corrected")
]
OF_BACKFILL = [
    n for n in POINTS if n.startswith("backfill.") or n in ("state.swapped", "output.corrected")
]
OF_READERS = [name for name in POINTS if name.startswith(("validate.", "publish.", "file."))]
ELSEWHERE = [
    name
    for name in POINTS
    if name.startswith(
        (
            *("reset.", "evolve.", "erase.", "maintain.", "check.", "ledger.", "rewrites."),
            *("ingest.", "period."),
        )
    )
]
"""See the tests of these commands."""


@pytest.fixture(scope="module")
def life(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """A pipeline after its first run, with four hours of lateness."""
    root = tmp_path_factory.mktemp("life")
    new = Life(Lab(spark, root, WINDOWS, lateness=240 * MINUTE, delay=10 * MINUTE, shows=FEW))
    new.run()
    return new


def apart(places: list[str], groups: int) -> list[tuple[str, ...]]:
    """The places in groups; those of a group lie far apart, and in their order."""
    return [tuple(places[n::groups]) for n in range(groups)]


def crashers(places: tuple[str, ...], life: Life) -> list[Crasher]:
    """One for each place, at one of the times it is passed."""
    return [Crasher(place, life.rng.randint(1, SEVERAL.get(place, 1))) for place in places]


@pytest.mark.slow
@pytest.mark.parametrize("places", apart(OF_RUN, 3), ids=", ".join)
def test_a_run_that_ends_at_any_place_is_finished_by_the_next(
    places: tuple[str, ...], life: Life
) -> None:
    life.run(*crashers(places, life))


@pytest.mark.deep
def test_a_run_that_ends_at_an_earlier_place_when_it_is_repeated(life: Life) -> None:
    life.run(Crasher("batch.processed"), Crasher("state.stored"), Crasher("batch.judged"))


@pytest.mark.deep
@pytest.mark.parametrize("places", apart(OF_BACKFILL, 3), ids=", ".join)
def test_a_backfill_that_ends_at_any_place_is_finished(places: tuple[str, ...], life: Life) -> None:
    life.backfill(*crashers(places, life))


def test_readers_never_see_what_was_not_validated(life: Life) -> None:
    lab, pointer = life.lab, life.lab.pipeline.table(POINTER).local
    validate(lab.spark, lab.pipeline)
    publish(lab.pipeline)
    before = pointer.read_text()
    life.run()
    for place in OF_READERS:
        if place.startswith("validate."):
            ends_at(Crasher(place), lambda: validate(lab.spark, lab.pipeline))
        else:
            ends_at(Crasher(place), lambda: publish(lab.pipeline))
        if place != "publish.pointed":
            assert pointer.read_text() == before, place
        if place == "validate.recorded":
            validate(lab.spark, lab.pipeline)
    publish(lab.pipeline)
    seen = {w.name: read(lab.spark, lab.pipeline, w.name).count() for w in lab.windows}
    assert seen == {w.name: len(lab.table(w.name)) for w in lab.windows}


@pytest.mark.slow
def test_what_comes_while_a_run_is_left_open_is_judged_by_the_watermark_it_began_with(
    life: Life,
) -> None:
    lab, newest = life.lab, BASE + life.runs * 30 * MINUTE
    life.runs += 20
    ahead = lab.land([Event("a", newest + 600 * MINUTE, 1, "ahead")])
    ends_at(Crasher("batch.done"), lab.go)
    behind = lab.land([Event("a", newest + 20 * MINUTE, 1, "behind")])
    assert lab.go().late == 0
    lab.truth.run([*ahead, *behind], ARRIVAL)
    life.check()


@pytest.mark.slow
@pytest.mark.parametrize("fault", Fault)
def test_a_pointer_that_could_not_be_written_is_written_by_the_next_publish(
    life: Life, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, pointer = life.lab, life.lab.pipeline.table(POINTER).local
    life.run()
    validate(lab.spark, lab.pipeline)
    with monkeypatch.context() as patched:
        faulty = FaultyStore(LocalStore(), fault, at=0)
        patched.setattr("jobs.diagnosis.pointer.store_of", lambda place: faulty)
        with pytest.raises(OSError, match="Input/output error"):
            publish(lab.pipeline)
    published = publish(lab.pipeline)
    assert json.loads(pointer.read_text())["outputs"] == published.as_pointer()["outputs"]
    newest = read_history(lab.pipeline).newest
    assert newest is not None
    entries = read_history(lab.pipeline).entries
    of_newest = [e for e in entries if e.step == PUBLISH and e.seq > newest.seq]
    assert len(of_newest) == 1


def test_every_place_has_its_test() -> None:
    assert {*OF_RUN, *OF_BACKFILL, *OF_READERS, *ELSEWHERE} == set(POINTS)
    others = "".join(file.read_text() for file in Path(__file__).parents[1].rglob("test_*.py"))
    assert [name for name in ELSEWHERE if f'"{name}"' not in others] == []


def test_every_place_of_the_product_has_its_name() -> None:
    calls = [
        node
        for path in files("tidemark", "windowing", "jobs", "expectations", "dags")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("crashpoint")
    ]
    assert {ast.literal_eval(node.args[0]) for node in calls} == set(POINTS)
