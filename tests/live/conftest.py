"""One running Airflow for all tests of a database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.airflow import Airflow, serve_airflow
from tests.live.databases import serve_database
from tests.live.shop import Shop

PIPELINES = {
    "repaired": "",
    "accepted": "expectations: {suite: accepted}\n",
    "each": "expectations: {suite: each}\npublish: each\n",
    "arrivals": "",
    "killed": "",
    "task_lost": "",
    "worker_lost": "",
}
"""By name of a pipeline what its spec says more than those of the others."""
PAUSED = {"planned": 'schedule: "@hourly"\n'}
"""The same of pipelines whose DAGs stay paused."""


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for Airflow, specs and lake; named after the database."""
    return tmp_path_factory.mktemp(request.param)


@pytest.fixture(scope="session")
def shops(home: Path) -> dict[str, Shop]:
    """The pipelines."""
    folder = home / "specs"
    folder.mkdir()
    return {name: Shop(folder, name, more) for name, more in {**PIPELINES, **PAUSED}.items()}


@pytest.fixture(scope="session")
def airflow(
    request: pytest.FixtureRequest, home: Path, shops: dict[str, Shop], jvm: None
) -> Iterator[Airflow]:
    """Airflow with the DAGs of all pipelines; most of them are switched on."""
    database = home.name.rstrip("0123456789")
    with (
        serve_database(database) as served,
        serve_airflow(home, served, list(shops)) as running,
    ):
        for name in shops:
            for dag in (name, f"{name}_backfill", f"{name}_reader"):
                running.wait_for(dag)
                if name in PIPELINES:
                    running.rest.unpause(dag)
        yield running
