"""A DAG by partitions of a running Airflow reads the days that have changed, and no others."""

from datetime import date, timedelta
from random import Random

import pytest

from tests.live.airflow import Airflow
from tests.live.checks import assert_readers_see_the_truth
from tests.live.rest import wait_until
from tests.live.shop import HOUR, Order, Shop

pytestmark = [pytest.mark.live, pytest.mark.timeout(1200)]

RUN_S = 180.0
"""Within so many seconds a DAG run ends."""
READERS_S = 120.0
"""Within so many seconds of a publication all readers of its days have run."""
QUIET_S = 15.0
"""For so many seconds the scheduler has the chance to start a reader too many."""
ARRIVALS, DAYS = 6, 5
DAY_MINUTES = 24 * 60
EPOCH = date(1970, 1, 1)


def test_random_arrivals_are_read_by_days(airflow: Airflow, shops: dict[str, Shop]) -> None:
    shop, rng = shops["arrivals"], Random(50)
    reader = f"{shop.name}_by_days"
    airflow.wait_for(reader)
    airflow.rest.unpause(reader)
    wanted: list[str] = []
    for arrival in range(ARRIVALS):
        before = {} if arrival == 0 else shop.shown("hourly")
        shop.land(*draw_orders(rng, arrival))
        run = airflow.rest.trigger(shop.name)
        assert airflow.rest.wait(run, RUN_S) == "success", airflow.rest.tasks(run)
        assert_readers_see_the_truth(shop)
        after = shop.shown("hourly")
        changed = {place for place in before | after if before.get(place) != after.get(place)}
        wanted += {str(EPOCH + timedelta(days=start // (24 * HOUR))) for _, start, _ in changed}
        assert wait_for_days(airflow, reader, len(wanted)) == sorted(wanted), arrival
    with pytest.raises(AssertionError, match="not within"):
        wait_until("one more", QUIET_S, lambda: read_days(airflow, reader)[len(wanted) :] or None)


def draw_orders(rng: Random, arrival: int) -> list[Order]:
    """A few orders of days up to that of the arrival, so that most of them are late."""
    latest = min(arrival, DAYS - 1)
    return [
        Order(
            id=f"{arrival} {n}",
            shop=rng.choice(("north", "south")),
            minute=rng.randint(0, latest) * DAY_MINUTES + rng.randrange(DAY_MINUTES),
            price=rng.randrange(1, 9),
        )
        for n in range(rng.choice((1, 2, 4)))
    ]


def wait_for_days(airflow: Airflow, reader: str, count: int) -> list[str]:
    """The days that were read, once so many readers have ended."""
    look = lambda: days if len(days := read_days(airflow, reader)) >= count else None  # noqa: E731
    return wait_until(f"{reader} has run {count} times", READERS_S, look)


def read_days(airflow: Airflow, reader: str) -> list[str]:
    """The days of all runs of the reader that have succeeded."""
    runs = airflow.rest.runs(reader)
    return sorted(str(run["partition_key"]) for run in runs if run["state"] == "success")
