"""DAG runs in this process with a stand-in for the command.

What each exit code does to the tasks, and what assets are told.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from typing import Any

import pytest
from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from conftest import LAKE, LANDING, SPEC, FakeCli, Outcome, name_of_time, publication

Run = Callable[..., Outcome]
GREEN = {
    "run": "success",
    "validate": "success",
    "publish": "success",
    "announce": "success",
    "report": "success",
}
pytestmark = pytest.mark.usefixtures("specs")


def events(run_id: str) -> dict[str, Any]:
    with create_session() as session:
        return {
            e.asset.name: e.extra for e in session.query(AssetEvent).filter_by(source_run_id=run_id)
        }


def test_a_green_run_publishes_and_tells_rows_per_output(
    cli: FakeCli, specs: Path, outcome: Run
) -> None:
    done = outcome("shop")
    assert (done.state, done.tasks) == ("success", GREEN)
    spec = specs / "shop.yaml"
    assert cli.calls == [
        f"run {spec} --validate --json",
        f"validate {spec} --json",
        f"publish {spec} --json",
        f"report {spec}",
    ]
    told = events(done.run_id)
    assert {name: (extra["version"], extra["rows"]) for name, extra in told.items()} == {
        "shop.hourly": (3, 24),
        "shop.visits": (1, 7),
    }
    hourly = told["shop.hourly"]
    assert (hourly["previous"], hourly["entry"]) == (2, 9)
    assert hourly["uri"] == f"file://{LAKE}/shop/hourly"


def test_files_that_land_are_taken_first(cli: FakeCli, specs: Path, outcome: Run) -> None:
    spec = specs / "bank.yaml"
    spec.write_text(SPEC.replace("event_id: id}}", LANDING).format(name="bank"))
    done = outcome("bank")
    assert (done.state, done.tasks) == ("success", GREEN | {"ingest": "success"})
    assert cli.calls[:2] == [f"ingest {spec} --json", f"run {spec} --validate --json"]


def test_nothing_is_run_where_files_were_refused(cli: FakeCli, specs: Path, outcome: Run) -> None:
    text = SPEC.replace("event_id: id}}", LANDING).format(name="bank")
    (specs / "bank.yaml").write_text(text)
    cli.exits("ingest", 4)
    done = outcome("bank")
    assert done.state == "failed"
    assert (done.tasks["ingest"], done.tries["ingest"]) == ("failed", 1)
    assert done.tasks["run"] == "upstream_failed"
    assert [call.split()[0] for call in cli.calls] == ["ingest", "report"]


def test_a_result_is_the_last_line(cli: FakeCli, outcome: Run) -> None:
    run_id = outcome("shop").run_id
    with create_session() as session:
        stored = session.query(XComModel).filter_by(run_id=run_id, key="return_value")
        results = {x.task_id: x.value for x in stored}
    assert results["run"] == '{"batches": 1}'
    assert all(len(value) < 2000 for value in results.values())


def test_figures_of_a_task_are_a_result_of_their_own(cli: FakeCli, outcome: Run) -> None:
    cli.publishes(dumps({"outputs": publication(name_of_time()), "held": {}}))
    run_id = outcome("shop").run_id
    with create_session() as session:
        told = session.query(XComModel).filter_by(run_id=run_id, key="summary")
        assert {x.task_id: x.value for x in told} == {
            "publish": "hourly v3, 24 rows; visits v1, 7 rows"
        }


def test_failed_expectations_publish_nothing_and_are_reported(cli: FakeCli, outcome: Run) -> None:
    cli.exits("validate", 3)
    done = outcome("shop")
    assert done.state == "failed"
    assert done.tasks == GREEN | {
        "validate": "failed",
        "publish": "upstream_failed",
        "announce": "upstream_failed",
    }
    assert done.tries["validate"] == 1
    assert [call.split()[0] for call in cli.calls] == ["run", "validate", "report"]
    assert events(done.run_id) == {}


@pytest.mark.parametrize("code", [2, 4])
def test_what_was_refused_is_not_tried_again(cli: FakeCli, outcome: Run, code: int) -> None:
    cli.exits("run", code)
    done = outcome("shop")
    assert (done.state, done.tasks["run"], done.tries["run"], done.tasks["validate"]) == (
        "failed",
        "failed",
        1,
        "upstream_failed",
    )


def test_busy_waits_for_the_other_writer(cli: FakeCli, outcome: Run) -> None:
    cli.exits("run", 75, 75)
    done = outcome("shop")
    assert (done.state, done.tasks, done.tries["run"]) == ("success", GREEN, 3)


def test_a_command_is_told_which_try_of_which_task_it_is(cli: FakeCli, outcome: Run) -> None:
    cli.exits("run", 75, 75)
    run = f"shop/{outcome('shop').run_id}"
    assert cli.attempts == [
        *(f"{run}/run#{number}" for number in (1, 2, 3)),
        *(f"{run}/{task}#1" for task in ("validate", "publish", "report")),
    ]


def test_the_unexpected_gets_three_tries(cli: FakeCli, outcome: Run) -> None:
    cli.exits("run", 1, 1, 1)
    done = outcome("shop")
    assert (done.state, done.tasks["run"], done.tries["run"]) == ("failed", "failed", 3)


def test_tries_that_waited_for_another_writer_are_none_of_the_three(
    cli: FakeCli, outcome: Run
) -> None:
    cli.exits("run", 75, 1, 75, 75, 1)
    done = outcome("shop")
    assert (done.state, done.tasks["run"], done.tries["run"]) == ("success", "success", 6)
    cli.exits("run", 75, 75, 75, 1, 1, 1)
    done = outcome("shop")
    assert (done.state, done.tasks["run"], done.tries["run"]) == ("failed", "failed", 6)


def test_nothing_published_is_no_event(cli: FakeCli, outcome: Run) -> None:
    cli.publishes('{"outputs": {}}')
    done = outcome("shop")
    assert (done.state, done.tasks["announce"]) == ("success", "skipped")
    assert events(done.run_id) == {}


def test_nothing_new_is_not_validated_and_announced_once(cli: FakeCli, outcome: Run) -> None:
    assert len(events(outcome("shop").run_id)) == 2
    cli.reports('{"run": null, "published": true}')
    again = outcome("shop")
    assert again.state == "success"
    quiet = {**dict.fromkeys(GREEN, "skipped"), "run": "success", "publish": "success"}
    assert again.tasks == quiet
    assert [call.split()[0] for call in cli.calls[4:]] == ["run", "publish"]
    assert events(again.run_id) == {}


def test_what_was_published_by_hand_is_announced_by_the_next_run(
    cli: FakeCli, outcome: Run
) -> None:
    at = name_of_time()
    cli.publishes(dumps({"outputs": publication(at)}))
    outcome("shop")
    changed = publication(at) | {"hourly": publication(name_of_time(), hourly=4)["hourly"]}
    cli.publishes(dumps({"outputs": changed}))
    cli.reports('{"run": null, "published": true}')
    done = outcome("shop")
    assert done.tasks["announce"] == "success"
    # The other output is the one that was announced.
    assert {name: extra["version"] for name, extra in events(done.run_id).items()} == {
        "shop.hourly": 4
    }


def test_an_event_by_hand_makes_nothing_be_announced_again(cli: FakeCli, outcome: Run) -> None:
    at = name_of_time()
    cli.publishes(dumps({"outputs": publication(at)}))
    assert len(events(outcome("shop").run_id)) == 2
    with create_session() as session:
        (asset,) = session.query(AssetModel).filter_by(name="shop.hourly")
        extra: dict[str, Any] = {"from_rest_api": True}
        session.add(AssetEvent(asset_id=asset.id, extra=extra, timestamp=datetime.now(UTC)))
    again = outcome("shop")
    assert (again.tasks["announce"], events(again.run_id)) == ("skipped", {})


def test_what_was_announced_before_a_reset_is_announced_again(cli: FakeCli, outcome: Run) -> None:
    outcome("shop")
    cli.publishes(dumps({"outputs": publication(name_of_time())}))
    assert len(events(outcome("shop").run_id)) == 2


@pytest.mark.parametrize("what", ["check", "dry_run"])
def test_a_scheduled_run_that_is_told_to_write_nothing_does_nothing(
    what: str, cli: FakeCli, outcome: Run
) -> None:
    done = outcome("shop", **{what: True})
    assert (done.state, done.tasks["run"], done.tries["run"]) == ("failed", "failed", 1)
    assert [call.split()[0] for call in cli.calls] == ["report"]


@pytest.mark.parametrize("what", ["check", "dry_run"])
def test_a_backfill_that_writes_nothing_is_followed_by_nothing(
    what: str, cli: FakeCli, specs: Path, outcome: Run
) -> None:
    done = outcome("shop_backfill", **{"from": "2013-01-01", "to": "2013-02-01", what: True})
    assert (done.state, done.tasks["backfill"]) == ("success", "success")
    assert cli.calls == [
        f"backfill {specs / 'shop.yaml'} --from 2013-01-01T00:00:00 --to 2013-02-01T00:00:00 "
        f"--{what.replace('_', '-')} --json"
    ]


def test_a_backfill_of_the_newest_version_needs_no_range(
    cli: FakeCli, specs: Path, outcome: Run
) -> None:
    assert outcome("shop_backfill", source="newest").state == "success"
    assert cli.calls[0] == f"backfill {specs / 'shop.yaml'} --source newest --validate --json"


def test_nothing_new_is_published_where_readers_have_an_older_version(
    cli: FakeCli, outcome: Run
) -> None:
    cli.reports('{"run": null, "published": false}')
    assert outcome("shop").tasks == GREEN


def test_a_backfill_passes_its_range_and_publishes(cli: FakeCli, specs: Path, outcome: Run) -> None:
    done = outcome(
        "shop_backfill", **{"from": "2013-01-01T00:00:00Z", "to": "2013-02-01T00:00:00Z"}
    )
    assert done.state == "success"
    assert cli.calls[0] == (
        f"backfill {specs / 'shop.yaml'} --from 2013-01-01T00:00:00+00:00 "
        "--to 2013-02-01T00:00:00+00:00 --validate --json"
    )
    assert len(events(done.run_id)) == 2


def test_a_backfill_with_a_parameter_that_there_is_not_does_nothing(
    cli: FakeCli, outcome: Run
) -> None:
    done = outcome("shop_backfill", **{"from": "2013-01-01", "to": "2013-02-01", "dryrun": "true"})
    assert (done.state, done.tasks["backfill"], done.tries["backfill"]) == ("failed", "failed", 1)
    assert [call.split()[0] for call in cli.calls] == ["report"]


def test_maintenance_waits_for_the_other_writer(cli: FakeCli, specs: Path, outcome: Run) -> None:
    cli.exits("maintain", 75)
    done = outcome("shop_maintain")
    assert (done.state, done.tasks, done.tries["maintain"]) == (
        "success",
        {"maintain": "success"},
        2,
    )
    assert cli.calls[-1] == f"maintain {specs / 'shop.yaml'} --json"


def test_a_range_that_is_none_never_reaches_a_shell(
    cli: FakeCli, tmp_path: Path, outcome: Run
) -> None:
    done = outcome(
        "shop_backfill", **{"from": f"2013-01-01; touch {tmp_path}/gone", "to": "2013-02-01"}
    )
    assert (done.state, done.tasks["backfill"], done.tries["backfill"]) == ("failed", "failed", 1)
    assert [call.split()[0] for call in cli.calls] == ["report"]
    assert not (tmp_path / "gone").exists()
