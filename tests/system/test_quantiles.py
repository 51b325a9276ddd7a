"""Quantiles of whole lakes: the same whatever the runs, and unchanged by what changes nothing."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.backfill import backfill
from jobs.reconcile import check_range
from jobs.run import run
from tests.support.stored_rows import list_stored
from tests.windowing.aggregates.plain import quantile
from windowing.aggregates import sketches
from windowing.aggregates.sketches import EXACT
from windowing.report.rule import Changed
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta

SCHEMA = "id string, key string, ts timestamp, value bigint"
BEGIN = datetime(2026, 1, 5, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
ARRIVAL = BEGIN + 10 * HOUR
RANKS = {"p50": 0.5, "p95": 0.95, "p999": 0.999}
WINDOWS: dict[str, dict[str, Any]] = {
    "hourly": {"kind": "tumbling", "size": "1 hour"},
    "closed": {"kind": "tumbling", "size": "1 hour", "emit": "on_close"},
    "rolling": {"kind": "sliding", "size": "1 hour", "slide": "20 minutes"},
    "visits": {"kind": "session", "gap": "10 minutes"},
    "counted": {"kind": "count", "count": 1_000},
    "everything": {"kind": "global"},
}
HOURS = {("many", 0): 6_000, ("many", 1): 3_000, ("some", 0): 1_000, ("some", 1): EXACT}
"""How many events each hour of each key has."""
Event = dict[str, Any]


def events() -> list[Event]:
    """The events in no order; no two of a key have the same time."""
    rng = Random(41)
    found = [
        {
            "id": f"{key}-{hour}-{n}",
            "key": key,
            "ts": BEGIN + hour * HOUR + n * (HOUR / count),
            "value": round(rng.lognormvariate(5, 1)),
        }
        for (key, hour), count in HOURS.items()
        for n in range(count)
    ]
    return rng.sample(found, len(found))


EVENTS = events()


class Lake:
    """A pipeline in a lake of its own; it has the windows of these names."""

    def __init__(self, spark: SparkSession, root: Path, *windows: str) -> None:
        spec = {
            "name": "quantiles",
            "lake": str(root / "lake"),
            "source": {
                "table": str(root / "source"),
                "event_time": "ts",
                "key": ["key"],
                "event_id": "id",
            },
            "watermark": {"delay": "0 seconds", "allowed_lateness": "forever"},
            "aggregates": {name: f"quantile(value, {rank})" for name, rank in RANKS.items()},
            "windows": {name: WINDOWS[name] for name in windows},
        }
        self.windows = windows
        self.spark = spark
        self.pipeline: Pipeline = load_pipeline(spec)

    def run(self, new: Sequence[Event]) -> None:
        """Lands events and runs."""
        rows = delta.rows(self.spark, list(new), SCHEMA)
        delta.append(rows, self.pipeline.source.table)
        report = run(self.spark, self.pipeline, ARRIVAL)
        assert report.accepted == len(new)

    def rows(self, window: str) -> list[dict[str, Any]]:
        """The rows of an output in order, without what is said of their history."""
        rows = list_stored(self.spark, self.pipeline.table(window))
        shown = [{k: v for k, v in row.items() if k not in ("revision", "run")} for row in rows]
        return sorted(shown, key=str)

    def outputs(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of all outputs."""
        return {window: self.rows(window) for window in self.windows}


def values_of(row: dict[str, Any]) -> list[int]:
    """The values of the events of a window, in order."""
    start, end = row.get("window_start"), row.get("window_end")
    return sorted(
        event["value"]
        for event in EVENTS
        if event["key"] == row["key"]
        and (start is None or start.replace(tzinfo=UTC) <= event["ts"])
        and (end is None or event["ts"] < end.replace(tzinfo=UTC))
    )


def check(outputs: dict[str, list[dict[str, Any]]], error: float, exact: int = EXACT) -> None:
    """Every quantile of at most `exact` values is that of a loop, and all others are near it."""
    for rows in outputs.values():
        assert rows
        for row in rows:
            values = values_of(row)
            for name, rank in RANKS.items():
                if len(values) <= exact:
                    assert row[name] == quantile(values, rank), (row, len(values))
                else:
                    low = bisect_left(values, row[name]) / len(values)
                    high = bisect_right(values, row[name]) / len(values)
                    assert low - error <= rank <= high + error, (row, len(values))


def parts_of_events(number: int) -> list[list[Event]]:
    """The events in so many parts."""
    return [EVENTS[n::number] for n in range(number)]


@pytest.mark.deep
def test_runs_and_backfills_change_no_quantile(spark: SparkSession, tmp_path: Path) -> None:
    at_once = Lake(spark, tmp_path / "once", *WINDOWS)
    in_parts = Lake(spark, tmp_path / "parts", *WINDOWS)
    at_once.run(EVENTS)
    for part in parts_of_events(3):
        in_parts.run(part)
    found, others = at_once.outputs(), in_parts.outputs()
    check(found, 0.002)
    check(others, 0.005)
    report = backfill(spark, in_parts.pipeline, BEGIN, BEGIN + 2 * HOUR)
    changes = {name: report.windows.get(name, Changed()) for name in WINDOWS}
    assert changes == dict.fromkeys(WINDOWS, Changed())
    assert in_parts.outputs() == others
    assert check_range(spark, in_parts.pipeline, BEGIN, BEGIN + HOUR).agrees


@pytest.mark.deep
def test_state_of_earlier_releases_goes_on_and_a_backfill_makes_it_exact(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(spark, tmp_path, "hourly", "rolling")
    first, second, third = parts_of_events(3)
    # Earlier releases took Spark's default, which is the same sketch.
    with monkeypatch.context() as earlier:
        earlier.setattr(sketches, "EXACT", 200)
        lake.run(first)
        lake.run(second)
    lake.run(third)
    check(lake.outputs(), 0.03, exact=0)
    assert not check_range(spark, lake.pipeline, BEGIN, BEGIN + 2 * HOUR).agrees
    backfill(spark, lake.pipeline, BEGIN, BEGIN + 2 * HOUR)
    check(lake.outputs(), 0.005)
