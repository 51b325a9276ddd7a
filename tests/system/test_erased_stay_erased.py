"""What is erased stays erased, whatever comes: the tables are the oracle's, who never knew of it.

That is a key, or a value of another column. Runs, kills, backfills, changes of the spec,
maintenance, erasures that end half-way, erasures that are lifted. TIDEMARK_SCHEDULES and
TIDEMARK_FIRST_SEED are as in `test_random_schedules.py`.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from jobs.erase import Erased, Lifted, erase, lift_erasure
from jobs.validate import validate
from tests.jobs.sessions.test_exact_session import ELSEWHERE
from tests.support.long_lived_pipeline import Crash, Crasher
from tests.support.pipeline_under_test import ARRIVAL, Lab
from tests.support.random_schedules import (
    ALWAYS,
    Backfill,
    Erase,
    Lift,
    Respec,
    Run,
    Schedule,
    Step,
    erasing,
    erasing_values,
)
from tests.support.rare_cases import quick_and_rare
from tests.system.test_random_schedules import (
    made_with_a_spare_column,
    session,
    take,
    working_in,
)
from windowing.crash import armed
from windowing.ledger.erased import Erasing
from windowing.ledger.table import read_history
from windowing.report.rule import RunReport

FIRST, MANY = int(os.environ.get("TIDEMARK_FIRST_SEED", "0")), os.environ.get("TIDEMARK_SCHEDULES")
SEEDS = (
    range(FIRST, FIRST + int(MANY))
    if MANY
    else [pytest.param(n, marks=pytest.mark.deep) for n in range(12)]
)
SEEDS_OF_VALUES = (
    range(FIRST, FIRST + int(MANY)) if MANY else quick_and_rare((3, 7, 9, 11), (3, 7, 9))
)
ENDS = (
    "run.prepared",
    "batch.intended",
    "batch.judged",
    "state.stored",
    "batch.done",
    "run.drained",
)
"""Places where runs end before they are repeated."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_schedule_with_erasures_gives_the_oracles_tables(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    play_all(erasing(seed), Random(seed), spark, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS_OF_VALUES)
def test_a_schedule_in_which_values_are_erased_gives_the_oracles_tables(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    play_all(erasing_values(seed), Random(seed), spark, tmp_path)


def play_all(drawn: Schedule, rng: Random, spark: SparkSession, root: Path) -> None:
    """Plays a schedule, and compares tables with the oracle's before backfills, and at its end.

    A backfill reads the source again, so it would hide what an erasure has left.
    """
    plain, elsewhere = session(spark), session(spark, **ELSEWHERE)
    lab = lab_of(drawn, plain, root)
    for before, step in pairwise([None, *drawn.steps]):
        is_open = bool(read_history(lab.pipeline).open_erasures)
        if isinstance(step, Backfill) and not isinstance(before, Respec) and not is_open:
            lab.check()
        with working_in(lab, elsewhere if step.elsewhere else plain):
            play(lab, step, plain, rng)
        if isinstance(step, Erase) and step.field != "key" and step.place is None and lab.landed:
            lab.check()
    lab.check()
    assert validate(plain, lab.pipeline).passed
    check_nothing_of_erased(lab)


@dataclass
class Ending(Lab):
    """Its next run ends at each place of `ends` that it comes to, and is repeated."""

    ends: list[str] = field(default_factory=list)

    def go(self, arrival: int = ARRIVAL) -> RunReport:
        """The run, as often as it takes."""
        while self.ends:
            with suppress(Crash), armed(Crasher(self.ends.pop())):
                return super().go(arrival)
        return super().go(arrival)


def lab_of(drawn: Schedule, spark: SparkSession, root: Path) -> Ending:
    """The pipeline of a schedule."""
    lab = Ending(
        spark,
        root,
        drawn.windows,
        drawn.lateness,
        drawn.delay,
        drawn.ids,
        drawn.idle_after,
        max_future=drawn.max_future,
    )
    if drawn.bound is not None:
        lab.bound({"rows": drawn.bound})
    if any(isinstance(step, Run) and step.alters == "widens" for step in drawn.steps):
        made_with_a_spare_column(lab)
    else:
        spark.sql(f"create table delta.`{root}/source` ({lab.schema}) using delta")
    return lab


def play(lab: Ending, step: Step, plain: SparkSession, rng: Random) -> None:
    """Does one step; some runs end half-way first."""
    match step:
        case Erase():
            lab.truth.erase(step.value, step.field)
            with suppress(Crash), armed(Crasher(step.place or "nowhere")):
                erase_from(lab, step)
        case Lift():
            assert lift_from(lab, step).lifted
            assert not lift_from(lab, step).lifted
            lab.truth.lift(step.value, step.field)
            lab.backfill(*ALWAYS, lab.truth.arrival)
        case Run() if step.batch:
            lab.ends = [rng.choice(ENDS) for _ in range(rng.choice([0, 1, 2]))]
            take(lab, step, plain)
        case _:
            take(lab, step, plain)


def erase_from(lab: Lab, step: Erase) -> Erased:
    """The erasure of a step."""
    if step.field == "key":
        return erase(lab.spark, lab.pipeline, Erasing({"key": str(step.value)}))
    return erase(lab.spark, lab.pipeline, Erasing({step.field: str(step.value)}, step.field))


def lift_from(lab: Lab, step: Lift) -> Lifted:
    """What a step lifts."""
    if step.field == "key":
        return lift_erasure(lab.spark, lab.pipeline, Erasing({"key": str(step.value)}))
    return lift_erasure(lab.spark, lab.pipeline, Erasing({step.field: str(step.value)}, step.field))


def check_nothing_of_erased(lab: Lab) -> None:
    """No table has a row of an erased key, refused rows included, and these have no such value."""
    for path in lab.pipeline.root.local.iterdir():
        if not (path / "_delta_log").is_dir():
            continue
        rows = lab.spark.read.format("delta").load(str(path))
        for name, value in lab.truth.erased:
            if name in rows.columns:
                stored = {row[name] for row in rows.select(name).distinct().collect()}
                assert value not in stored, path.name
