"""A right spec, how tests change it, and the one sentence it is refused by."""

import copy
from typing import Any

import pytest

from windowing.errors import SpecError
from windowing.spec.load import load_pipeline

GONE = object()
RIGHT: dict[str, Any] = {
    "name": "departures",
    "lake": "/data/lake",
    "source": {"table": "/data/bronze/flights", "event_time": "departed_at", "key": ["origin"]},
    "watermark": {"delay": "10 minutes", "allowed_lateness": "forever"},
    "aggregates": {"flights": "count()", "worst": "max(delay)"},
    "windows": {
        "hourly": {"kind": "tumbling", "size": "1 hour"},
        "rolling": {"kind": "sliding", "size": "3 hours", "slide": "15 minutes"},
        "busy": {"kind": "session", "gap": "30 minutes"},
    },
    "schedule": "*/15 * * * *",
    "expectations": {"suite": "departures"},
    "retention": {"state": "forever"},
}
KINDS: dict[str, dict[str, Any]] = {
    "tumbling": {"size": "1 hour"},
    "sliding": {"size": "3 hours", "slide": "15 minutes"},
    "cumulate": {"max_size": "1 day", "step": "1 hour"},
    "session": {"gap": "30 minutes"},
    "record_sliding": {"difference": "10 seconds"},
    "count": {"count": 100},
    "delta": {"attribute": "miles", "delta": 10},
    "punctuation": {"marker": "landed"},
    "global": {},
}
"""Every kind of window with the fields it has to have."""


def changed(**paths: Any) -> dict[str, Any]:
    """RIGHT with some fields set or, if GONE, removed.

    A path is written with / between its steps.
    """
    spec = copy.deepcopy(RIGHT)
    for path, value in paths.items():
        *steps, last = path.split("/")
        at = spec
        for step in steps:
            at = at[step]
        if value is GONE:
            del at[last]
        else:
            at[last] = value
    return spec


def with_window(kind: str, **fields: Any) -> dict[str, Any]:
    """RIGHT with one window, `w`, of `kind`; fields that are GONE are left out."""
    written = {"kind": kind, **KINDS[kind], **fields}
    return changed(
        windows={"w": {name: value for name, value in written.items() if value is not GONE}}
    )


def refused(spec: Any) -> SpecError:
    """The error of a wrong spec, which is one line without a library's own wording."""
    with pytest.raises(SpecError) as caught:
        load_pipeline(spec)
    text = str(caught.value)
    assert "\n" not in text and not text.endswith(".") and len(text) < 600
    assert not any(
        word in text.lower()
        for word in ("pydantic", "http", "traceback", "validation error", "input_", "document")
    )
    return caught.value
