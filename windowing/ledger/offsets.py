"""Where a stream over a Delta table stands, as the text that Spark keeps of it says. No Spark."""

from collections.abc import Mapping
from json import loads
from typing import Any


def read_version_at(offsets: str) -> int:
    """The version of the source that was read last where the stream stood at `offsets`."""
    offset = parse_offset(offsets)
    version = int(offset["reservoirVersion"])
    # Once it has read a version to its end, Delta names the next one, with an index below 0.
    begun = int(offset["index"]) >= 0 or bool(offset["isStartingVersion"])
    return version if begun else version - 1


def parse_offset(offsets: str) -> Mapping[str, Any]:
    """Where the stream stood, in Delta's fields."""
    # The lines before the last one are Spark's: a version and its own metadata.
    found: Mapping[str, Any] = loads(offsets.splitlines()[-1])
    return found
