"""An erased key stays erased, whatever comes: the tables are the oracle's, who never knew the key.

Runs, kills, backfills, changes of the spec, maintenance, erasures that end half-way, keys that are
erased no more. TIDEMARK_SCHEDULES and TIDEMARK_FIRST_SEED are as in `test_random_schedules.py`.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from jobs.erase import erase, lift_erasure
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
)
from tests.system.test_random_schedules import (
    made_with_a_spare_column,
    session,
    take,
    working_in,
)
from windowing.crash import armed
from windowing.ledger.table import read_history
from windowing.report.rule import RunReport

FIRST, MANY = int(os.environ.get("TIDEMARK_FIRST_SEED", "0")), os.environ.get("TIDEMARK_SCHEDULES")
QUICK = (8, 9)
SEEDS = (
    range(FIRST, FIRST + int(MANY))
    if MANY
    else [pytest.param(n, marks=() if n in QUICK else pytest.mark.deep) for n in range(12)]
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
    drawn, rng = erasing(seed), Random(seed)
    plain, elsewhere = session(spark), session(spark, **ELSEWHERE)
    lab = lab_of(drawn, plain, tmp_path)
    for before, step in pairwise([None, *drawn.steps]):
        is_open = bool(read_history(lab.pipeline).open_erasures)
        if isinstance(step, Backfill) and not isinstance(before, Respec) and not is_open:
            lab.check()
        with working_in(lab, elsewhere if step.elsewhere else plain):
            play(lab, step, plain, rng)
    lab.check()
    assert validate(plain, lab.pipeline).passed
    check_nothing_of_erased_keys(lab)


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
    if any(isinstance(step, Run) and step.alters == "widens" for step in drawn.steps):
        made_with_a_spare_column(lab)
    else:
        spark.sql(f"create table delta.`{root}/source` ({lab.schema}) using delta")
    return lab


def play(lab: Ending, step: Step, plain: SparkSession, rng: Random) -> None:
    """Does one step; some runs end half-way first."""
    match step:
        case Erase(key=key, place=place):
            lab.truth.erase(key)
            end_erasure(lab, key, place)
        case Lift(key=key):
            assert lift_erasure(lab.spark, lab.pipeline, {"key": key}).lifted
            assert not lift_erasure(lab.spark, lab.pipeline, {"key": key}).lifted
            lab.truth.lift(key)
            lab.backfill(*ALWAYS, lab.truth.arrival)
        case Run() if step.batch:
            lab.ends = [rng.choice(ENDS) for _ in range(rng.choice([0, 1, 2]))]
            take(lab, step, plain)
        case _:
            take(lab, step, plain)


def end_erasure(lab: Lab, key: str, place: str | None) -> None:
    """An erasure that ends at `place`, if it comes there."""
    with suppress(Crash), armed(Crasher(place or "nowhere")):
        erase(lab.spark, lab.pipeline, {"key": key})


def check_nothing_of_erased_keys(lab: Lab) -> None:
    """No table has a row of an erased key, refused rows included."""
    for path in lab.pipeline.root.local.iterdir():
        if not (path / "_delta_log").is_dir():
            continue
        rows = lab.spark.read.format("delta").load(str(path))
        if "key" in rows.columns:
            keys = {row["key"] for row in rows.select("key").distinct().collect()}
            assert not keys & lab.truth.erased, path.name
