"""Serves Airflow's web page on this machine; all parts of Airflow end together with this process.

`airflow standalone` would also serve task logs on every network interface, and would leave its
parts behind on SIGTERM.
"""

import argparse
import ctypes
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import psutil

ROOT = Path(__file__).resolve().parents[2]
AIRFLOW = ROOT / ".venv-airflow/bin/airflow"
PARTS = {
    "api-server": ["api-server", "--host", "127.0.0.1", "--workers", "1"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}
# Numbers of options of the system call prctl, from <linux/prctl.h>.
SET_PDEATHSIG = 1
SET_CHILD_SUBREAPER = 36
PATIENCE_S = {signal.SIGTERM: 15, signal.SIGKILL: 6}
"""How many seconds to wait before each harder signal; together less than half a minute."""
MOST_RESTARTS = 3
RESTARTS_WITHIN_S = 300
"""How often a part is started again within so many seconds."""


@dataclass
class Restarts:
    """When a part of Airflow was started again, in seconds."""

    times: list[float] = field(default_factory=list)

    def allow(self, now: float) -> bool:
        """Whether the part may be started again; counts it if so."""
        self.times = [at for at in self.times if now - at < RESTARTS_WITHIN_S]
        if len(self.times) == MOST_RESTARTS:
            return False
        self.times.append(now)
        return True


def main() -> int:
    """Serves the page until a signal; a part that ends is started again.

    Returns 0 after a signal, 1 if a part ends again and again, and 2 if nothing could start.
    """
    options = _parse_options()
    if not AIRFLOW.exists():
        return _print_refusal(f"{AIRFLOW} is missing; run `make setup` once")
    if _is_port_taken(options.port):
        return _print_refusal(
            f"--port: {options.port} is taken on 127.0.0.1; "
            f"name another one, such as --port {options.port + 1}"
        )
    os.umask(0o077)
    options.home.mkdir(parents=True, exist_ok=True)
    settings = make_settings(options.home, options.port, options.database)
    env = make_environment(os.environ, settings)
    passwords = _write_passwords(options.home)
    try:
        subprocess.run([AIRFLOW, "db", "migrate"], env=env, check=True, stdout=subprocess.DEVNULL)
    except (KeyboardInterrupt, subprocess.CalledProcessError) as error:
        return _print_refusal(
            f"Airflow's database in {options.home} was not set up: {error or 'interrupted'}"
        )
    return _serve_page(options.home, options.port, env, passwords)


def make_settings(home: Path, port: int, database: str | None = None) -> dict[str, str]:
    """The environment of Airflow: `home` for its files, `port` of 127.0.0.1 for its page.

    `database` is the address of its database; where there is none, it is a file in `home`.
    """
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database or f"sqlite:///{home}/airflow.db",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        # A task whose process was lost is noticed within a minute instead of five, ...
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "40",
        # ... and so are the tasks of a scheduler that was lost.
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
    }


def make_environment(environ: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """The variables of Airflow's processes: those of `environ`, and `settings`, which come first.

    Without AIRFLOW_CONFIG, so the file of settings is that in the home of `settings`.
    """
    others = {name: value for name, value in environ.items() if name != "AIRFLOW_CONFIG"}
    return {**others, **settings}


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m jobs.local.airflow_page",
        description="Airflow's web page on 127.0.0.1, until Ctrl-C.",
    )
    parser.add_argument(
        "--port", type=int, default=18080, help="port on 127.0.0.1 (default: 18080)"
    )
    parser.add_argument(
        "--home",
        type=lambda p: Path(p).absolute(),
        default=ROOT / ".airflow",
        help="Airflow's files (default: .airflow)",
    )
    parser.add_argument(
        "--database",
        metavar="URL",
        help="Airflow's database, such as postgresql+psycopg2://airflow@127.0.0.1/airflow "
        "(default: a SQLite file in --home)",
    )
    return parser.parse_args()


