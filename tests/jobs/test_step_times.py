"""When a step began and when it ended, as the ledger of a real pipeline says."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.erase import erase, lift_erasure
from jobs.microbatch.context import RunContext
from jobs.run import run
from tests.oracle import Count, Event, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import FEW, Lab
from tests.support.rare_cases import quick_and_rare
from windowing.grid.zone import micros
from windowing.ledger.erased import Erasing
from windowing.ledger.rule import CLOSE, DONE, ERASE_LIST, INTENT, LedgerEntry
from windowing.ledger.table import read_history
from windowing.panes.rule import NO_BATCH
from windowing.panes.table import Stamp
from windowing.report.table import read_facts

HOURLY = Tumbling("hourly", 60 * MINUTE)


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A pipeline after one run, which arrived by the clock of this host."""
    made = Lab(spark, tmp_path_factory.mktemp("times"), (HOURLY,), shows=FEW)
    made.land([Event(key, BASE + n * MINUTE, n, f"{key}{n}", n) for key in "ab" for n in range(3)])
    run(spark, made.pipeline)
    return made


def backfill(lab: Lab) -> None:
    lab.backfill(BASE, BASE + 60 * MINUTE)


def change_spec(lab: Lab) -> None:
    lab.respecify((HOURLY, Count("pairs", 2)))
    run(lab.spark, lab.pipeline)


def erase_key(lab: Lab) -> None:
    erase(lab.spark, lab.pipeline, Erasing({"key": "b"}))


STEPS: dict[str, Callable[[Lab], None]] = {
    "backfill": backfill,
    "evolve": change_spec,
    "erase": erase_key,
}


@pytest.mark.slow
@pytest.mark.parametrize("step", quick_and_rare(STEPS, ("erase",)))
def test_a_step_ends_when_it_has_ended(step: str, lab: Lab) -> None:
    began_us = micros(datetime.now(UTC))
    STEPS[step](lab)
    ended_us = micros(datetime.now(UTC))
    intent, done = (newest_of(lab, f"{step}_{which}") for which in ("intent", "done"))
    assert intent.at < done.at
    assert began_us < done.at <= ended_us
    if step == "erase":
        assert began_us < intent.at, "a rebuild and a backfill begin with the arrival they go by"


@pytest.mark.deep
def test_what_is_lifted_or_erased_before_the_first_run_is_listed_then(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    lab.land([Event("a", BASE, 1, "a0", 0)])
    for change in (erase, lift_erasure):
        began_us = micros(datetime.now(UTC))
        change(spark, lab.pipeline, Erasing({"key": "b"}))
        assert began_us < newest_of(lab, ERASE_LIST).at <= micros(datetime.now(UTC))


def test_a_batch_ends_after_its_begin_and_before_the_end_of_its_run(lab: Lab) -> None:
    of_run = [entry for entry in read_history(lab.pipeline).entries if entry.run == 1]
    intent, done, closed = (
        next(entry for entry in of_run if entry.step == step) for step in (INTENT, DONE, CLOSE)
    )
    assert intent.at < done.at <= closed.at
    told = read_facts(lab.pipeline, lambda: lab.spark).runs[0]
    assert (told.updated_us, told.ended_us) == (done.at, closed.at)


def test_a_batch_never_ends_before_it_began(spark: SparkSession, tmp_path: Path) -> None:
    """The clock of whoever wrote the source may be ahead of this host's."""
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    lab.land([Event("a", BASE, 1, "a0", 0)])
    ahead_ms = micros(datetime.now(UTC)) // 1_000 + 31_536_000_000
    commit = lab.home / "source" / "_delta_log" / f"{0:020}.json"
    commit.write_text(re.sub('"timestamp":[0-9]+', f'"timestamp":{ahead_ms}', commit.read_text()))
    # Hadoop compares the file with its sum.
    commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
    run(spark, lab.pipeline)
    assert newest_of(lab, INTENT).at == ahead_ms * 1_000
    assert newest_of(lab, DONE).at == ahead_ms * 1_000


def newest_of(lab: Lab, step: str) -> LedgerEntry:
    """The newest entry of a step."""
    found = [entry for entry in read_history(lab.pipeline).entries if entry.step == step]
    return found[-1]


def test_a_step_never_ends_before_it_arrived() -> None:
    """The clock of a host may be set back, and an arrival may be given that is ahead of it."""
    stamp = Stamp(1, NO_BATCH, None)
    before_us = micros(datetime.now(UTC))
    past, ahead = (
        RunContext(None, None, stamp, before_us + years * 31_536_000_000_000) for years in (-1, 1)
    )
    assert before_us <= past.read_clock() <= micros(datetime.now(UTC))
    assert ahead.read_clock() == ahead.arrival_us
