"""Airflow with a home of its own on SQLite, and a stand-in for the command line.

The stand-in records its calls and exits as told.
"""

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from json import dumps
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DAGS = ROOT / "dags"

if importlib.util.find_spec("airflow") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    HOME = Path(tempfile.mkdtemp(prefix="tidemark-airflow-"))
    atexit.register(shutil.rmtree, HOME, ignore_errors=True)
    os.environ.update(
        AIRFLOW_HOME=str(HOME),
        AIRFLOW__CORE__DAGS_FOLDER=str(DAGS),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{HOME}/airflow.db",
    )
    sys.path.append(str(ROOT))

# One lake for all tests: Airflow knows an asset by its name and ties the name to the first URI it
# came with.
LAKE = "/srv/lake"
SPEC = """\
name: {name}
lake: /srv/lake
source: {{table: /srv/lake/orders_in, event_time: at, key: [shop], event_id: id}}
watermark: {{delay: 10 minutes}}
aggregates: {{orders: count(), total: sum(price)}}
windows:
  hourly: {{kind: tumbling, size: 1 hour}}
  visits: {{kind: session, gap: 30 minutes}}
"""

LANDING = "event_id: id, files: {{folder: drop, columns: /srv/columns.yaml}}}}"
"""Where files land for a pipeline, in place of the end of its source."""

FAKE = """\
#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/calls"
echo "$TIDEMARK_ATTEMPT" >> "$here/attempts"
echo "a line of log" >&2
[ "$1" = publish ] && cat "$here/published" || cat "$here/result"
code=$(head -n 1 "$here/exits.$1" 2>/dev/null)
[ -f "$here/exits.$1" ] && sed -i 1d "$here/exits.$1"
exit "${code:-0}"
"""


@dataclass(frozen=True)
class FakeCli:
    """A command `tidemark` in `home`."""

    home: Path

    @property
    def path(self) -> Path:
        return self.home / "tidemark"

    def exits(self, command: str, *codes: int) -> None:
        """The codes of the next calls of `command`; 0 after them."""
        (self.home / f"exits.{command}").write_text("".join(f"{code}\n" for code in codes))

    def reports(self, line: str) -> None:
        """The last line of every command but publish."""
        (self.home / "result").write_text(line + "\n")

    def publishes(self, line: str) -> None:
        (self.home / "published").write_text(line + "\n")

    @property
    def calls(self) -> list[str]:
        calls = self.home / "calls"
        return calls.read_text().splitlines() if calls.exists() else []

    @property
    def attempts(self) -> list[str]:
        """Which try of which task each call was told to be."""
        return (self.home / "attempts").read_text().splitlines()


def name_of_time() -> str:
    """The time of a publication that no other test has."""
    return datetime.now(UTC).isoformat()


def publication(at: str, *, hourly: int = 3, visits: int = 1) -> dict[str, dict[str, Any]]:
    """What `publish` says of two outputs whose versions were published at the time `at`."""
    return {
        "hourly": {"version": hourly, "rows": 24, "previous": 2, "entry": 9, "at": at},
        "visits": {"version": visits, "rows": 7, "previous": None, "entry": 9, "at": at},
    }


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCli:
    fake = FakeCli(tmp_path)
    fake.path.write_text(FAKE)
    fake.path.chmod(0o755)
    fake.reports('{"batches": 1}')
    fake.publishes(dumps({"outputs": publication(name_of_time())}))
    monkeypatch.setenv("TIDEMARK_BIN", str(fake.path))
    return fake


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of specs with one in it: shop.yaml, the pipeline `shop`."""
    directory = tmp_path / "a pipeline's home"
    directory.mkdir()
    (directory / "shop.yaml").write_text(SPEC.format(name="shop"))
    monkeypatch.setenv("TIDEMARK_PIPELINES", str(directory))
    return directory


@pytest.fixture
def bag() -> Callable[[], Any]:
    """The DAGs as Airflow reads them now."""
    from airflow.dag_processing.dagbag import DagBag

    return lambda: DagBag(dag_folder=str(DAGS))


@pytest.fixture(scope="session")
def database() -> Iterator[None]:
    from airflow.utils.db import initdb

    initdb()
    yield


@dataclass(frozen=True)
class Outcome:
    """How a DAG run ended: its state, each task's state and number of tries."""

    run_id: str
    state: str
    tasks: dict[str, str]
    tries: dict[str, int]


@pytest.fixture
def outcome(
    database: None, bag: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """Runs a DAG in this process, with the given parameters; what is tried again is so at once."""
    from dags import retries

    monkeypatch.setattr(retries, "RETRY_DELAY", timedelta(0))

    def run(dag_id: str, **conf: str) -> Outcome:
        done = bag().dags[dag_id].test(run_conf=conf)
        tasks = done.get_task_instances()
        states = {ti.task_id: str(ti.state) for ti in tasks}
        return Outcome(
            done.run_id, str(done.state), states, {ti.task_id: ti.try_number for ti in tasks}
        )

    return run


def register_dags(folder: Path, texts: Mapping[str, str]) -> None:
    """Makes Airflow know the DAGs of these texts, by their names, none of which is paused."""
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    with create_session() as session:
        session.merge(DagBundleModel(name=folder.name))
    bag = DagBag(dag_folder=str(folder), bundle_path=folder, bundle_name=folder.name)
    assert not bag.import_errors
    sync_bag_to_db(bag, folder.name, None)
    with create_session() as session:
        for name in texts:
            model = session.get(DagModel, name)
            assert model is not None
            model.is_paused = False
