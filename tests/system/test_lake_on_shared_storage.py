"""Whole pipelines whose source and lake are on S3 or HDFS: the oracle's tables."""

import pytest

from jobs.microbatch import outputs
from jobs.shortcuts import run_size
from tests.support.random_schedules import schedule
from tests.support.shared_storage import ODD_NAMES, SharedStorage
from tests.system.test_random_schedules import QUICK, play_schedule
from windowing.location import Location
from windowing.storage import few_rows

SEEDS = [pytest.param(seed, marks=() if seed in QUICK[:2] else pytest.mark.deep) for seed in QUICK]


@pytest.fixture
def root(storage: SharedStorage) -> Location:
    """A directory without files."""
    return storage.make_home() / ODD_NAMES[storage.kind]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_schedule_gives_the_oracles_tables(
    seed: int, storage: SharedStorage, root: Location
) -> None:
    play_schedule(schedule(seed), seed, storage.session, root)


def test_runs_of_many_rows_give_the_oracles_tables(
    storage: SharedStorage, root: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few rows are carried through a run as many are, and Spark commits them."""
    monkeypatch.setattr(run_size, "FEW_ROWS", 0)
    monkeypatch.setattr(few_rows, "_FEW_ROWS", 0)
    monkeypatch.setattr(few_rows, "_FEW_LARGE_ROWS", 0)
    monkeypatch.setattr(outputs, "_MANY_BYTES", 0)
    play_schedule(schedule(QUICK[1]), QUICK[1], storage.session, root)
