"""The history of a window lists every value that its output has shown, and what made each."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.erase import erase
from jobs.history import WindowHistory, history
from jobs.publish import publish
from jobs.run import run
from jobs.show import Wanted
from jobs.validate import validate
from tests.oracle import Event, Session, Tumbling, Window
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import FEW, Lab
from tests.support.rare_cases import quick_and_rare
from windowing.grid.zone import micros
from windowing.location import Location
from windowing.revisions.rule import Cause, Step
from windowing.spec.load import load_pipeline
from windowing.storage import delta

HOURLY = Tumbling("hourly", 60 * MINUTE)
VISITS = Session("visits", 10 * MINUTE)
KEYS = ("a", "b", "c", "d")
Place = tuple[str, int]
Shown = tuple[Any, ...]
Seen = tuple[str, Shown | None, bool]
"""What made a value, the value, and whether it was published."""
RUN = Cause.RUN


@dataclass
class Witness:
    """Whoever looks at the oracle's outputs after each step, and remembers what has changed."""

    lab: Lab
    runs: int = 0
    values: dict[tuple[str, Place], list[Seen]] = field(default_factory=dict)

    def look(self, cause: Cause) -> None:
        """Notes what a step has changed."""
        made_by = f"run {self.runs}" if cause is RUN else str(cause)
        for window in self.lab.windows:
            shown = self.shown(window)
            known = {place for name, place in self.values if name == window.name}
            for place in known | shown.keys():
                seen = self.values.setdefault((window.name, place), [])
                before = seen[-1][1] if seen else None
                if shown.get(place) != before:
                    seen.append((made_by, shown.get(place), False))

    def publish(self) -> None:
        """Publishes, so that readers see the newest value of each window."""
        validate(self.lab.spark, self.lab.pipeline)
        publish(self.lab.pipeline)
        for seen in self.values.values():
            made_by, value, _ = seen[-1]
            seen[-1] = (made_by, value, True)

    def hide(self, key: str) -> None:
        """Forgets a key, of which no history may know anything."""
        self.values = {name: seen for name, seen in self.values.items() if name[1][0] != key}

    def check(self) -> None:
        """Every window of the pipeline has the history that was seen."""
        for window in self.lab.windows:
            chosen = self.lab.pipeline.window(window.name)
            found = history(self.lab.spark, self.lab.pipeline, chosen, Wanted(limit=999))
            told = {place_of(each): each for each in found.windows}
            assert len(told) == found.total
            assert told.keys() == {place for name, place in self.values if name == window.name}
            for place, each in told.items():
                self._check_window(self.values[window.name, place], each)
            assert found.is_complete

    def _check_window(self, seen: list[Seen], found: WindowHistory) -> None:
        shown = [shown_by(found.identity, value.values) for value in found.values]
        assert shown == [each[1] for each in seen]
        for (made_by, _, was_published), value in zip(seen, found.values, strict=True):
            assert value.made_by is not None
            assert describe(value.made_by) == made_by
            assert bool(value.published) == was_published

    def shown(self, window: Window) -> dict[Place, Shown]:
        """What the oracle has of a window, by key and start."""
        shown = {}
        for (key, start, end, *_), row in self.lab.expected(window).items():
            shown[str(key), int(str(start))] = (end, row["count"], row["sum"], row["first"])
        return shown


def place_of(found: WindowHistory) -> Place:
    """Key and start of a window, as the oracle has them."""
    return str(found.identity["key"]), micros(found.bounds[0])


def shown_by(identity: Mapping[str, Any], values: Mapping[str, Any] | None) -> Shown | None:
    """What the oracle says of a row with these values."""
    if values is None:
        return None
    end = micros(datetime.fromisoformat((identity | values)["window_end"]))
    return (end, values["n"], values["total"], values["opening"])


def describe(step: Step) -> str:
    """What the witness has called a step."""
    return f"run {step.run}" if step.cause is RUN else str(step.cause)


def draw_events(rng: Random, name: str) -> list[Event]:
    """Events of the first hours of a day, in any order."""
    found = []
    for n in range(rng.randrange(1, 6)):
        at = BASE + rng.randrange(360) * MINUTE
        found.append(Event(rng.choice(KEYS), at, rng.randrange(9), f"{name}-{n}", n))
    return found


