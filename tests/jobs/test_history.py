"""The history of a window lists every value that its output has shown, and what made each."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.erase import erase
from jobs.evidence.accepted_events import AcceptedEvents
from jobs.history import WindowHistory, history
from jobs.publish import publish, roll_back
from jobs.run import run
from jobs.show import Wanted
from jobs.validate import validate
from tests.oracle import Admitted, Event, Session, Tumbling, Window, ends, passed
from tests.support.changing_source import Changing
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from windowing.grid.zone import micros, moment
from windowing.ledger.erased import Erasing
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.revisions.evidence import Untold
from windowing.revisions.rule import Cause, Step
from windowing.spec.load import load_pipeline
from windowing.storage import delta

HOURLY = Tumbling("hourly", 60 * MINUTE)
VISITS = Session("visits", 10 * MINUTE)
KEYS = ("a", "b", "c", "d")
Place = tuple[str, int]
Shown = tuple[Any, ...]
Named = tuple[str, Place]
"""A window of the pipeline, and a key and a start in it."""
RUN = Cause.RUN
NAMED = 3
"""So many events of each value are named."""


@dataclass(frozen=True)
class Told:
    """How many events a step has accepted into a window, how late, and the first of them."""

    count: int
    behind: int
    first: tuple[tuple[str | None, int], ...]


@dataclass(frozen=True)
class Seen:
    """What made a value, the value, and the events of it; None where they can't be told."""

    made_by: str
    shown: Shown | None
    events: Told | None


