"""The JARs of a session: those that are fetched once for each environment, and our own."""

import json
from collections.abc import Mapping
from pathlib import Path

import windowing.storage.java

PINNED: Mapping[str, str] = json.loads(Path(__file__).with_name("jars.json").read_text())
"""SHA-256 by Maven's coordinates: Delta, and what Hadoop speaks S3 by.

Of AWS's SDK these are the parts that Hadoop's s3a loads. All of it is one JAR of 640 MB.
"""
LOG_STORES = Path(windowing.storage.java.__path__[0]) / "log-stores.jar"
"""The log stores by which Delta commits; their sources lie beside it."""


def name_file(coordinates: str) -> str:
    """The name of a JAR.

    >>> name_file("io.delta:delta-storage:4.4.0")
    'delta-storage-4.4.0.jar'
    """
    _, artifact, version = coordinates.split(":")
    return f"{artifact}-{version}.jar"


JAR_NAMES = tuple(map(name_file, PINNED))
