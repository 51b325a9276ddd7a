"""Where a stream over a Delta table stands, as the text that Spark keeps of it says. No Spark."""

from collections.abc import Mapping
from json import dumps, loads
from typing import Any


def read_next_version(offsets: str) -> int:
    """The version that the stream reads next where it stood at `offsets`, or reads the rest of."""
    return int(_parse_offset(offsets)["reservoirVersion"])


def read_version_at(offsets: str) -> int:
    """The version of the source that was read last where the stream stood at `offsets`."""
    offset = _parse_offset(offsets)
    version = int(offset["reservoirVersion"])
    # Once it has read a version to its end, Delta names the next one, with an index below 0.
    begun = int(offset["index"]) >= 0 or bool(offset["isStartingVersion"])
    return version if begun else version - 1


def is_inside_version(offsets: str) -> bool:
    """Whether a version was read in part, or was not seen to have been read to its end."""
    return int(_parse_offset(offsets)["index"]) >= 0


def is_inside_snapshot(offsets: str) -> bool:
    """The same of the version with which the stream began, of which it reads every row."""
    return bool(_parse_offset(offsets)["isStartingVersion"]) and is_inside_version(offsets)


def is_before_snapshot(offsets: str) -> bool:
    """Whether the stream stood before the first row of the version with which it began."""
    return bool(_parse_offset(offsets)["isStartingVersion"]) and not is_inside_version(offsets)


def move_to_end(offsets: str, version: int) -> str:
    """Where a stream that stood at `offsets` stands once it has read that version to its end."""
    *above, _ = offsets.splitlines()
    offset = dict(_parse_offset(offsets))
    end = {"reservoirVersion": version + 1, "index": -1}
    return "\n".join([*above, dumps({**offset, **end, "isStartingVersion": False})])


def _parse_offset(offsets: str) -> Mapping[str, Any]:
    """Where the stream stood, in Delta's fields."""
    # The lines before the last one are Spark's: a version and its own metadata.
    found: Mapping[str, Any] = loads(offsets.splitlines()[-1])
    return found
