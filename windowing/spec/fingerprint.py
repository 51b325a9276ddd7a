"""What of a spec decides its numbers, as short texts: two specs with the same ones share state.

    Spec -> parts, one digest for each thing that can be added and removed by itself -> fingerprint, one digest of all
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from windowing.spec.pipeline import Pipeline

_FREE = ("file", "schedule", "suite", "lake", "retention")
AGGREGATE = " aggregate "
"""Between the name of a window and that of its aggregate in the name of a part."""


def fingerprint(pipeline: Pipeline) -> str:
    """A digest of every part of the spec that state and outputs depend on; where tables lie is no part of it."""
    return _digest(sorted(parts(pipeline).items()))


def parts(pipeline: Pipeline) -> dict[str, str]:
    """A digest of each part: `source`, `watermark`, `windows.{name}` and `windows.{name} aggregate {name}`."""
    rest = {name: value for name, value in asdict(pipeline).items() if name not in (*_FREE, "windows")}
    source = {name: value for name, value in rest.pop("source").items() if name not in ("table", "changes")}
    found = {"watermark": _digest(rest.pop("watermark")), "source": _digest([source, rest])}
    for window in pipeline.windows:
        place = f"windows.{window.name}"
        found[place] = _digest([type(window).__name__, _deciding(asdict(window))])
        found |= {f"{place}{AGGREGATE}{a.name}": _digest(asdict(a)) for a in window.aggregates}
    return found


@dataclass(frozen=True)
class Evolution:
    """How one spec differs from another: the names of parts that came, that went, and that are not what they were."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def evolution(before: Mapping[str, str], after: Mapping[str, str]) -> Evolution:
    """From the parts of one spec to those of another."""
    return Evolution(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=tuple(name for name in after if before.get(name, after[name]) != after[name]),
    )


def _deciding(window: dict[str, Any]) -> dict[str, Any]:
    """Whether windows without events are shown, not how many a run may add; and no change feed, which records rows but makes none."""
    shown = window["shown"]
    told = {"emit": shown["emit"], "having": shown["having"], "empty": shown["empty_limit"] is not None}
    return {name: value for name, value in window.items() if name != "aggregates"} | {"shown": told}


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
