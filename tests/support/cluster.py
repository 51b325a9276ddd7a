"""A standalone cluster of two workers on 127.0.0.1, made of the Spark that is installed here.

Its master accepts whoever knows the cluster's secret, which only stands in a file of settings.
Its workers have the variables of an S3 server, and so have the executors that they start.
"""

import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyspark
from pyspark.sql import SparkSession

from tests.support.children import end_with_parent
from tests.support.s3_server import S3Server

_Found = TypeVar("_Found")
SPARK = Path(pyspark.__file__).parent
WORKERS = 2
_PATIENCE = 120.0
"""How many seconds a process may take to come up."""
_MASTER_UP = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_UP = re.compile(r"Successfully registered with master")
_FAILING_PYTHON = """\
#!/bin/sh
touch "{note}"
exit 1
"""


@dataclass(frozen=True)
class Cluster:
    """Where the master listens, the workers, a directory with settings and logs, and an S3."""

    url: str
    workers: tuple[subprocess.Popen[bytes], ...]
    home: Path
    s3: S3Server

    @property
    def secret(self) -> str:
        """What the cluster knows its sessions by."""
        return (self.home / "secret").read_text()

    @property
    def python(self) -> Path:
        """A program that fails, for executors to take for Python."""
        return self.home / "python"

    @property
    def python_was_called(self) -> bool:
        """Whether an executor has called it."""
        return (self.home / "called").exists()

    def forget_python(self) -> None:
        """As if no executor had called it."""
        (self.home / "called").unlink()

    def variables(self) -> dict[str, str]:
        """The environment of a process with a session on the cluster."""
        return {
            **os.environ,
            **self.s3.environ,
            "SPARK_CONF_DIR": str(self.home / "conf"),
            "SPARK_MASTER": self.url,
            "TIDEMARK_ENGINE": "off",
        }

    def executors(self) -> list[int]:
        """The processes of all executors that run now: the children of the workers."""
        workers = {worker.pid for worker in self.workers}
        running = (int(file.name) for file in Path("/proc").iterdir() if file.name.isdecimal())
        return sorted(pid for pid in running if _parent(pid) in workers)

    def kill_executor(self) -> int:
        """Kills the oldest executor; returns its process once that has gone.

        The worker starts another one for it, and this waits for none.
        """
        began = {pid: _begun(pid) for pid in self.executors()}
        oldest = min(began, key=began.__getitem__)
        os.kill(oldest, signal.SIGKILL)
        _wait(lambda: oldest not in self.executors(), f"end of executor {oldest}")
        return oldest

    def wait_for_executors(self, session: SparkSession) -> list[int]:
        """The executors, once there is one for each worker, and the session's driver knows them."""
        driver = session.sparkContext._jsc.sc()

        def complete() -> list[int] | None:
            found = self.executors()
            # The driver is among those that it knows.
            known = len(driver.statusTracker().getExecutorInfos()) - 1
            return found if len(found) == known == WORKERS else None

        return _wait(complete, "executors")


@contextmanager
def serve_cluster(home: Path, s3: S3Server) -> Iterator[Cluster]:
    """A cluster that ends with the block; it listens on free ports of 127.0.0.1 alone.

    No setting has the keys of `s3`: executors have them of their workers.
    """
    secret = secrets.token_hex(16)
    (home / "conf").mkdir()
    _write_secret(home / "secret", secret)
    _write_secret(home / "conf" / "spark-defaults.conf", _settings(secret))
    python = home / "python"
    python.write_text(_FAILING_PYTHON.format(note=home / "called"))
    python.chmod(0o755)
    with ExitStack() as ended:
        master = ("master.Master", "--port", "0", "--webui-port", "0")
        log, _ = _start(ended, home, {}, "master", *master)
        url = _wait(lambda: _MASTER_UP.search(log.read_text()), "master")[1]
        workers = []
        for n in range(WORKERS):
            words = ("--cores", "2", "--memory", "3g", "--webui-port", "0")
            place = ("--work-dir", str(home / f"worker{n}.dir"))
            program = (f"worker{n}", "worker.Worker", url, *words, *place)
            log, process = _start(ended, home, s3.environ, *program)
            _wait(lambda log=log: _WORKER_UP.search(log.read_text()), f"worker {n}")
            workers.append(process)
        yield Cluster(url, tuple(workers), home, s3)


def _settings(secret: str) -> str:
    """The settings of all processes of the cluster, sessions included."""
    chosen: Mapping[str, str] = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secret,
        "spark.network.crypto.enabled": "true",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        # Two sessions at once have an executor on each worker.
        "spark.executor.memory": "1g",
        "spark.executor.cores": "1",
        "spark.cores.max": str(WORKERS),
        "spark.ui.enabled": "false",
    }
    return "".join(f"{name} {value}\n" for name, value in chosen.items())


def _write_secret(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text)


def _start(
    ended: ExitStack, home: Path, more: Mapping[str, str], name: str, program: str, *words: str
) -> tuple[Path, subprocess.Popen[bytes]]:
    """Starts a process that ends with the block, or with this process; its log and itself."""
    log = home / f"{name}.log"
    variables = {
        **os.environ,
        **more,
        "SPARK_HOME": str(SPARK),
        "SPARK_CONF_DIR": str(home / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "300m",
        "SPARK_LOCAL_DIRS": str(home / f"{name}.dir"),
    }
    command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", *words]
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1"],
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=ended.enter_context(log.open("wb")),
        preexec_fn=end_with_parent(signal.SIGTERM),  # noqa: PLW1509
    )
    ended.callback(process.wait, 30)
    ended.callback(process.terminate)
    return log, process


def _parent(pid: int) -> int | None:
    """The parent of a process; None where it has ended, whether or not that was noticed."""
    try:
        state, parent = _read_stat(pid)[:2]
    except OSError:
        return None
    return None if state == "Z" else int(parent)


def _begun(pid: int) -> int:
    """When the process was started, in ticks since the machine was."""
    return int(_read_stat(pid)[19])


def _read_stat(pid: int) -> list[str]:
    """What the kernel says of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _wait(found: Callable[[], _Found | None], what: str) -> _Found:
    """What `found` returns, once it is true."""
    until = time.monotonic() + _PATIENCE
    while not (value := found()):
        assert time.monotonic() < until, f"no {what} within {_PATIENCE:g} s"
        time.sleep(0.1)
    return value
