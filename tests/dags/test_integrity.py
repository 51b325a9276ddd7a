"""The DAGs that Airflow sees: which there are, and their tasks and order.

Also what reading them costs, and what a broken spec does.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Asset, AssetAlias
from conftest import DAGS, LAKE, LANDING, ROOT, SPEC

from dags.factory import dags_of, read_specs
from dags.retries import BUSY, FINAL, LOST_DELAY, ByExitCode

SHIPPED = sorted(path.stem for path in (ROOT / "pipelines").glob("*.yaml"))

COST = """
import json, sys, time
import airflow.sdk
from airflow.dag_processing.dagbag import DagBag
airflow.sdk.DAG, airflow.sdk.task.bash, airflow.sdk.Asset, airflow.sdk.Param, airflow.sdk.RetryPolicy
begin = time.process_time()
bag = DagBag(dag_folder=sys.argv[1])
seconds = time.process_time() - begin
heavy = [name for name in ("pyspark", "delta", "pandas", "numpy", "pyarrow", "great_expectations") if name in sys.modules]
print(json.dumps({"seconds": seconds, "heavy": heavy, "errors": bag.import_errors, "dags": sorted(bag.dags)}))
"""  # noqa: E501


@pytest.fixture
def dags(specs: Path, bag: Callable[[], Any]) -> dict[str, Any]:
    read = bag()
    assert read.import_errors == {}
    return dict(read.dags)


def test_shipped_specs_are_dags_quickly_and_without_spark() -> None:
    env = {
        name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")
    } | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", COST, str(DAGS)], env=env, capture_output=True, text=True, check=True
    )
    cost = json.loads(done.stdout.splitlines()[-1])
    assert cost["errors"] == {}
    assert cost["dags"] == sorted(
        SHIPPED + [f"{name}_{more}" for name in SHIPPED for more in ("backfill", "maintain")]
    )
    assert SHIPPED
    assert cost["heavy"] == []
    assert cost["seconds"] < 1


def test_a_task_that_airflow_has_lost_is_tried_again_at_once(dags: dict[str, Any]) -> None:
    delays = {task.retry_delay for dag in dags.values() for task in dag.tasks}
    assert delays == {LOST_DELAY}


@pytest.mark.parametrize(("dag_id", "writer"), [("shop", "run"), ("shop_backfill", "backfill")])
def test_tasks_and_their_order(dags: dict[str, Any], dag_id: str, writer: str) -> None:
    upstream = {task.task_id: task.upstream_task_ids for task in dags[dag_id].tasks}
    assert upstream == {
        writer: set(),
        "validate": {writer},
        "publish": {"validate"},
        "announce": {"publish"},
        "report": {"publish"},
    }


def test_files_that_land_are_taken_before_a_run_and_only_then(
    specs: Path, bag: Callable[[], Any]
) -> None:
    text = SPEC.replace("event_id: id}}", LANDING).format(name="bank")
    (specs / "bank.yaml").write_text(text)
    dags = bag().dags
    upstream = {task.task_id: task.upstream_task_ids for task in dags["bank"].tasks}
    assert (upstream["ingest"], upstream["run"]) == (set(), {"ingest"})
    assert {task.task_id for task in dags["shop"].tasks} == upstream.keys() - {"ingest"}
    for dag_id in ("bank_backfill", "bank_maintain"):
        assert "ingest" not in dags[dag_id].task_ids
    inlets = {task.task_id: [asset.name for asset in task.inlets] for task in dags["bank"].tasks}
    assert (inlets["ingest"], inlets["run"]) == ([], ["source/bank"])


@pytest.mark.parametrize("dag_id", ["shop", "shop_backfill", "shop_maintain"])
def test_one_run_at_a_time_and_no_catching_up(dags: dict[str, Any], dag_id: str) -> None:
    dag = dags[dag_id]
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert all(
        task.execution_timeout and task.retries for task in dag.tasks if task.task_id != "announce"
    )
    assert {task.pool for task in dag.tasks} == {"default_pool"}


def test_the_schedule_is_the_specs(specs: Path, bag: Callable[[], Any]) -> None:
    (specs / "bank.yaml").write_text(SPEC.format(name="bank") + "schedule: '*/5 * * * *'\n")
    dags = bag().dags
    assert {name: dags[name].schedule for name in dags} == {
        "shop": None,
        "shop_backfill": None,
        "shop_maintain": "7 3 * * *",
        "bank": "*/5 * * * *",
        "bank_backfill": None,
        "bank_maintain": "7 3 * * *",
    }
    assert {str(dag.timezone) for dag in dags.values()} == {"UTC"}


def test_a_page_describes_windows_in_the_words_of_a_spec(dags: dict[str, Any]) -> None:
    lines = dags["shop"].doc_md.splitlines()
    assert lines[2:4] == [
        "- `hourly`: tumbling, 1 hour; asset `shop.hourly`",
        "- `visits`: session, gap 30 minutes; asset `shop.visits`",
    ]


def test_a_page_says_where_reports_are_and_what_to_do_for_each_exit_code(
    dags: dict[str, Any],
) -> None:
    page = dags["shop"].doc_md
    assert f"Report: `{LAKE}/shop/_report.html`. Data Docs: `{LAKE}/shop/_docs`." in page
    for code, meaning in {**FINAL, BUSY: "another command writes"}.items():
        assert f"- {code}: {meaning}" in page


@pytest.mark.parametrize("url", ["http://127.0.0.1:8090", "http://127.0.0.1:8090/"])
def test_a_page_links_to_reports_that_a_web_server_shows(url: str, specs: Path) -> None:
    (shop,) = read_specs(specs).pipelines
    for dag in dags_of(shop, "tidemark", reports_url=url):
        assert (
            "[Report](http://127.0.0.1:8090/shop/_report.html). "
            "[Data Docs](http://127.0.0.1:8090/shop/_docs/)."
        ) in dag.doc_md


def test_dags_take_the_settings_of_whoever_makes_them(specs: Path) -> None:
    (shop,) = read_specs(specs).pipelines
    given = {"owner": "data", "pool": "small", "queue": "spark"}
    for dag in dags_of(
        shop, "tidemark", given, tags=["orders"], access_control={"us": {"can_read"}}
    ):
        assert sorted(dag.tags) == ["orders", "tidemark"]
        assert dag.access_control == {"us": {"DAGs": {"can_read"}}}
        for task in dag.tasks:
            assert (task.owner, task.pool, task.queue) == ("data", "small", "spark")
            if task.task_id != "announce":
                assert isinstance(task.retry_policy, ByExitCode)


@pytest.mark.parametrize(
    "name",
    ["schedule", "catchup", "max_active_runs", "allowed_run_types", "params", "doc_md"],
)
def test_what_follows_from_a_pipeline_can_not_be_set(name: str, specs: Path) -> None:
    (shop,) = read_specs(specs).pipelines
    with pytest.raises(TypeError, match=f"^{name}: Tidemark sets this itself"):
        dags_of(shop, "tidemark", **{name: None})


def test_maintenance_is_one_task(dags: dict[str, Any]) -> None:
    assert [task.task_id for task in dags["shop_maintain"].tasks] == ["maintain"]


def test_a_backfill_asks_for_a_range_and_what_to_do_with_it(dags: dict[str, Any]) -> None:
    params = dags["shop_backfill"].params
    assert {name: params.get_param(name).schema["type"] for name in params} == {
        "from": ["null", "string"],
        "to": ["null", "string"],
        "source": "string",
        "check": "boolean",
        "dry_run": "boolean",
    }
    assert not dags["shop"].params
    with pytest.raises(ValueError, match="latest"):
        params["source"] = "latest"


def test_a_pipeline_reads_its_source_and_announces_its_outputs(dags: dict[str, Any]) -> None:
    for dag, writer in ((dags["shop"], "run"), (dags["shop_backfill"], "backfill")):
        tasks = {task.task_id: task for task in dag.tasks}
        assert [asset.name for asset in tasks[writer].inlets] == ["source/shop"]
        told = tasks["announce"]
        assert sorted(asset.name for asset in told.inlets) == ["shop.hourly", "shop.visits"]
        of_days = [Asset(f"shop.{window}.days") for window in ("hourly", "visits")]
        assert told.outlets == [AssetAlias("shop"), *of_days]
        assert [task.task_id for task in dag.tasks if task.outlets] == ["announce"]


def test_airflow_finds_a_dag_again_in_its_file(dags: dict[str, Any]) -> None:
    assert {dag.fileloc for dag in dags.values()} == {str(DAGS / "tidemark_dags.py")}


def test_a_broken_spec_is_an_import_error_and_the_others_run_on(
    specs: Path, bag: Callable[[], Any]
) -> None:
    (specs / "broken.yaml").write_text(
        SPEC.format(name="broken").replace("30 minutes", "30 parsecs")
    )
    (specs / "no_yaml.yaml").write_text("name: [")
    read = bag()
    assert sorted(read.dags) == ["shop", "shop_backfill", "shop_maintain"]
    ((file, error),) = read.import_errors.items()
    assert file.endswith("broken_specs.py")
    lines = error.splitlines()
    assert f"{specs}/broken.yaml: windows.visits.gap" in error
    assert "parsecs" in error
    assert f"{specs}/no_yaml.yaml: " in error
    assert str(specs / "shop.yaml") not in error
    assert len(lines) < 12


def test_an_id_has_one_owner(specs: Path, bag: Callable[[], Any]) -> None:
    (specs / "twin.yaml").write_text(SPEC.format(name="shop"))
    (specs / "zwilling.yaml").write_text(SPEC.format(name="shop_backfill"))
    read = bag()
    assert sorted(read.dags) == ["shop", "shop_backfill", "shop_maintain"]
    (error,) = read.import_errors.values()
    assert f"{specs}/twin.yaml: name: the DAG 'shop' already belongs to {specs}/shop.yaml" in error
    assert (
        f"{specs}/zwilling.yaml: name: the DAG 'shop_backfill' already belongs to {specs}/shop.yaml"
        in error
    )


def test_a_directory_that_is_not_there_is_said(
    monkeypatch: pytest.MonkeyPatch, bag: Callable[[], Any]
) -> None:
    monkeypatch.setenv("TIDEMARK_PIPELINES", "/nowhere")
    read = bag()
    assert read.dags == {}
    assert "'/nowhere' is not a directory; name the one that holds the specs" in next(
        iter(read.import_errors.values())
    )
