"""The databases that Airflow is tried with: SQLite in its home, and a PostgreSQL of its own."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.live.rest import wait_until
from tests.support.children import end_with_parent

USER = "airflow"
NOBODY = "nobody"


@dataclass(frozen=True)
class Database:
    """An address for Airflow, where it has none of its own, and what its processes need to know."""

    url: str | None = None
    environ: dict[str, str] = field(default_factory=dict, repr=False)


@contextmanager
def serve_database(name: str) -> Iterator[Database]:
    """`sqlite` or `postgres`; skips the test where a machine has no PostgreSQL."""
    if name == "sqlite":
        yield Database()
        return
    if shutil.which("initdb") is None:
        pytest.skip("PostgreSQL's initdb is not in PATH")
    home = Path(tempfile.mkdtemp(prefix="tidemark-postgres-"))
    try:
        with _serve_postgres(home) as database:
            yield database
    finally:
        shutil.rmtree(home, ignore_errors=True)


def find_port() -> int:
    """A port of 127.0.0.1 that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _serve_postgres(home: Path) -> Iterator[Database]:
    password, port = secrets.token_urlsafe(18), find_port()
    environ = {"PGPASSWORD": password, "PGUSER": USER}
    (home / "password").write_text(password)
    # PostgreSQL refuses to run as root.
    owner = NOBODY if os.geteuid() == 0 else None
    if owner:
        account = pwd.getpwnam(owner)
        for path in (home, home / "password"):
            os.chown(path, account.pw_uid, account.pw_gid)
    data = home / "data"
    initdb = shutil.which("initdb") or "initdb"
    subprocess.run(
        [initdb, "-D", data, "-U", USER, "-A", "scram-sha-256", f"--pwfile={home / 'password'}"],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=home,
        user=owner,
    )
    # The programs of a version lie together, and not all of them are in PATH.
    server = Path(initdb).resolve().parent / "postgres"
    settings = {
        "port": str(port),
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": str(home),
        "max_connections": "200",
    }
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    with (home / "log").open("ab") as log:
        process = subprocess.Popen(
            [server, "-D", data, *words],
            stdout=log,
            stderr=log,
            cwd=home,
            user=owner,
            preexec_fn=end_with_parent(signal.SIGINT),  # noqa: PLW1509 - tests have one thread
        )
    try:
        wait_until("PostgreSQL answers", 60, lambda: _is_ready(server, port, environ) or None)
        yield Database(f"postgresql+psycopg2://{USER}@127.0.0.1:{port}/postgres", environ)
    finally:
        # Connections are ended, and the server too.
        process.send_signal(signal.SIGINT)
        process.wait(30)


def _is_ready(server: Path, port: int, environ: dict[str, str]) -> bool:
    asked = subprocess.run(
        [server.with_name("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)],
        env={**os.environ, **environ},
        check=False,
    )
    return asked.returncode == 0
