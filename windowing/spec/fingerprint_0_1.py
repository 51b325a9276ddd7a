"""Digests as release 0.1 made them, so that the pipelines it has begun go on.

Release 0.1 hashed Python's own text of a part: class names, and every field in its order, those
without a value too. Both are written down here and stay as they are. A field that came later is
added to that text when it is set, and a part that has one differs from whatever 0.1 has stored.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from windowing.spec.stored_form import AGGREGATE, SOURCE, WINDOW, Part

# A kind that came after release 0.1 is not among them, and no digest of that release has it.
_CLASSES = {
    "tumbling": "Tumbling",
    "sliding": "Sliding",
    "cumulate": "Cumulate",
    "session": "Session",
    "capped_session": "CappedSession",
    "record_sliding": "RecordSliding",
    "count": "Count",
    "delta": "Delta",
    "punctuation": "Punctuation",
    "global": "Global",
}
_GRID = {"step_us": 0, "months": 0, "origin_us": 0, "zone": None, "inner_us": 0, "inner_months": 0}
_AGGREGATE = dict.fromkeys(("name", "function", "column", "argument", "by", "where"))
_EVENT_TIME = dict.fromkeys(("column", "unit"))
_SOURCE: Mapping[str, Any] = {
    "event_time": None,
    "key": (),
    "zone": None,
    "event_id": None,
    "order_by": (),
    "on_bad_value": "quarantine",
    "columns": (),
    "where": None,
}
_WATERMARK = dict.fromkeys(
    ("delay_us", "allowed_lateness_us", "max_future_us", "dedupe_horizon_us", "idle_after_us")
)
_SHOWN = {"emit": "on_change", "having": None, "empty": False}


def digest_0_1(part: Part) -> str:
    """The digest that release 0.1 stored of such a part."""
    return hashlib.sha256(repr(_as_0_1(part)).encode()).hexdigest()[:16]


def _as_0_1(part: Part) -> Any:
    """What release 0.1 took the text of."""
    match part.kind:
        case kind if kind == SOURCE:
            source = _filled(_SOURCE, part.described["source"])
            source["event_time"] = _filled(_EVENT_TIME, source["event_time"])
            return [source, part.described["pipeline"]]
        case kind if kind == WINDOW:
            return _window(part.described)
        case kind if kind == AGGREGATE:
            return _filled(_AGGREGATE, part.described)
    return _filled(_WATERMARK, part.described)


def _window(described: Mapping[str, Any]) -> list[Any]:
    found = {name: value for name, value in described.items() if name not in ("kind", "shown")}
    if "grid" in found:
        found["grid"] = _filled(_GRID, found["grid"])
    return [
        _CLASSES.get(described["kind"], described["kind"]),
        {**found, "shown": _filled(_SHOWN, described.get("shown", {}))},
    ]


def _filled(known: Mapping[str, Any], described: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that 0.1 knew, in its order and with its defaults, then whatever came later."""
    return {**known, **described}