@dataclass
class Witness:
    """Whoever looks at the oracle's outputs after each step, and remembers what has changed.

    `editions` has by publication which of the values of each window readers saw.
    """

    lab: Lab
    runs: int = 0
    values: dict[Named, list[Seen]] = field(default_factory=dict)
    editions: list[dict[Named, int]] = field(default_factory=list)
    members: dict[str, Counter[Event]] = field(default_factory=dict)
    watermark: int | None = None

    def look(self, cause: Cause) -> None:
        """Notes what a step has changed."""
        made_by = f"run {self.runs}" if cause is RUN else str(cause)
        for window in self.lab.windows:
            shown = self.shown(window)
            members = Counter(a.event for a in self.lab.truth.accepted if self.is_in(window, a))
            new = members - self.members.get(window.name, Counter())
            self.members[window.name] = members
            known = {place for name, place in self.values if name == window.name}
            for place in known | shown.keys():
                seen = self.values.setdefault((window.name, place), [])
                before = seen[-1].shown if seen else None
                now = shown.get(place)
                if now != before:
                    seen.append(Seen(made_by, now, self.tell(cause, window, place, now, new)))
        self.watermark = self.lab.truth.watermark

    def is_in(self, window: Window, admitted: Admitted) -> bool:
        """Whether an accepted event was on time for its window."""
        if isinstance(window, Session):
            return window.name not in dict(admitted.missed)
        last = max(end or 0 for end in ends(window, admitted.event.t))
        return not passed(last, self.lab.lateness, admitted.watermark)

    def tell(
        self, cause: Cause, window: Window, place: Place, now: Shown | None, new: Counter[Event]
    ) -> Told | None:
        """Those of the new events that lie in a window; None where a history can't tell them."""
        may_change = isinstance(self.lab, Changing)
        if cause is not RUN and (cause is not Cause.BACKFILL or may_change):
            return None
        if now is None and isinstance(window, Session):
            return None
        key, start = place
        end = start + HOURLY.size if now is None else now[0]
        inside = sorted(e for e in new.elements() if e.key == key and start <= e.t < end)
        first = tuple((e.id, e.t) for e in inside[:NAMED])
        late = [self.watermark - e.t for e in inside if self.watermark is not None]
        return Told(len(inside), max([0, *late]), first)

    def publish(self) -> None:
        """Publishes, so that readers see the newest value of each window."""
        validate(self.lab.spark, self.lab.pipeline)
        publish(self.lab.pipeline)
        self.note_edition({named: len(seen) - 1 for named, seen in self.values.items()})

    def note_edition(self, edition: dict[Named, int]) -> None:
        """Readers see these values since each publication that was not noted yet."""
        made = len(read_history(self.lab.pipeline).publications)
        self.editions += [edition] * (made - len(self.editions))

    def count_published(self, named: Named, value: int) -> int:
        """How often readers began to see a value of a window."""
        seen = [edition.get(named) == value for edition in self.editions]
        return sum(now and not before for before, now in pairwise([False, *seen]))

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
                self._check_window((window.name, place), each)
            assert found.is_complete

    def _check_window(self, named: Named, found: WindowHistory) -> None:
        seen = self.values[named]
        shown = [shown_by(found.identity, value.values) for value in found.values]
        assert shown == [each.shown for each in seen]
        for n, (each, value) in enumerate(zip(seen, found.values, strict=True)):
            assert value.made_by is not None
            assert describe(value.made_by) == each.made_by
            assert len(value.published) == self.count_published(named, n)

    def check_first(self, most: int) -> None:
        """The first windows, in both orders, have the histories that they have among all."""
        for window in self.lab.windows:
            chosen = self.lab.pipeline.window(window.name)
            every = history(self.lab.spark, self.lab.pipeline, chosen, Wanted(limit=999))
            starts = [place_of(each)[1] for each in every.windows]
            assert len(starts) > most
            assert starts == sorted(starts)
            oldest, newest = every.windows[:most], every.windows[::-1][:most]
            for first, newest_first in ((oldest, False), (newest, True)):
                wanted = Wanted(newest_first=newest_first, limit=most)
                found = history(self.lab.spark, self.lab.pipeline, chosen, wanted)
                assert (found.windows, found.total) == (first, every.total)

    def check_events(self, named: Named) -> None:
        """The events of every value of one window are those that were seen."""
        name, (key, start) = named
        wanted = Wanted({"key": (key,)}, moment(start), moment(start + 1), limit=1)
        chosen = self.lab.pipeline.window(name)
        found = history(self.lab.spark, self.lab.pipeline, chosen, wanted, NAMED)
        (told,) = found.windows
        assert place_of(told) == (key, start)
        expected = [each.events for each in self.values[named]]
        assert [told_by(events) for events in told.events] == expected, told.events

    def list_alone(self) -> list[Named]:
        """The windows of which none other overlaps the first instant."""
        return sorted(named for named in self.values if self._is_alone(named))

    def _is_alone(self, named: Named) -> bool:
        name, (key, start) = named
        others = [n for n in self.values if n[0] == name and n[1][0] == key and n != named]
        shown = [(n[1][1], each.shown[0]) for n in others for each in self.values[n] if each.shown]
        return not any(low <= start < high for low, high in shown)

    def shown(self, window: Window) -> dict[Place, Shown]:
        """What the oracle has of a window, by key and start."""
        shown = {}
        for (key, start, end, *_), row in self.lab.expected(window).items():
            shown[str(key), int(str(start))] = (end, row["count"], row["sum"], row["first"])
        return shown