def _print_refusal(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


def _is_port_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _write_passwords(home: Path) -> Path:
    """The file with the password of admin; made with a random one, for its owner only."""
    file = home / "passwords.json"
    if not file.exists():
        file.write_text(json.dumps({"admin": secrets.token_urlsafe(18)}) + "\n")
    file.chmod(0o600)
    return file


def _serve_page(home: Path, port: int, env: dict[str, str], passwords: Path) -> int:
    """Starts the parts, and again those that end, until a signal or until one ends too often."""
    received: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _frame: received.append(n))
    # Orphans of the parts become children of this process, so that they can be found and ended.
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    parts = {part: _start_part(part, home, port, env) for part in PARTS}
    restarts = {part: Restarts() for part in PARTS}
    given_up: list[str] = []
    is_announced = False
    while not received and not given_up:
        if not is_announced and _is_healthy(port):
            _announce_page(port, passwords)
            is_announced = True
        time.sleep(0.5)
        # Orphans that have ended are waited for, too, or they would stay as zombies.
        psutil.wait_procs(psutil.Process().children(), timeout=0)
        for part in [name for name, process in parts.items() if not process.is_running()]:
            if received or not restarts[part].allow(time.monotonic()):
                given_up.append(part)
                continue
            print(f"{part} ended by itself and is started again; see {home}/{part}.log", flush=True)
            _stop_helpers(parts[part].pid)
            parts[part] = _start_part(part, home, port, env)
    _stop_descendants()
    return 0 if received else _report_given_up(given_up, home)


def _stop_helpers(part: int) -> None:
    """Ends what a part that has ended has left in its session, such as what holds its port.

    Of a scheduler, these are also the processes that watch over its tasks. The commands of tasks
    have sessions of their own, and go on until the next try of their task.
    """
    left = []
    for process in psutil.Process().children(recursive=True):
        with suppress(ProcessLookupError):
            if os.getsid(process.pid) == part:
                left.append(process)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=5)


def _announce_page(port: int, passwords: Path) -> None:
    print(
        f"Airflow: http://127.0.0.1:{port}  user admin, password in {passwords}  (Ctrl-C ends it)",
        flush=True,
    )


def _report_given_up(parts: list[str], home: Path) -> int:
    for part in parts:
        print(
            f"{part} ended by itself {MOST_RESTARTS + 1} times within "
            f"{RESTARTS_WITHIN_S // 60} minutes; see {home}/{part}.log",
            file=sys.stderr,
        )
    return 1


def _start_part(part: str, home: Path, port: int, env: dict[str, str]) -> psutil.Popen:
    words = [str(AIRFLOW), *PARTS[part]]
    if part == "api-server":
        words += ["--port", str(port)]
    with (home / f"{part}.log").open("ab") as log:
        return psutil.Popen(
            words,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - this process has one thread
        )


def _end_with_parent() -> None:
    """Lets the kernel end the process when its parent ends, even by SIGKILL."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _is_healthy(port: int) -> bool:
    """Whether Airflow reports that all its parts are healthy."""
    # A proxy of the environment can't reach 127.0.0.1.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}/api/v2/monitor/health", timeout=5) as answer:
            parts = json.load(answer)
            return all(part["status"] == "healthy" for part in parts.values())
    except (URLError, OSError, ValueError):
        return False


def _stop_descendants() -> None:
    """Ends every descendant of this process: first the parts by SIGINT, then all by harder signals.

    Tasks have sessions of their own, so a signal to a group would not reach them.
    """
    me = psutil.Process()
    for part in me.children():
        part.send_signal(signal.SIGINT)
    for number, seconds in PATIENCE_S.items():
        deadline = time.monotonic() + seconds
        # While some end, others may be born.
        while (living := me.children(recursive=True)) and time.monotonic() < deadline:
            psutil.wait_procs(living, timeout=0.2)
        for process in living:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
    psutil.wait_procs(me.children(recursive=True), timeout=3)


if __name__ == "__main__":
    sys.exit(main())
