"""An Airflow of its own as `make airflow` starts it, and whom of its processes a test can kill."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.live.databases import Database, find_port
from tests.live.rest import Rest, wait_until
from tests.support.children import end_with_parent
from tests.support.killed_process import light

ROOT = Path(__file__).parents[2]
START_S = 180.0
STOP_S = 40.0
WORKER, TASK = "airflow worker -- LocalExecutor: ", "airflow worker -- "
"""How the titles of processes begin that LocalExecutor and the workers have started."""
READERS = '''\
"""For each pipeline a DAG that starts when its hourly numbers were published, and one by days."""

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, PartitionedAssetTimetable

for name in {names!r}:
    schedules = {{
        f"{{name}}_reader": [Asset(f"{{name}}.hourly")],
        f"{{name}}_by_days": PartitionedAssetTimetable(assets=Asset(f"{{name}}.hourly.days")),
    }}
    for dag_id, schedule in schedules.items():
        with DAG(dag_id, schedule=schedule, catchup=False) as dag:
            EmptyOperator(task_id="read")
        globals()[dag_id] = dag
'''


@dataclass(frozen=True)
class Airflow:
    """A running Airflow: its page's process, its API, its directory of specs."""

    page: psutil.Process
    rest: Rest
    specs: Path

    def wait_for(self, dag: str) -> None:
        """Returns as soon as Airflow has read the DAG."""
        look = lambda: dag in self.rest.dags() or None  # noqa: E731
        wait_until(f"{dag} is read", START_S, look)

    def find_scheduler(self) -> psutil.Process | None:
        """The process of the scheduler."""
        for process in self.page.children():
            if "scheduler" in _words(process):
                return process
        return None

    def find_workers(self) -> list[psutil.Process]:
        """The processes that watch over a task each."""
        busy = self._titled(WORKER)
        return [process for process in busy if "<idle>" not in " ".join(_words(process))]

    def find_tasks(self) -> list[psutil.Process]:
        """The processes that a worker has started for its task, and that start the command."""
        watching = {process.pid for process in self._titled(WORKER)}
        return [process for process in self._titled(TASK) if process.pid not in watching]

    def find_commands(self, spec: Path) -> list[psutil.Process]:
        """The commands that work on a pipeline."""
        return [
            process
            for process in self._descendants()
            if str(spec) in (words := _words(process)) and any("tidemark" in w for w in words[:2])
        ]

    def _titled(self, title: str) -> list[psutil.Process]:
        every = self._descendants()
        return [process for process in every if " ".join(_words(process)).startswith(title)]

    def _descendants(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return self.page.children(recursive=True)
        return []


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@contextmanager
def serve_airflow(home: Path, database: Database, names: list[str]) -> Iterator[Airflow]:
    """Airflow with the DAGs of the specs in `home`/specs, and two readers of all hours."""
    port = find_port()
    specs, readers = home / "specs", home / "readers"
    readers.mkdir(parents=True)
    (readers / "readers.py").write_text(READERS.format(names=names))
    words = ["--home", str(home / "airflow"), "--port", str(port)]
    if database.url:
        words += ["--database", database.url]
    log = home / "page.log"
    with log.open("ab") as out:
        started = subprocess.Popen(
            [sys.executable, "-m", "jobs.local.airflow_page", *words],
            cwd=ROOT,
            env={**_environ(home, specs, readers), **database.environ},
            stdout=out,
            stderr=out,
            start_new_session=True,
            preexec_fn=end_with_parent(signal.SIGTERM),  # noqa: PLW1509 - tests have one thread
        )
    try:
        look = lambda: "Airflow: " in log.read_text() or started.poll() is not None or None  # noqa: E731
        wait_until("Airflow is healthy", START_S, look)
        assert started.poll() is None, log.read_text()
        password = json.loads((home / "airflow/passwords.json").read_text())["admin"]
        rest = Rest(f"http://127.0.0.1:{port}", password)
        yield Airflow(psutil.Process(started.pid), rest, specs)
    finally:
        started.send_signal(signal.SIGTERM)
        started.wait(STOP_S)


def _environ(home: Path, specs: Path, readers: Path) -> dict[str, str]:
    bundles = [
        {
            "name": name,
            "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
            "kwargs": {"path": str(path), "refresh_interval": 10},
        }
        for name, path in {"tidemark": ROOT / "dags", "readers": readers}.items()
    ]
    return {
        **light(home),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
        "TIDEMARK_PIPELINES": str(specs),
    }
