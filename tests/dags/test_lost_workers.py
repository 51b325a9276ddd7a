"""A running Airflow loses a process of a task while its command writes; the next try ends that."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from conftest import CLI, NEEDS_CLI, ROOT

pytestmark = [NEEDS_CLI, pytest.mark.deep]

START_S = 240.0
STOP_S = 60.0
ENDED_S = {"task": 60.0, "worker": 150.0}
"""Within how many seconds of the loss the command has ended.

Airflow notices an ended task at once, and an ended worker after a minute.
"""
RUN_S = 600.0


@dataclass(frozen=True)
class Api:
    """The API of an Airflow of this test."""

    url: str
    token: str = ""

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        data = None if body is None else json.dumps(body).encode()
        asked = Request(f"{self.url}{path}", data, headers, method=method)
        # A proxy of the environment can't reach 127.0.0.1.
        with build_opener(ProxyHandler({})).open(asked, timeout=60) as answer:
            return json.load(answer)

    def has(self, dag_id: str) -> bool:
        try:
            return self.ask(f"/api/v2/dags/{dag_id}")["dag_id"] == dag_id
        except HTTPError:
            return False


def wait_for(what: str, seconds: float, look: Callable[[], Any]) -> Any:
    """The first answer of `look` that is not falsy."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} seconds")


@pytest.fixture
def api(landed: Path, tmp_path: Path) -> Iterator[Api]:
    """An Airflow with the DAGs of `landed`, all switched off."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home, log = tmp_path / "airflow", tmp_path / "page.log"
    words = ["-m", "jobs.local.airflow_page", "--home", str(home), "--port", str(port)]
    with log.open("wb") as out:
        page = subprocess.Popen([CLI.parent / "python", *words], cwd=ROOT, stdout=out, stderr=out)
    try:
        wait_for("Airflow is up", START_S, lambda: "Airflow: " in log.read_text())
        admin = {"username": "admin", **_password(home)}
        url = f"http://127.0.0.1:{port}"
        yield Api(url, Api(url).ask("/auth/token", admin)["access_token"])
    finally:
        page.send_signal(signal.SIGTERM)
        page.wait(STOP_S)


def _password(home: Path) -> dict[str, str]:
    return {"password": json.loads((home / "passwords.json").read_text())["admin"]}


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("lost", ["task", "worker"])
def test_a_command_that_airflow_has_lost_is_ended_by_the_next_try(
    lost: str, api: Api, landed: Path
) -> None:
    """`task` is the process that runs the task, `worker` the one that watches over it."""
    wait_for("the DAG is read", START_S, lambda: api.has("corner"))
    api.ask("/api/v2/dags/corner", {"is_paused": False}, "PATCH")
    begun = api.ask("/api/v2/dags/corner/dagRuns", {"logical_date": None})
    run = f"/api/v2/dags/corner/dagRuns/{begun['dag_run_id']}"
    lock = landed.parent / "lake/corner/_lock"
    holder = wait_for("the command writes", START_S, lambda: _find_holder(lock, "#1"))
    command = holder["process"]
    # As one that hangs, or works for hours.
    os.kill(command, signal.SIGSTOP)
    task = _parent(command)
    os.kill(task if lost == "task" else _parent(task), signal.SIGKILL)
    at = time.monotonic()
    wait_for("the command has ended", ENDED_S[lost], lambda: not Path(f"/proc/{command}").exists())
    seconds = time.monotonic() - at
    state = wait_for("the DAG run ends", RUN_S, lambda: _ended(api.ask(run)["state"]))
    tried = api.ask(f"{run}/taskInstances/run")["try_number"]
    print(f"{lost}: ended after {seconds:.0f} s; {state} after {time.monotonic() - at:.0f} s")
    assert (state, tried) == ("success", 2)
    told = json.dumps(api.ask(f"{run}/taskInstances/run/logs/2"))
    assert f"ended `tidemark run`, process {command} on " in told
    assert "starting Spark" in told
    assert "run: 3 read; hourly 2 inserted; visits 2 inserted" in told
    events = api.ask("/api/v2/assets/events")["asset_events"]
    assert sorted(event["extra"]["rows"] for event in events) == [2, 2]


def _find_holder(lock: Path, attempt: str) -> Any:
    """What the lock's file says of its holder, once it is that try."""
    try:
        holder = json.loads(lock.read_bytes())
    except (OSError, ValueError):
        return None
    return holder if str(holder["attempt"]).endswith(attempt) else None


def _ended(state: str) -> str | None:
    return state if state in ("success", "failed") else None
