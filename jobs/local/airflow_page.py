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
from collections.abc import Iterable
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

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


def main() -> int:
    """Serves the page until a signal, or until a part ends.

    Returns 0 after a signal, 1 if a part ended by itself, and 2 if nothing could start.
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
    env = {**os.environ, **make_settings(options.home, options.port)}
    passwords = _write_passwords(options.home)
    try:
        subprocess.run([AIRFLOW, "db", "migrate"], env=env, check=True, stdout=subprocess.DEVNULL)
    except (KeyboardInterrupt, subprocess.CalledProcessError) as error:
        return _print_refusal(
            f"Airflow's database in {options.home} was not set up: {error or 'interrupted'}"
        )
    return _serve_page(options.home, options.port, env, passwords)


def make_settings(home: Path, port: int) -> dict[str, str]:
    """The environment of Airflow: `home` for its files, `port` of 127.0.0.1 for its page."""
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
    }


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
    """Starts the parts and waits for a signal, or for a part that ends."""
    received: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _frame: received.append(n))
    # Orphans of the parts become children of this process, so that they can be found and ended.
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    parts = {_start_part(part, home, port, env).pid: part for part in PARTS}
    ended: list[str] = []
    is_announced = False
    while not received and not ended:
        if not is_announced and _is_healthy(port):
            _announce_page(port, passwords)
            is_announced = True
        time.sleep(0.5)
        ended = [parts[pid] for pid in _reap_children() if pid in parts]
    _stop_descendants()
    return _report_ended(ended, home)


def _announce_page(port: int, passwords: Path) -> None:
    print(
        f"Airflow: http://127.0.0.1:{port}  user admin, password in {passwords}  (Ctrl-C ends it)",
        flush=True,
    )


def _report_ended(ended: list[str], home: Path) -> int:
    for part in ended:
        print(f"{part} ended by itself; see {home}/{part}.log", file=sys.stderr)
    return 1 if ended else 0


def _start_part(part: str, home: Path, port: int, env: dict[str, str]) -> subprocess.Popen[bytes]:
    words = [str(AIRFLOW), *PARTS[part]]
    if part == "api-server":
        words += ["--port", str(port)]
    with (home / f"{part}.log").open("ab") as log:
        return subprocess.Popen(
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
    me = os.getpid()
    _send_signal(signal.SIGINT, _select_children([me], _read_parents()))
    for number, seconds in PATIENCE_S.items():
        if _wait_until_gone(me, seconds):
            return
        _send_signal(number, _find_descendants(me))
    _wait_until_gone(me, 3)


def _wait_until_gone(ancestor: int, seconds: float) -> bool:
    """Waits up to `seconds` until `ancestor` has no descendants; returns whether that is so."""
    deadline = time.monotonic() + seconds
    while _reap_children() or _find_descendants(ancestor):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def _send_signal(number: signal.Signals, pids: Iterable[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _reap_children() -> list[int]:
    """Collects the children that have ended, orphans of the parts included; returns their ids."""
    reaped: list[int] = []
    try:
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            reaped.append(pid)
    except ChildProcessError:
        pass  # there is no child any more
    return reaped


def _select_children(ancestors: list[int], parents: dict[int, int]) -> list[int]:
    return [pid for pid, parent in parents.items() if parent in ancestors]


def _find_descendants(ancestor: int) -> list[int]:
    parents = _read_parents()
    found: list[int] = []
    generation = _select_children([ancestor], parents)
    while generation:
        found += generation
        generation = _select_children(generation, parents)
    return found


def _read_parents() -> dict[int, int]:
    """The parent of each process, as /proc records it."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue  # the process has ended meanwhile
        # The name of a process, in parentheses, may itself contain spaces and parentheses.
        after_name = text.rpartition(")")[2].split()
        parents[int(stat.parent.name)] = int(after_name[1])
    return parents


if __name__ == "__main__":
    sys.exit(main())
