"""A broker of Kafka on this machine, for the test of the recipe.

python -m tests.support.kafka_server      fetches its JARs and those of Spark's connector, once
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from jobs.sessions.jars import name_file
from jobs.setup import fetch_into
from tests.support.children import end_with_parent
from tests.support.fetched import fetch_or_tell
from tests.support.s3_server import find_free_port

PINNED: Mapping[str, Mapping[str, str]] = json.loads(
    Path(__file__).with_name("kafka_jars.json").read_text()
)
"""SHA-256 by Maven's coordinates: of the broker, and of what Spark reads it by."""
HOME = Path(__file__).parents[2] / ".tools" / "kafka"
_SPARK_JARS = Path(pyspark.__file__).parent / "jars"
_JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
_PATIENCE_S = 120


def class_path(part: str) -> str:
    """The JARs of the broker or of the connector, and Scala as Spark has it."""
    jars = [HOME / name_file(module) for module in PINNED[part]]
    return os.pathsep.join(map(str, [*jars, *_SPARK_JARS.glob("scala-library-*.jar")]))


@dataclass(frozen=True)
class Broker:
    """A broker that answers on a port of 127.0.0.1."""

    port: int

    @property
    def address(self) -> str:
        """What clients are given."""
        return f"127.0.0.1:{self.port}"

    def send(self, topic: str, records: Iterable[str]) -> None:
        """Appends records to a topic, which is made with two partitions."""
        words = ("--bootstrap-server", self.address, "--topic", topic)
        _run("org.apache.kafka.tools.ConsoleProducer", *words, typed="\n".join(records) + "\n")


def _command(name: str, *words: str) -> list[str]:
    return [*_JAVA, "-cp", class_path("broker"), name, *words]


def _run(name: str, *words: str, typed: str = "") -> None:
    subprocess.run(
        _command(name, *words),
        input=typed.encode(),
        check=True,
        capture_output=True,
        timeout=_PATIENCE_S,
    )


@contextmanager
def started_broker(home: Path) -> Iterator[Broker]:
    """Inside, a broker answers; `home` is an empty directory for all that it writes."""
    missing = [name for part in PINNED.values() for name in map(name_file, part)]
    if not all((HOME / name).is_file() for name in missing):
        pytest.skip("`python -m tests.support.kafka_server` fetches a broker of Kafka once")
    broker, controller = find_free_port(), find_free_port()
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": f"{home}/data",
        "offsets.topic.replication.factor": "1",
        "num.partitions": "2",
    }
    file = home / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    _run("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(file))
    with (home / "log").open("ab") as log:
        process = subprocess.Popen(
            _command("kafka.Kafka", str(file)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=end_with_parent(signal.SIGKILL),  # noqa: PLW1509 - tests have one thread
        )
    try:
        _await_port(process, broker)
        yield Broker(broker)
    finally:
        process.kill()
        process.wait()


def _await_port(process: "subprocess.Popen[bytes]", port: int) -> None:
    """Returns when a producer gets an answer."""
    words = ("--bootstrap-server", f"127.0.0.1:{port}", "--topic", "started")
    deadline = time.monotonic() + _PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            _run("org.apache.kafka.tools.ConsoleProducer", *words, typed="1\n")
        except subprocess.CalledProcessError:
            time.sleep(1)
        else:
            return
    raise AssertionError("no broker of Kafka has started")


def fetch() -> None:
    """Fetches the JARs of the broker and of Spark's connector."""
    HOME.mkdir(parents=True, exist_ok=True)
    for part in PINNED.values():
        names = {name_file(module): digest for module, digest in part.items()}
        fetch_into(HOME, part, names)


def main() -> int:
    """Fetches the JARs; returns 0 when they are there."""
    return fetch_or_tell(fetch)


if __name__ == "__main__":
    sys.exit(main())
