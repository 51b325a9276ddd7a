"""Findings of a week on call, played over the API of a running Airflow."""

from typing import Any

import pytest

from tests.live.airflow import Airflow
from tests.live.checks import assert_readers_see_the_truth, count_events, wait_for_readers
from tests.live.rest import DagRun
from tests.live.shop import Order, Shop

pytestmark = [pytest.mark.live, pytest.mark.timeout(1200)]

RUN_S = 180.0
"""Within so many seconds a DAG run ends whose processes nobody kills."""


def finish(airflow: Airflow, dag: str, **conf: object) -> tuple[DagRun, str]:
    """A run of the DAG, and how it has ended."""
    run = airflow.rest.trigger(dag, **conf)
    return run, airflow.rest.wait(run, RUN_S)


def test_bad_rows_are_taken_out(airflow: Airflow, shops: dict[str, Shop]) -> None:
    shop = shops["repaired"]
    shop.land(Order("a", "north", 5, 3), Order("b", "north", 50, 4), Order("c", "south", 10, 5))
    run, state = finish(airflow, shop.name)
    assert state == "success", airflow.rest.tasks(run)
    shop.land(*[Order(f"bad {n}", "wrong", n, 100) for n in range(40)])
    run, state = finish(airflow, shop.name)
    assert state == "success", airflow.rest.tasks(run)
    assert_readers_see_the_truth(shop)
    shop.take_out("wrong")

    run, state = finish(airflow, shop.name)
    assert (state, airflow.rest.tasks(run)["run"]) == ("failed", "failed")
    assert airflow.rest.tries(run)["run"] == 1
    log = airflow.rest.log(run, "run", 1)
    assert "exit code 4" in log
    assert f"backfill {shop.spec} --source newest" in log

    run, state = finish(airflow, f"{shop.name}_backfill", source="newest")
    assert state == "success", airflow.rest.tasks(run)
    assert count_events(airflow, run, shop) == {"hourly": 1, "visits": 1}
    assert_readers_see_the_truth(shop)
    assert "wrong" not in {place[0] for place in shop.shown("hourly")}

    shop.land(Order("d", "south", 30, 7))
    run, state = finish(airflow, shop.name)
    assert state == "success", airflow.rest.tasks(run)
    assert_readers_see_the_truth(shop)
    wait_for_readers(airflow, shop, 4)


def test_a_backfill_does_what_its_parameters_say_or_nothing(
    airflow: Airflow, shops: dict[str, Shop]
) -> None:
    shop = shops["repaired"]
    before = shop.published
    day = {"from": "2013-01-01T00:00:00Z", "to": "2013-01-02T00:00:00Z"}
    run, state = finish(airflow, f"{shop.name}_backfill", **day, dry_run=True)
    assert state == "success", airflow.rest.tasks(run)
    run, state = finish(airflow, f"{shop.name}_backfill", **day, dryrun=True)
    assert state == "failed"
    assert "dryrun: no such parameter" in airflow.rest.log(run, "backfill", 1)
    assert shop.published == before


def test_a_publication_by_hand_is_told_once(airflow: Airflow, shops: dict[str, Shop]) -> None:
    shop = shops["accepted"]
    shop.expect("hourly", most=1)
    shop.land(Order("a", "north", 5, 3), Order("b", "north", 10, 4))
    run, state = finish(airflow, shop.name)
    assert (state, airflow.rest.tasks(run)["validate"]) == ("failed", "failed")
    assert count_events(airflow, run, shop) == {"hourly": 0, "visits": 0}

    done = shop.command("publish", "--accept", "the shop was busy")
    assert done.returncode == 0, done.stderr
    run, state = finish(airflow, shop.name)
    assert state == "success", airflow.rest.tasks(run)
    assert count_events(airflow, run, shop) == {"hourly": 1, "visits": 1}
    assert_readers_see_the_truth(shop)
    wait_for_readers(airflow, shop, 1)

    airflow.rest.clear(run, ["publish", "announce"])
    assert airflow.rest.wait(run, RUN_S) == "success"
    assert airflow.rest.tries(run)["announce"] == 2
    assert airflow.rest.tasks(run)["announce"] == "skipped"
    run, state = finish(airflow, shop.name)
    assert (state, airflow.rest.tasks(run)["announce"]) == ("success", "skipped")
    assert [len(airflow.rest.events(f"{shop.name}.{w}")) for w in ("hourly", "visits")] == [1, 1]
    (reader,) = wait_for_readers(airflow, shop, 1)
    assert names_told(airflow, reader) == [f"{shop.name}.hourly"]

    # What was accepted stays accepted while the same window fails.
    shop.land(Order("c", "south", 10, 5))
    run, state = finish(airflow, shop.name)
    assert state == "success", airflow.rest.tasks(run)
    assert count_events(airflow, run, shop) == {"hourly": 1, "visits": 1}
    assert_readers_see_the_truth(shop)


def names_told(airflow: Airflow, run: dict[str, Any]) -> list[str]:
    """The assets whose events have started a run."""
    started = DagRun(run["dag_id"], run["dag_run_id"])
    found = airflow.rest.ask("GET", f"{started.path}/upstreamAssetEvents")
    return [event["name"] for event in found["asset_events"]]


def test_an_output_that_fails_is_held_back_alone(airflow: Airflow, shops: dict[str, Shop]) -> None:
    shop = shops["each"]
    shop.expect("hourly", most=2)
    shop.land(Order("a", "north", 5, 3), Order("b", "north", 10, 4))
    run, state = finish(airflow, shop.name)
    assert state == "success", airflow.rest.tasks(run)
    hours = shop.shown("hourly")

    shop.land(Order("c", "north", 20, 5))
    run, state = finish(airflow, shop.name)
    tasks = airflow.rest.tasks(run)
    assert (state, tasks["validate"], tasks["publish"]) == ("failed", "failed", "success")
    assert count_events(airflow, run, shop) == {"hourly": 0, "visits": 1}
    assert shop.shown("hourly") == hours
    assert shop.shown("visits") == shop.wanted("visits")
    wait_for_readers(airflow, shop, 1)

    shop.expect("hourly", most=3)
    run, state = finish(airflow, shop.name)
    assert state == "success", airflow.rest.tasks(run)
    assert count_events(airflow, run, shop) == {"hourly": 1, "visits": 0}
    assert_readers_see_the_truth(shop)
    wait_for_readers(airflow, shop, 2)


def test_airflow_begins_no_backfill_of_its_own(airflow: Airflow, shops: dict[str, Shop]) -> None:
    name = shops["planned"].name
    days = {"from_date": "2026-03-01T00:00:00Z", "to_date": "2026-03-02T00:00:00Z"}
    with pytest.raises(AssertionError, match=r"/backfills: 4\d\d .*backfill"):
        airflow.rest.ask("POST", "/backfills", {"dag_id": name, **days})
    assert airflow.rest.runs(name) == []
