"""Specs whose digests are pinned: the shipped ones, and one with each kind, aggregate and policy.

The digests of release 0.1 in tests/data/digests-0.1.json are of these same specs, made by that
release.
"""

from pathlib import Path
from typing import Any

from tests.windowing.spec.specs import changed, with_window
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline

SHIPPED = sorted((Path(__file__).parents[3] / "pipelines").glob("*.yaml"))
CALLS = {
    "n": "count()",
    "total": "sum(delay)",
    "least": "min(delay)",
    "mean": "avg(delay)",
    "spread": "stddev(delay)",
    "square": "variance(delay)",
    "planes": "count_distinct(tail)",
    "p50": "median(delay)",
    "p95": "quantile(delay, 0.95)",
    "gates": "top_k(gate, 3)",
    "some": "collect(gate, 10)",
    "opening": "first(gate)",
    "closing": "last(gate)",
    "early": "min_by(gate, delay)",
    "late": "max_by(gate, delay)",
    "flown": "count_if(landed)",
    "worst_far": {"call": "max(delay)", "where": "distance > 1000 and gate is not null"},
}
WRITTEN: dict[str, dict[str, Any]] = {
    "right": changed(),
    "calls": changed(aggregates=CALLS),
    "source": changed(
        **{
            "source/event_time": {"column": "at", "unit": "ms"},
            "source/key": ["origin", "dest"],
            "source/event_id": "id",
            "source/order_by": ["seq", "tail"],
            "source/on_bad_value": "null",
            "source/columns": {"gain": "air_time - delay", "far": "distance > 1000"},
            "source/where": "distance > 0",
            "source/changes": "feed",
        }
    ),
    "files": changed(
        **{
            "source/files": {"folder": "/drop", "columns": "/columns.yaml"},
            "source/batch": {"rows": 5_000_000, "bytes": "2 GB"},
        }
    ),
    "nested": changed(
        aggregates={
            "n": {"call": "count()", "where": "trip.kind = 'taxi'"},
            "miles": "sum(`Miles flown`)",
            "last": "max_by(trip.stops[0], trip.fare)",
        },
        **{
            "source/event_time": "trip.at",
            "source/key": ["trip.rider.country"],
            "source/event_id": "trip.id",
            "source/columns": {"kilometres": "1.6 * trip.miles"},
        },
    ),
    "nested marker": with_window("punctuation", marker="trip.done"),
    "zoned source": changed(**{"source/zone": "Europe/Berlin"}),
    "arrival": changed(**{"source/event_time": "arrival"}),
    "watermark": changed(
        watermark={
            "delay": "5 minutes",
            "allowed_lateness": "1 day",
            "max_future": "2 hours",
            "dedupe_horizon": "3 days",
            "idle_after": "15 minutes",
        },
        retention={"state": "10 days", "refused": "30 days", "output": "1 year"},
    ),
    "watched": changed(
        freshness="45 minutes",
        alarms={
            "quarantined": 0.1,
            "lost_values": 0.01,
            "max_age": "2 years",
            "rows_factor": 20,
        },
    ),
    "tumbling zone": with_window("tumbling", size="1 day", zone="America/New_York", empty=True),
    "tumbling offset": with_window(
        "tumbling", offset="-5 minutes", emit="on_close", having="flights >= 3"
    ),
    "tumbling months": with_window(
        "tumbling", size="3 months", origin="2024-02-01", change_feed=False
    ),
    "sliding": with_window("sliding", zone="Asia/Kolkata", emit="changes"),
    "sliding as tumbling": with_window(
        "sliding", size="1 hour", slide="1 hour", empty=True, empty_limit=10
    ),
    "cumulate": with_window("cumulate", max_size="1 month", step="1 day", zone="Europe/Berlin"),
    "session": with_window("session", having="worst > 1.5"),
    "capped": with_window("session", max_duration="2 hours", emit="on_close"),
    "record": with_window("record_sliding", tick="1 second"),
    "count": with_window("count", every=10),
    "delta": with_window("delta"),
    "delta of time": with_window("delta", attribute="at", delta="10 seconds"),
    "punctuation": with_window("punctuation"),
    "global": with_window("global"),
}


def kept() -> dict[str, Pipeline]:
    """Every spec by its name here."""
    shipped = {file.name: load_pipeline(str(file)) for file in SHIPPED}
    return shipped | {name: load_pipeline(spec) for name, spec in WRITTEN.items()}
