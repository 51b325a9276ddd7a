"""The lines of a commit's file, and what they say that it has done. No Spark, no Arrow."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

_MILLISECOND = 1_000
"""What times of commits are counted in, in microseconds."""
LOG = "_delta_log"
"""The directory of a table that has its commits."""
Actions = Sequence[Mapping[str, Any]]
"""The lines of a commit."""


def parse_actions(text: str) -> list[dict[str, Any]]:
    """The actions of a commit whose JSON lines are `text`."""
    actions = []
    # Not splitlines: a text in the statistics may contain other ends of lines.
    for line in text.split("\n"):
        if line.strip():
            actions.append(json.loads(line))
    return actions


def find_time(actions: Actions) -> int | None:
    """When the commit was made, in microseconds; None where it does not tell.

    It is the commit's own timestamp, or else the clock of its writer.
    """
    for action in actions:
        info = action.get("commitInfo")
        if info is not None:
            at = info.get("inCommitTimestamp", info.get("timestamp"))
            return None if at is None else int(at) * _MILLISECOND
    return None
