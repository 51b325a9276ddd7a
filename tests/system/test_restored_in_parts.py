"""A pipeline of which only some tables or files were restored from an earlier backup.

Each part in turn is older than the rest, or newer than the rest. The next run is refused with a
repair that works, or whatever the part lacks does no harm: every number is the oracle's.
"""

import json
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from jobs.doctor import diagnose, recover
from jobs.publish import publish
from jobs.reset import reset
from jobs.shortcuts.nothing_new import find_nothing_new
from jobs.validate import validate
from tests.oracle import Event, Oracle
from tests.support.long_lived_pipeline import BASE, MINUTE, WINDOWS, Crasher, Life, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from tests.support.stored_rows import list_stored
from windowing.admit.outcomes import REFUSED
from windowing.errors import ExpectationsFailed, StateRefused
from windowing.ledger.table import QUALITY, read_history
from windowing.panes.rule import state_names
from windowing.spec.load import load_pipeline
from windowing.storage import control

DAY = 24 * 60 * MINUTE


@dataclass(frozen=True)
class Moment:
    """A backup, and what the oracle knew when it was made."""

    kept: Path
    truth: Oracle
    landed: int


@dataclass
class Past:
    """A pipeline that lives on, and its backups by name; `present` is the last of them."""

    life: Life
    moments: dict[str, Moment]

    def keep(self, name: str) -> None:
        """A backup of all that lies there now."""
        life = self.life
        known = len(life.lab.truth.outcomes)
        self.moments[name] = Moment(life.copy(name), deepcopy(life.lab.truth), known)

    def restore(self, older: str, parts: tuple[str, ...]) -> None:
        """All of it is of the present but `parts`, which are of an older moment."""
        life, now = self.life, self.moments["present"]
        life.put_back(now.kept)
        life.put_back(self.moments[older].kept, *parts)
        self._return_to(now)

    def restore_but(self, older: str, parts: tuple[str, ...]) -> None:
        """All of it is of an older moment but `parts`, which are of the present."""
        life, then = self.life, self.moments[older]
        life.put_back(then.kept)
        life.put_back(self.moments["present"].kept, *parts)
        self._return_to(then)

    def _return_to(self, moment: Moment) -> None:
        lab = self.life.lab
        lab.truth = deepcopy(moment.truth)

    def start_over(self) -> None:
        """What `reset` advises: the oracle knows nothing any more."""
        lab = self.life.lab
        reset(lab.pipeline)
        self.life.forget()
        truth = lab.truth
        lab.truth = Oracle(
            truth.delay, truth.lateness, truth.max_future, truth.horizon, lab.windows, None
        )

    def go_on(self) -> None:
        """A run over all that is left to read and a new batch; every table is the oracle's."""
        life, lab = self.life, self.life.lab
        lab.land(batch_of(life))
        lab.go()
        lab.truth.run(lab.landed[len(lab.truth.outcomes) :], ARRIVAL)
        check(life)
        # What was restored stays consistent, too.
        lab.go()
        assert diagnose(lab.spark, lab.pipeline) == ()


def batch_of(life: Life) -> list[Event]:
    """A batch with an event that is late for all windows, unless it is the first."""
    events = life.batch()
    if life.runs == 1:
        return events
    old = Event("a", BASE - 10 * DAY + life.runs * 120 * MINUTE, 1, f"old{life.runs}", 0)
    return [*events, old]


def run(life: Life) -> None:
    """One batch and its run."""
    events = life.lab.land(batch_of(life))
    life.lab.go()
    life.lab.truth.run(events, ARRIVAL)


def make_public(life: Life) -> None:
    """What is newest is validated and published."""
    lab = life.lab
    validate(lab.spark, lab.pipeline)
    publish(lab.pipeline, "tested")


def check(life: Life) -> None:
    """Every table is the oracle's, and what readers see is what the ledger has published."""
    life.check()
    lab, outcomes = life.lab, [outcome for _, outcome in life.lab.truth.outcomes]
    late = list_stored(lab.spark, lab.pipeline.table("_late")) if "late" in outcomes else []
    assert [row["outcome"] for row in late].count("late") == outcomes.count("late")
    make_public(life)
    pointer = json.loads((life.root / "_published.json").read_text())
    published = read_history(lab.pipeline).published
    assert published is not None
    assert pointer["seq"] == published.seq
    found = {name: output["version"] for name, output in pointer["outputs"].items()}
    assert found == {name: published.versions[name] for name in found}


