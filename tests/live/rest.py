"""Airflow's REST API as an operator uses it: with a token, one request at a time."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener

PAUSE_S = 0.5
ENDED = ("success", "failed")
Json = dict[str, Any]
T = TypeVar("T")


def wait_until(what: str, seconds: float, look: Callable[[], T | None]) -> T:
    """What `look` finds first; AssertionError if it finds nothing within so many seconds."""
    until = time.monotonic() + seconds
    while (found := look()) is None:
        assert time.monotonic() < until, f"{what}: not within {seconds:g} s"
        time.sleep(PAUSE_S)
    return found


@dataclass(frozen=True)
class DagRun:
    """A run of a DAG, by its names in the API."""

    dag: str
    run: str

    @property
    def path(self) -> str:
        """Where the API has it."""
        return f"/dags/{quote(self.dag)}/dagRuns/{quote(self.run)}"


@dataclass
class Rest:
    """The API at `address`, asked as `admin`."""

    address: str
    password: str = field(repr=False)
    _token: str = field(default="", repr=False)

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """The answer; AssertionError with Airflow's words for one that is refused."""
        self._token = self._token or self._log_in()
        words = f"?{urlencode(query)}" if query else ""
        return self._send(method, f"/api/v2{path}{words}", body)

    def dags(self) -> list[str]:
        """The ids of all DAGs."""
        return [dag["dag_id"] for dag in self.ask("GET", "/dags", query={"limit": 100})["dags"]]

    def unpause(self, dag: str) -> None:
        """Switches a DAG on."""
        self.ask("PATCH", f"/dags/{quote(dag)}", {"is_paused": False})

    def trigger(self, dag: str, **conf: object) -> DagRun:
        """Starts a run of a DAG with these parameters."""
        body = {"logical_date": None, "conf": conf}
        started = self.ask("POST", f"/dags/{quote(dag)}/dagRuns", body)
        return DagRun(dag, started["dag_run_id"])

    def state(self, run: DagRun) -> str:
        """What Airflow says of a run."""
        return str(self.ask("GET", run.path)["state"])

    def wait(self, run: DagRun, seconds: float) -> str:
        """How a run has ended."""
        look = lambda: state if (state := self.state(run)) in ENDED else None  # noqa: E731
        return wait_until(f"{run} ends", seconds, look)

    def tasks(self, run: DagRun) -> dict[str, str]:
        """The state of each task of a run."""
        found = self.ask("GET", f"{run.path}/taskInstances")["task_instances"]
        return {task["task_id"]: str(task["state"]) for task in found}

    def tries(self, run: DagRun) -> dict[str, int]:
        """How often each task of a run was tried."""
        found = self.ask("GET", f"{run.path}/taskInstances")["task_instances"]
        return {task["task_id"]: int(task["try_number"]) for task in found}

    def log(self, run: DagRun, task: str, number: int) -> str:
        """The log of a try of a task, counted from 1."""
        return json.dumps(self.ask("GET", f"{run.path}/taskInstances/{task}/logs/{number}"))

    def clear(self, run: DagRun, tasks: Sequence[str]) -> None:
        """Lets tasks of a run that has ended run again."""
        body = {
            "dry_run": False,
            "only_failed": False,
            "dag_run_id": run.run,
            "task_ids": list(tasks),
        }
        self.ask("POST", f"/dags/{quote(run.dag)}/clearTaskInstances", body)

    def runs(self, dag: str) -> list[Json]:
        """All runs of a DAG."""
        found: list[Json] = self.ask("GET", f"/dags/{quote(dag)}/dagRuns")["dag_runs"]
        return found

    def events(self, asset: str) -> list[Json]:
        """The events of an asset, the first one first."""
        query = {"name_pattern": asset, "order_by": "timestamp", "limit": 100}
        found = self.ask("GET", "/assets/events", query=query)["asset_events"]
        return [event for event in found if event["name"] == asset]

    def _log_in(self) -> str:
        body = {"username": "admin", "password": self.password}
        return str(self._send("POST", "/auth/token", body)["access_token"])

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.address + path, data=data, headers=headers, method=method)
        try:
            # A proxy of the environment can't reach 127.0.0.1.
            with build_opener(ProxyHandler({})).open(request, timeout=60) as answer:
                return json.load(answer)
        except HTTPError as error:
            said = error.read().decode()
            raise AssertionError(f"{method} {path}: {error.code} {said}") from error
