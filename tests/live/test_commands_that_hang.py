"""Airflow loses a process of a task whose command hangs; the next try ends the command."""

import json
from typing import Literal

import psutil
import pytest

from tests.live.airflow import Airflow
from tests.live.checks import assert_each_publication_is_told_once, assert_readers_see_the_truth
from tests.live.rest import Json, wait_until
from tests.live.shop import Order, Shop

pytestmark = [pytest.mark.live, pytest.mark.timeout(1800)]

START_S = 240.0
ENDED_S = {"task": 60.0, "worker": 150.0}
"""Within how many seconds of the loss the command has ended.

Airflow notices an ended task at once, and an ended worker after a minute.
"""
RUN_S = 600.0


@pytest.mark.parametrize("lost", ["task", "worker"])
def test_a_command_that_hangs_is_ended_by_the_next_try(
    lost: Literal["task", "worker"], airflow: Airflow, shops: dict[str, Shop]
) -> None:
    """`task` is the process that runs the task, `worker` the one that watches over it."""
    shop = shops[f"{lost}_lost"]
    shop.land(Order("1", "north", 0, 5), Order("2", "south", 10, 7), Order("3", "north", 70, 9))
    run = airflow.rest.trigger(shop.name)
    holder = wait_until("the command writes", START_S, lambda: find_holder_of_first_try(shop))
    command = psutil.Process(holder["process"])
    task = command.parent()
    assert task is not None
    worker = task.parent()
    assert worker is not None
    # As one that hangs, or works for hours.
    command.suspend()
    {"task": task, "worker": worker}[lost].kill()
    command.wait(ENDED_S[lost])
    assert airflow.rest.wait(run, RUN_S) == "success"
    assert airflow.rest.tries(run)["run"] == 2
    told = airflow.rest.log(run, "run", 2)
    assert f"ended `tidemark run`, process {command.pid} on " in told
    assert "starting Spark" in told
    assert "run: 3 read; hourly 3 inserted; visits 3 inserted" in told
    assert_readers_see_the_truth(shop)
    assert_each_publication_is_told_once(airflow, shop, 1)


def find_holder_of_first_try(shop: Shop) -> Json | None:
    """What the lock's file says of its holder, once that is the first try of a task."""
    try:
        holder: Json = json.loads(shop.lock.read_bytes())
    except (OSError, ValueError):
        return None
    return holder if str(holder["attempt"]).endswith("#1") else None
