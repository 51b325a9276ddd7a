"""Counts what a run costs: Spark jobs, Delta commits, calls over the bridge, compiled classes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.clientserver import ClientServerConnection
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import SparkSession

from windowing.location import Location
from windowing.storage.files import newest_version


@dataclass(frozen=True)
class Cost:
    """What a run needed.

    `calls` are those from Python to the JVM, without those that only free memory. `classes` are
    those that Spark generated and compiled.
    """

    jobs: int = 0
    commits: int = 0
    calls: int = 0
    classes: int = 0

    def __sub__(self, before: "Cost") -> "Cost":
        return Cost(
            self.jobs - before.jobs,
            self.commits - before.commits,
            self.calls - before.calls,
            self.classes - before.classes,
        )


@dataclass
class Meter:
    """Counts in a session, and in the tables of a lake."""

    spark: SparkSession
    lake: Path
    calls: int = 0
    _begun: Cost = field(default_factory=Cost)

    def start(self) -> None:
        """Counts from here on."""
        self._begun = self._read()

    def stop(self) -> Cost:
        """What was needed since the start."""
        return self._read() - self._begun

    def _read(self) -> Cost:
        # Reading makes calls itself.
        calls = self.calls
        return Cost(self._find_last_job(), self._count_commits(), calls, self._count_classes())

    def _find_last_job(self) -> int:
        """The number of the newest job; they are numbered through."""
        java: Any = self.spark.sparkContext._jsc
        context = java.sc()
        context.listenerBus().waitUntilEmpty()
        jobs = context.statusStore().jobsList(None)
        numbers = [jobs.apply(place).jobId() for place in range(jobs.size())]
        return max(numbers, default=-1)

    def _count_commits(self) -> int:
        versions = [
            newest_version(Location(str(log.parent))) for log in self.lake.rglob("_delta_log")
        ]
        return sum(version + 1 for version in versions if version is not None)

    def _count_classes(self) -> int:
        java: Any = self.spark._jvm
        metrics = java.org.apache.spark.metrics.source.CodegenMetrics
        return int(metrics.METRIC_COMPILATION_TIME().getCount())


@contextmanager
def metered(spark: SparkSession, lake: Path) -> Iterator[Meter]:
    """A meter that sees every call over the bridge inside the block."""
    meter = Meter(spark, lake)
    send = ClientServerConnection.send_command

    def counted(self: Any, command: str) -> Any:
        if not command.startswith(MEMORY_COMMAND_NAME):
            meter.calls += 1
        return send(self, command)

    # Every connection of this process is counted, so only one meter may run.
    ClientServerConnection.send_command = counted
    try:
        yield meter
    finally:
        ClientServerConnection.send_command = send
