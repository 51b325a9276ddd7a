"""The lines of a commit's file, and what they say that it has done. No Spark, no Arrow."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

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


def changed_files(actions: Actions, action: str) -> list[dict[str, Any]]:
    """The files of the actions of one name; OPTIMIZE changes files, but no data."""
    changed = []
    for each in actions:
        if action in each and each[action].get("dataChange", True):
            changed.append(each[action])
    return changed


def feed_files(actions: Actions) -> list[dict[str, Any]]:
    """The files of a commit's change feed; none where what it added and removed tells as much."""
    return [action["cdc"] for action in actions if "cdc" in action]