@pytest.fixture(scope="module")
def past(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Past:
    """A pipeline of four runs, a backfill and two publications, with backups."""
    root = tmp_path_factory.mktemp("parts")
    lab = Lab(spark, root, WINDOWS, lateness=240 * MINUTE, delay=10 * MINUTE, shows=FEW)
    (root / "lab.yaml").write_text(json.dumps(lab.spec()))
    life = Life(lab, Random(5))
    past = Past(life, {})
    run(life)
    make_public(life)
    past.keep("finished")
    events = lab.land(batch_of(life))
    ends_at(Crasher("output.corrected"), lab.go)
    past.keep("open")
    lab.go()
    lab.truth.run(events, ARRIVAL)
    check(life)
    run(life)
    check(life)
    run(life)
    lab.backfill(BASE - 11 * DAY, BASE + 60 * MINUTE)
    check(life)
    past.keep("present")
    return past


def _list_parts() -> tuple[str, ...]:
    spec = Lab(None, Path("/nowhere"), WINDOWS, shows=FEW).spec()
    states = state_names(load_pipeline(spec))
    windows = [window.name for window in WINDOWS]
    complete = [f"_windows_{name}" for name in windows if name != "rolling"]
    control = ("_ledger", "_watermarks", "_quality", "_published.json")
    return (*windows, *complete, *states, *REFUSED, *control)


PARTS = tuple((part,) for part in _list_parts())
MOMENTS = ("finished", "open")
WAYS = ("restore", "restore_but")
CASES = [(parts, way, older) for parts in PARTS for way in WAYS for older in MOMENTS]
CHOSEN = (
    (("_watermarks",), "restore", "finished"),
    (("_late",), "restore_but", "finished"),
    (("_seen",), "restore_but", "open"),
    (("pairs",), "restore_but", "open"),
    (("_ledger",), "restore", "open"),
)
"""One for each way in which a part is noticed or made again."""
DERIVED = ("_watermarks", "_quality", "_published.json")
"""Parts that follow from the ledger, so that a run does without them."""


@pytest.mark.parametrize(
    ("parts", "way", "older"),
    [
        pytest.param(*case, marks=pytest.mark.deep if case in CHOSEN else pytest.mark.long)
        for case in CASES
    ],
    ids=["-".join(("+".join(parts), way, older)) for parts, way, older in CASES],
)
def test_a_part_of_another_time_is_noticed_or_harmless(
    parts: tuple[str, ...], way: str, older: str, past: Past
) -> None:
    lab = past.life.lab
    getattr(past, way)(older, parts)
    problems = diagnose(lab.spark, lab.pipeline)
    if not problems:
        # The batch that is open may be in a table already, as it would be after a crash.
        assert parts[0] in DERIVED or older == "open"
        past.go_on()
        return
    with pytest.raises(StateRefused) as refused:
        lab.go()
    message = str(refused.value)
    assert refused.value.code == problems[0].code
    if "`tidemark recover lab`" in message:
        recover(lab.spark, lab.pipeline)
    else:
        assert "`tidemark reset lab`" in message
        past.start_over()
    past.go_on()


@pytest.mark.deep
def test_a_pointer_that_is_newer_than_the_ledger_is_made_from_it(past: Past) -> None:
    lab, life = past.life.lab, past.life
    past.restore_but("finished", ("_published.json",))
    assert find_nothing_new(lab.pipeline, ARRIVAL) is None
    assert [problem.code for problem in diagnose(lab.spark, lab.pipeline)] == ["POINTER_NEWER"]
    recover(lab.spark, lab.pipeline)
    pointer = json.loads((life.root / "_published.json").read_text())
    kept = json.loads((past.moments["finished"].kept / "_published.json").read_text())
    assert pointer == kept


@pytest.mark.deep
def test_outcomes_of_steps_that_are_gone_publish_nothing(past: Past) -> None:
    """The ledger comes to the number of a validated step again, and nobody has validated it."""
    lab = past.life.lab
    past.restore_but("finished", ("_quality",))
    numbers = {row["seq"] for row in control.read_rows(lab.pipeline.table(QUALITY))}
    lab.go()
    newest = read_history(lab.pipeline).newest
    assert newest is not None and newest.seq in numbers
    with pytest.raises(ExpectationsFailed, match="has not been validated"):
        publish(lab.pipeline)
