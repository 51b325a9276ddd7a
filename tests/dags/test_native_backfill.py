"""Airflow's own backfill, asked for over its API with a database: no DAG of a spec has one.

It would start a DAG run for each logical date, which no command looks at.
"""

from collections.abc import Iterator
from pathlib import Path
from secrets import token_urlsafe

import pytest
from airflow.api_fastapi.app import create_app
from airflow.cli import cli_parser
from conftest import SPEC
from fastapi.testclient import TestClient

RANGE = {"from_date": "2026-03-01T00:00:00Z", "to_date": "2026-03-02T00:00:00Z"}
IDS = ("hourly_shop", "hourly_shop_backfill", "hourly_shop_maintain")


@pytest.fixture
def api(specs: Path, database: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """Airflow's API, whose database has the DAGs of a pipeline that runs each hour."""
    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "True")
    monkeypatch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", token_urlsafe(64))
    text = SPEC.format(name="hourly_shop") + "schedule: '@hourly'\n"
    (specs / "hourly_shop.yaml").write_text(text)
    words = cli_parser.get_parser().parse_args(["dags", "reserialize"])
    words.func(words)
    with TestClient(create_app(), base_url="http://127.0.0.1") as client:
        token = client.get("/auth/token").json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"
        yield client


def test_a_backfill_is_neither_offered_nor_begun(api: TestClient) -> None:
    for dag_id in IDS:
        # The page of a DAG offers a backfill if this is true.
        details = api.get(f"/api/v2/dags/{dag_id}/details")
        assert details.status_code == 200, details.text
        assert details.json()["is_backfillable"] is False
        for path in ("/api/v2/backfills", "/api/v2/backfills/dry_run"):
            asked = api.post(path, json={"dag_id": dag_id, **RANGE, "max_active_runs": 1})
            assert asked.status_code in (400, 422), (dag_id, asked.text)
        assert api.get(f"/api/v2/dags/{dag_id}/dagRuns").json()["total_entries"] == 0


def test_a_run_by_hand_is_begun(api: TestClient) -> None:
    for dag_id in IDS:
        asked = api.post(f"/api/v2/dags/{dag_id}/dagRuns", json={"logical_date": None})
        assert asked.status_code == 200, (dag_id, asked.text)
