"""Random schedules over events in structs and arrays: the oracle's tables."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.oracle import Event
from tests.support.pipeline_under_test import Lab
from tests.support.random_schedules import Run, schedule
from tests.system.test_random_schedules import USUAL, play_schedule
from windowing.location import Location
from windowing.storage import delta


class NestedLab(Lab):
    """A lab whose events lie in structs; the spec names their fields by paths."""

    def spec(self) -> dict[str, Any]:
        """The spec of a lab with a path for each column."""
        plain = super().spec()
        source = plain["source"] | {
            "event_time": "event.head.ts",
            "key": ["event.key"],
            "order_by": ["event.seq"],
        }
        if self.ids:
            source["event_id"] = "event.head.id"
        calls = {
            name: call.replace("value", "event.body[0].value")
            for name, call in plain["aggregates"].items()
        }
        windows = {name: _by_path(window) for name, window in plain["windows"].items()}
        return plain | {"source": source, "aggregates": calls, "windows": windows}

    def land(self, events: Iterable[Event]) -> list[Event]:
        """Appends events as structs."""
        new, rows = self._take(events)
        nested = delta.rows(self.spark, rows, self.schema).selectExpr(
            "struct(struct(id, ts) as head, key, seq, attr, mark, array(struct(value)) as body)"
            " as event"
        )
        delta.append(nested, Location(str(self.home / "source")))
        return new


def _by_path(window: dict[str, Any]) -> dict[str, Any]:
    """The window with paths for the columns that end it."""
    columns = {field: window[field] for field in ("attribute", "marker") if field in window}
    return window | {field: f"event.{column}" for field, column in columns.items()}


def nested_schedules() -> list[int]:
    """The seeds of short schedules in which no column joins the source."""
    return [
        seed
        for seed in USUAL
        if not any(isinstance(step, Run) and step.alters for step in schedule(seed).steps)
    ]


@pytest.mark.deep
@pytest.mark.parametrize("seed", nested_schedules())
def test_nested_events_give_the_oracles_tables(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    play_schedule(schedule(seed), seed, spark, tmp_path, NestedLab)
