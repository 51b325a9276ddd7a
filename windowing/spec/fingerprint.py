"""What of a spec decides its numbers, as one short text: two specs with the same fingerprint share state."""

import hashlib
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from windowing.spec.pipeline import Pipeline

_FREE = ("file", "schedule", "suite", "lake", "retention")


def fingerprint(pipeline: Pipeline) -> str:
    """A digest of every part of the spec that state and outputs depend on; where tables lie is no part of it."""
    parts = {name: value for name, value in asdict(pipeline).items() if name not in _FREE}
    parts["source"] = {name: value for name, value in parts["source"].items() if name != "table"}
    parts["windows"] = _by_name(_deciding(window) for window in parts["windows"])
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()[:16]


def _deciding(window: dict[str, Any]) -> dict[str, Any]:
    """Whether windows without events are shown, not how many a run may add; and no change feed, which records rows but makes none."""
    shown = window["shown"]
    told = {"emit": shown["emit"], "having": shown["having"], "empty": shown["empty_limit"] is not None}
    return window | {"shown": told, "aggregates": _by_name(window["aggregates"])}


def _by_name(parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a spec may name in any order."""
    return sorted(parts, key=lambda part: part["name"])
