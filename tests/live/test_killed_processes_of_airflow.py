"""Scheduler, worker, task and command are killed; the DAG run is green two minutes later."""

import json
import os
import time
from pathlib import Path
from random import Random

import pytest

from tests.live.airflow import Airflow
from tests.live.checks import (
    assert_each_publication_is_told_once,
    assert_readers_see_the_truth,
)
from tests.live.kills import kill, plan_kills
from tests.live.shop import Order, Shop

pytestmark = [pytest.mark.live, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("TIDEMARK_KILLS", "12"))
SEED = int(os.environ.get("TIDEMARK_SEED", "40"))
GREEN_S = 120.0
PATIENCE_S = 400.0
"""Within so many seconds a DAG run ends at all, so that the test can say how long it took."""
SHOPS = ("north", "south", "west")


def make_orders(rng: Random, landing: int) -> list[Order]:
    """Orders of ten hours in any order; the last one comes twice."""
    orders = [
        Order(f"{landing}-{n}", rng.choice(SHOPS), rng.randrange(600), rng.randrange(1, 100))
        for n in range(12)
    ]
    return [*orders, orders[-1]]


def test_after_each_kill_the_run_is_green_and_nothing_is_lost_doubled_or_told_twice(
    airflow: Airflow, shops: dict[str, Shop], home: Path
) -> None:
    shop, rng, done = shops["killed"], Random(SEED), []
    plans = plan_kills(rng)
    landings = 0
    while len(done) < KILLS:
        plan = next(plans)
        killed = None
        while killed is None:
            landings += 1
            shop.land(*make_orders(rng, landings))
            run = airflow.rest.trigger(shop.name)
            killed = kill(airflow, shop.spec, run, plan)
            state = airflow.rest.wait(run, PATIENCE_S)
            plan = plan.sooner()
        seconds = time.monotonic() - killed.at
        tries = airflow.rest.tries(run)
        done.append({"killed": killed.what, "state": state, "seconds": seconds, "tries": tries})
        (home / "kills.json").write_text(json.dumps(done, indent=2))
        print(done[-1], flush=True)
        assert state == "success", (done, airflow.rest.tasks(run))
        assert_readers_see_the_truth(shop)
        assert_each_publication_is_told_once(airflow, shop, landings)
    slow = [one for one in done if one["seconds"] > GREEN_S]
    assert not slow