class Course:
    """Steps of a pipeline in an order drawn at random, each seen by a witness."""

    def __init__(self, spark: SparkSession, root: Path, rng: Random) -> None:
        self.rng = rng
        windows = (HOURLY, VISITS)
        self.lab = Lab(spark, root, windows, lateness=120 * MINUTE, shows=FEW)
        self.witness = Witness(self.lab)

    def run(self) -> None:
        """One batch, in which some rows may be late."""
        self.witness.runs += 1
        self.lab.run(draw_events(self.rng, f"r{self.witness.runs}"))
        self.witness.look(RUN)

    def backfill(self) -> None:
        """A range in which late rows count from now on."""
        start = BASE + self.rng.randrange(6) * 60 * MINUTE
        self.lab.backfill(start, start + 120 * MINUTE)
        self.witness.look(Cause.BACKFILL)

    def maintain(self) -> None:
        """Maintenance, which keeps what the feeds tell, whose files then go."""
        self._perhaps_end_at("maintain.kept", self.lab.maintain)
        self.lab.maintain()
        for window in self.lab.windows:
            feed = self.lab.pipeline.table(window.name).local / "_change_data"
            shutil.rmtree(feed, ignore_errors=True)

    def erase(self) -> None:
        """A key, which no history knows afterwards; what is published has to be the newest."""
        self.publish()
        key = self.rng.choice(KEYS)
        step = partial(erase, self.lab.spark, self.lab.pipeline, {"key": key})
        self._perhaps_end_at("erase.kept", step)
        step()
        self.lab.truth.erase(key)
        self.witness.hide(key)
        self.witness.look(Cause.ERASURE)

    def publish(self) -> None:
        """Readers see what is newest."""
        self.witness.publish()

    def _perhaps_end_at(self, place: str, step: Callable[[], object]) -> None:
        """Ends every second step where it has kept what it deletes next."""
        if self.rng.random() < 0.5:
            ends_at(Crasher(place), step)


@pytest.mark.parametrize("seed", quick_and_rare((0, 2, 3, 4), (2, 3, 4)))
def test_every_value_of_every_window_is_told(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    rng = Random(seed)
    course = Course(spark, tmp_path, rng)
    course.run()
    steps = [course.run] * 4 + [course.backfill, course.backfill, course.publish, course.maintain]
    steps += [course.erase, course.publish]
    rng.shuffle(steps)
    for step in steps:
        step()
        course.witness.check()


def test_an_output_without_a_change_feed_has_its_newest_values_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    course = Course(spark, tmp_path, Random(1))
    lab, spec = course.lab, course.lab.spec()
    for window in spec["windows"].values():
        window["change_feed"] = False
    lab.pipeline = load_pipeline(spec)
    course.run()
    course.run()
    lab.maintain()
    course.publish()
    key = str(lab.landed[0].key)
    erase(spark, lab.pipeline, {"key": key})
    lab.truth.erase(key)
    lab.check()
    for window in lab.windows:
        found = history(spark, lab.pipeline, lab.pipeline.window(window.name), Wanted(limit=999))
        assert not found.is_complete
        told = {place_of(each): each for each in found.windows}
        assert told.keys() == course.witness.shown(window).keys()
        for place, each in told.items():
            (value,) = each.values
            assert shown_by(each.identity, value.values) == course.witness.shown(window)[place]
            assert (value.made_by, value.is_published_known) == (None, False)


def test_no_digit_of_a_value_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    rows = "'a' as shop, timestamp'2026-01-05 00:10:00.123456' as at, 12345678901234567.89 as paid"
    delta.append(spark.sql(f"select {rows}"), Location(str(tmp_path / "sales")))
    spec: dict[str, Any] = {
        "name": "sales",
        "lake": str(tmp_path / "lake"),
        "source": {"table": str(tmp_path / "sales"), "event_time": "at", "key": ["shop"]},
        "watermark": {"delay": "0 seconds", "max_future": "36500 days"},
        "aggregates": {"paid": "sum(paid)", "first": "min(at)"},
        "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
    }
    pipeline = load_pipeline(spec)
    run(spark, pipeline)
    (found,) = history(spark, pipeline, pipeline.window("hourly"), Wanted(limit=9)).windows
    values = found.values[-1].values
    assert values is not None
    assert values["paid"] == "12345678901234567.89"
    assert values["first"] == "2026-01-05T00:10:00.123456Z"
