"""The scheduled DAG with the real command line, Spark and Delta.

A few rows land, on a disk or on S3, the DAG runs, readers see the counts. TIDEMARK_E2E names
another command than .venv/bin/tidemark; its directory's python must have the project and Spark.
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.models.asset import AssetEvent
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from conftest import HOME, ROOT, SPEC, Outcome

from tests.support.s3_server import KEYS, started_s3_server

CLI = Path(os.environ.get("TIDEMARK_E2E", ROOT / ".venv/bin/tidemark"))
THERE = CLI.exists() and (ROOT / "jobs/cli/main.py").exists()
pytestmark = pytest.mark.skipif(not THERE, reason=f"{CLI} is not there; run `make setup`")

CANARIES = ("zz-shop-4711", "4712471247", "4713.4713")
"""A key, an id and a price, which no one should find anywhere but in tables."""
LAND = """
import os
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa

from jobs.sessions.profiles import TINY
from windowing.storage.s3_settings import read_s3_settings

kinds = {"id": pa.int64(), "at": pa.timestamp("us", "UTC"), "price": pa.decimal128(8, 4)}
columns = {
    "shop": ["zz-shop-4711", "zz-shop-4711", "b"],
    "id": [4712471247, 2, 3],
    "at": [datetime(2013, 1, 1, *time, tzinfo=UTC) for time in ((10, 5), (10, 20), (11, 10))],
    "price": [Decimal("4713.4713"), Decimal(4), Decimal(1)],
}
schema = pa.schema([("shop", pa.string()), *kinds.items()])
options = read_s3_settings(os.environ).for_rust() if sys.argv[1].startswith("s3:") else None
table = pa.Table.from_pydict(columns, schema=schema)
deltalake.write_deltalake(sys.argv[1], table, storage_options=options)
Path(sys.argv[2]).write_text("".join(f"{name} {value}\\n" for name, value in TINY.items()))
"""


def land(name: str, lake: str, home: Path, patched: pytest.MonkeyPatch) -> Path:
    """A directory of specs with one pipeline in it, whose source holds three orders."""
    light = str(home / "light.conf")
    subprocess.run(
        [CLI.parent / "python", "-c", LAND, f"{lake}/orders_in", light], check=True, cwd=ROOT
    )
    patched.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {light} pyspark-shell")
    specs = home / "specs"
    specs.mkdir()
    (specs / f"{name}.yaml").write_text(SPEC.format(name=name).replace("/srv/lake", lake))
    patched.setenv("TIDEMARK_PIPELINES", str(specs))
    patched.setenv("TIDEMARK_BIN", str(CLI))
    return specs


@pytest.fixture
def landed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pipeline `corner`, with its lake beside its specs."""
    return land("corner", str(tmp_path / "lake"), tmp_path, monkeypatch)


def rows_told(run_id: str) -> dict[str, Any]:
    with create_session() as session:
        return {
            e.asset.name: e.extra["rows"]
            for e in session.query(AssetEvent).filter_by(source_run_id=run_id)
        }


def figures_of(run_id: str) -> dict[str, str]:
    with create_session() as session:
        told = session.query(XComModel).filter_by(run_id=run_id, key="summary")
        return {x.task_id: x.value for x in told}


def test_rows_land_and_readers_see_them(landed: Path, outcome: Callable[..., Outcome]) -> None:
    done = outcome("corner")
    assert (done.state, set(done.tasks.values())) == ("success", {"success"})
    told = ("corner.hourly", "corner.hourly.days", "corner.visits", "corner.visits.days")
    assert rows_told(done.run_id) == dict.fromkeys(told, 2)
    figures = figures_of(done.run_id)
    assert figures["run"] == "3 read; hourly 2 inserted; visits 2 inserted"
    assert figures["validate"].endswith(" checked, 0 failed")
    assert figures["publish"].endswith(", 2 rows")
    assert (landed.parent / "lake/corner/_published.json").exists()
    assert not {canary for canary in CANARIES if canary in kept_of(done.run_id)}


def kept_of(run_id: str) -> str:
    """All that Airflow keeps of a run: results, rendered templates, logs."""
    with create_session() as session:
        results = [str(x.value) for x in session.query(XComModel).filter_by(run_id=run_id)]
        rendered = [
            str(r.rendered_fields)
            for r in session.query(RenderedTaskInstanceFields).filter_by(run_id=run_id)
        ]
    logs = [file.read_text() for file in HOME.rglob("*.log")]
    assert results and rendered
    return "\n".join([*results, *rendered, *logs])


@pytest.mark.s3
def test_a_secret_key_is_in_nothing_that_airflow_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Callable[..., Outcome]
) -> None:
    """Results, rendered templates, logs and the database; the key is in the environment."""
    (tmp_path / "s3").mkdir()
    with started_s3_server(tmp_path / "s3") as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        land("far_away", server.make_home(), tmp_path, monkeypatch)
        done = outcome("far_away")
    assert (done.state, set(done.tasks.values())) == ("success", {"success"})
    assert figures_of(done.run_id)["run"] == "3 read; hourly 2 inserted; visits 2 inserted"
    assert server.endpoint not in kept_of(done.run_id)
    stored = [file for file in HOME.rglob("*") if file.is_file()]
    assert HOME / "airflow.db" in stored
    assert [file for file in stored if b"far_away" in file.read_bytes()]
    assert [file for file in stored if KEYS.secret.encode() in file.read_bytes()] == []


@pytest.mark.deep
def test_a_broken_expectation_turns_the_run_red_and_publishes_nothing(
    landed: Path, outcome: Callable[..., Outcome]
) -> None:
    """The second half of the same pipeline.

    Its suite now demands more orders an hour than there are.
    """
    (landed / "expectations").mkdir()
    wanted = (
        "{type: expect_column_values_to_be_between, kwargs: {column: orders, min_value: 100}, "
        "severity: critical}"
    )
    (landed / "expectations" / "corner.yaml").write_text(f"hourly:\n  - {wanted}\n")
    (landed / "corner.yaml").write_text(
        (landed / "corner.yaml").read_text() + "expectations: {suite: corner}\n"
    )
    done = outcome("corner")
    assert done.state == "failed"
    assert done.tasks["validate"] == "failed"
    assert done.tasks["publish"] == "upstream_failed"
    assert rows_told(done.run_id) == {}
    assert not (landed.parent / "lake/corner/_published.json").exists()
