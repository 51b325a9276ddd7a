"""Runs on shared storage that sleep while another one takes over, and change nothing later."""

from random import Random

import pytest

from tests.support.long_lived_pipeline import Life
from tests.support.shared_storage import SharedStorage
from tests.support.sleepers import PLACES, start_sleeper, wake_up_behind_another

SEED = 7
QUICK = (6, 13)
"""At which of the places a run is stopped in quick tests."""


@pytest.fixture(scope="module")
def life(storage: SharedStorage) -> Life:
    """A pipeline after one run."""
    new = storage.make_life(Random(SEED))
    new.run()
    return new


@pytest.mark.parametrize(
    "nth", [pytest.param(n, marks=() if n in QUICK else pytest.mark.deep) for n in PLACES]
)
def test_a_run_that_slept_while_another_took_over_changes_nothing(
    nth: int, life: Life, storage: SharedStorage
) -> None:
    events = life.lab.land(life.batch())
    sleeper = start_sleeper(life.lab, nth, storage.lease_seconds)
    assert sleeper is not None
    wake_up_behind_another(life, sleeper, events)
    life.run()