def told_by(events: AcceptedEvents | Untold) -> Told | None:
    """What the witness says of such events."""
    if isinstance(events, Untold):
        return None
    return Told(events.count, events.behind_us, events.first)


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

    def __init__(
        self, spark: SparkSession, root: Path, rng: Random, make_lab: Callable[..., Lab] = Lab
    ) -> None:
        self.rng = rng
        windows = (HOURLY, VISITS)
        self.lab = make_lab(spark, root, windows, lateness=120 * MINUTE, shows=FEW)
        self.witness = Witness(self.lab)
        self.erased: set[str] = set()
        self.undone = 0

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

    def rewrite(self) -> None:
        """The source updates or deletes rows, and a run reprocesses the times of these."""
        assert isinstance(self.lab, Changing)
        chosen = self.rng.sample(self.lab.landed, min(2, len(self.lab.landed)))
        names = ", ".join(f"'{event.id}'" for event in chosen)
        left = [event for event in self.lab.landed if event not in chosen]
        updated = []
        if self.rng.random() < 0.5:
            self.lab.sql(f"delete from {{}} where id in ({names})")
        else:
            self.lab.sql(f"update {{}} set value = value + 100 where id in ({names})")
            updated = [replace(event, value=event.value + 100) for event in chosen]
        self.lab.landed = [*left, *updated]
        self.witness.runs += 1
        self.lab.go()
        times = [event.t for event in chosen if event.key not in self.erased]
        if times:
            self.lab.truth.outcomes += [(event, "accepted") for event in updated]
            self.lab.truth.backfill(self.lab.landed, min(times), max(times) + 1, ARRIVAL)
        self.witness.look(Cause.SOURCE_CHANGE)

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
        step = partial(erase, self.lab.spark, self.lab.pipeline, Erasing({"key": key}))
        self._perhaps_end_at("erase.kept", step)
        step()
        self.lab.truth.erase(key)
        self.erased.add(key)
        self.witness.hide(key)
        self.witness.look(Cause.ERASURE)
        before = len(self.witness.editions)
        self.witness.note_edition(self.witness.editions[-1])
        self.undone = max(before, len(self.witness.editions) - 1)

    def publish(self) -> None:
        """Readers see what is newest."""
        self.witness.publish()

    def rollback(self) -> None:
        """Readers see an earlier publication again, if there is one that may be undone."""
        publications = read_history(self.lab.pipeline).publications
        if self.undone < len(publications):
            number = self.rng.randrange(self.undone, len(publications))
            roll_back(self.lab.pipeline, publications[number].seq, "tests may go back")
            self.witness.note_edition(self.witness.editions[number])

    def check_some_events(self, many: int) -> None:
        """The events of some windows are those that were seen."""
        for named in self.rng.sample(alone := self.witness.list_alone(), min(many, len(alone))):
            self.witness.check_events(named)

    def _perhaps_end_at(self, place: str, step: Callable[[], object]) -> None:
        """Ends every second step where it has kept what it deletes next."""
        if self.rng.random() < 0.5:
            ends_at(Crasher(place), step)


def list_steps(course: Course) -> list[Callable[[], None]]:
    """All that can happen, in an order drawn at random."""
    steps = [course.run] * 4 + [course.backfill, course.backfill, course.publish, course.maintain]
    steps += [course.erase, course.publish, course.publish, course.rollback, course.rollback]
    if isinstance(course.lab, Changing):
        steps += [course.rewrite, course.rewrite]
    course.rng.shuffle(steps)
    return steps


MANY = os.environ.get("TIDEMARK_SCHEDULES")
FIRST = int(os.environ.get("TIDEMARK_FIRST_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(MANY)) if MANY else (0, 2, 3, 4)
"""Courses that are checked after every third step; sources of odd ones change their past."""


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS)
def test_every_value_of_every_window_is_told(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    rng = Random(seed)
    course = Course(spark, tmp_path, rng, Changing if seed % 2 else Lab)
    course.run()
    for n, step in enumerate(list_steps(course)):
        step()
        if n % 3 == 2:
            course.witness.check()
    course.witness.check()
    course.check_some_events(4)


@pytest.mark.slow
def test_values_of_a_short_course_are_told(spark: SparkSession, tmp_path: Path) -> None:
    course = Course(spark, tmp_path, Random(5))
    for step in (course.run, course.run, course.publish, course.run, course.backfill):
        step()
    course.publish()
    course.rollback()
    course.witness.check()
    course.witness.check_first(2)
    course.check_some_events(2)


@pytest.mark.deep
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
    erase(spark, lab.pipeline, Erasing({"key": key}))
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
