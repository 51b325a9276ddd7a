"""A process that does one step of a pipeline and is killed at the nth named place it comes to.

Itself, its JVM, or its process group.

python -m tests.support.killed_process SPEC NTH python|jvm|group run|ingest|backfill [FROM TO]
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock

from pyspark.sql import SparkSession
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from jobs.backfill import backfill
from jobs.ingest import ingest
from jobs.run import run
from jobs.session import spark_session
from jobs.sessions.process import stay_on_utc
from jobs.sessions.profiles import TEST
from windowing.crash import armed
from windowing.errors import Busy
from windowing.grid.zone import moment
from windowing.spec.load import load_pipeline

ARRIVAL = moment(1_893_456_000_000_000)
PATIENCE = 60
"""Seconds after which the JVM of a killed process must have gone."""


@dataclass
class Killer:
    """Kills at the nth place of all that are passed.

    Or the nth time `place` is, in whatever thread.
    """

    spark: SparkSession
    nth: int
    whom: str
    place: str | None = None
    seen: int = 0
    turn: Lock = field(default_factory=Lock)

    def __call__(self, name: str) -> None:
        if self.place not in (None, name):
            return
        with self.turn:
            self.seen += 1
            if self.seen != self.nth:
                return
        print(name, flush=True)
        self._kill()

    def _kill(self) -> None:
        if self.whom == "python":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.whom == "group":
            os.killpg(os.getpgid(0), signal.SIGKILL)
        else:
            os.kill(jvm_of(self.spark), signal.SIGKILL)


@retry(
    retry=retry_if_exception_type(Busy),
    wait=wait_fixed(0.2),
    stop=stop_after_delay(PATIENCE),
    reraise=True,
)
def patiently(step: Callable[[], object]) -> None:
    """Does the step as soon as the lock is free.

    What a killed process had started may hold it for a moment.
    """
    step()


def light(home: Path) -> dict[str, str]:
    """The environment of a process whose Spark has the settings for little data.

    They hold as far as it makes none itself, and lie in `home`.

    They are named as a file: SPARK_CONF_DIR would lie on the JVM's class path, which then is not
    that of the class archive.
    """
    return {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": f"--properties-file {_settings(home)} pyspark-shell",
    }


def start(home: Path, spec: Path, nth: int, whom: str, step: str) -> "subprocess.Popen[str]":
    """Such a process, of a group of its own; its settings lie in `home`."""
    words = (str(spec), str(nth), whom, step)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.killed_process", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=light(home),
        start_new_session=True,
    )


@cache
def _settings(folder: Path) -> Path:
    """The file with the settings, written once.

    A process may be reading it while another is started.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (file := folder / "spark.conf").write_text(
        "".join(f"{name} {value}\n" for name, value in TEST.items())
    )
    return file


def jvm_of(spark: SparkSession) -> int:
    """The process id of the session's JVM."""
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())


def main(spec: str, nth: str, whom: str, step: str, *bounds: str) -> None:
    """Does the step."""
    stay_on_utc()
    spark, pipeline = (
        spark_session("killed", **TEST),
        load_pipeline(json.loads(Path(spec).read_text())),
    )
    with armed(Killer(spark, int(nth), whom)):
        if step == "run":
            run(spark, pipeline, ARRIVAL)
        elif step == "ingest":
            ingest(spark, pipeline)
        else:
            backfill(spark, pipeline, *(moment(int(us)) for us in bounds))


if __name__ == "__main__":
    main(*sys.argv[1:])
