"""Storage that machines share, as the tests of whole pipelines have it: a server and a session."""

from dataclasses import dataclass
from random import Random
from typing import Protocol

from pyspark.sql import SparkSession

from tests.support.long_lived_pipeline import MINUTE, WINDOWS, Life
from tests.support.pipeline_under_test import FEW, Lab
from windowing.location import Location

LEASES = {"s3": 6.0, "hdfs": 12.0}
"""Seconds of a lease; a renewal on HDFS writes a file, and takes longer than one of S3."""
ODD_NAMES = {"s3": "a lake", "hdfs": "a=lake"}
"""Of a directory: it is escaped in URLs of S3, and HDFS allows few such characters."""


class StorageServer(Protocol):
    """A server that keeps its files when it is killed."""

    def make_home(self) -> str:
        """The URL of a directory that nobody else has."""

    def kill(self) -> None:
        """Ends it as a lost machine ends."""

    def start(self) -> None:
        """Brings it back with all its files."""


@dataclass(frozen=True)
class SharedStorage:
    """A server of a kind, and a session that reaches it."""

    kind: str
    server: StorageServer
    session: SparkSession

    @property
    def lease_seconds(self) -> float:
        """How long a lease is to be valid."""
        return LEASES[self.kind]

    def make_home(self) -> Location:
        """A directory that nobody else has."""
        return Location(self.server.make_home())

    def make_life(self, rng: Random) -> Life:
        """A pipeline of few events, of which nothing has come yet."""
        home, delay = self.make_home(), 10 * MINUTE
        lab = Lab(self.session, home, WINDOWS[:2], lateness=240 * MINUTE, delay=delay, shows=FEW)
        return Life(lab, rng)
