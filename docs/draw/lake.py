"""A pipeline in a lake of its own: events land, a run reads them, rows come back.

"10:02=4 10:07=1"  ->  events  ->  source table  ->  run  ->  rows of an output
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jobs.read import read
from jobs.run import run
from windowing.grid.zone import micros
from windowing.location import Location
from windowing.report.rule import RunReport
from windowing.spec.load import load_pipeline
from windowing.storage import delta

DAY = datetime(2026, 3, 2, tzinfo=UTC)
"""The Monday on which everything happens."""
NOON = DAY.replace(hour=12)
SCHEMA = "id string, key string, at timestamp, value double, mark boolean"
AGGREGATES = {"n": "count()", "total": "sum(value)", "opening": "first(value)"}
Row = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """A source row; one without a value is a marker."""

    at: datetime
    value: float | None
    key: str = "a"
    id: str | None = None


@dataclass(frozen=True)
class Lake:
    """A directory, and the pipeline whose tables lie there.

    `more` is what the spec says besides.
    """

    spark: SparkSession
    root: Path
    windows: Mapping[str, Any]
    watermark: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> dict[str, Any]:
        """The spec as a user would write it."""
        source = {
            "table": str(self.root / "events"),
            "event_time": "at",
            "key": ["key"],
            "event_id": "id",
        }
        return {
            "name": "shown",
            "lake": str(self.root),
            "source": source | dict(self.more),
            "watermark": dict(self.watermark),
            "aggregates": AGGREGATES,
            "windows": dict(self.windows),
        }

    def run(self, events: Sequence[Event], arrival: datetime) -> RunReport:
        """Lands `events` and runs the pipeline at `arrival`."""
        if events:
            rows = [_to_source_row(event) for event in events]
            delta.append(delta.rows(self.spark, rows, SCHEMA), Location(str(self.root / "events")))
        return run(self.spark, load_pipeline(self.spec), arrival)

    def rows(self, window: str, key: str | None = "a") -> list[Row]:
        """The rows of one output, of one key or all, with is_closed and is_final.

        Times are aware.
        """
        found = read(self.spark, load_pipeline(self.spec), window, published=False)
        if key is not None:
            found = found.where(found["key"] == key)
        rows = [_with_aware_times(row.asDict()) for row in found.collect()]
        return sorted(rows, key=_sort_place)

    def late(self) -> list[Row]:
        """What was kept of late, partly late, duplicate and quarantined rows."""
        found = []
        for name in ("_late", "_duplicates", "_quarantine"):
            table = Location(str(self.root / "shown" / name))
            if delta.exists(self.spark, Location(table.text)):
                for row in delta.read(self.spark, table).collect():
                    found.append(_with_aware_times(row.asDict(recursive=True)))
        return found


def events(text: str, key: str = "a") -> list[Event]:
    """The events that a line stands for.

    `10:02=4` is a value, `10:02=x` a marker, `03-08T04:30=1` is on another day, `e@10:02=4` has an
    id.

    >>> [e.value for e in events("10:02=4 e@10:07=x")]
    [4.0, None]
    """
    return [_parse_event(word, key) for word in text.split()]


def at(text: str) -> datetime:
    """An instant of the day, or of the year.

    >>> at("03-08T04:30").isoformat()
    '2026-03-08T04:30:00+00:00'
    """
    missing = f"{DAY:%Y}-" if "T" in text else f"{DAY:%Y-%m-%d}T"
    return datetime.fromisoformat(missing + text).replace(tzinfo=UTC)


def micros_of(row: Row, column: str) -> int | None:
    """Microseconds of a row's time."""
    return None if row[column] is None else micros(row[column])


def identify_row(row: Row) -> tuple[Any, ...]:
    """What tells a row from the others of its output."""
    if "window_index" in row:
        return (row["key"], row["window_index"])
    if "last_event" in row:
        # A session keeps its row when a later event moves its end.
        return (row["key"], row["window_start"])
    return (row["key"], row["window_start"], row["window_end"])


def deleted_rows(before: Iterable[Row], after: Iterable[Row]) -> list[Row]:
    """The rows of `before` whose window is not in `after`."""
    there = {identify_row(row) for row in after}
    return [row for row in before if identify_row(row) not in there]


def _parse_event(word: str, key: str) -> Event:
    place, _, value = word.partition("=")
    event_id, _, time = place.rpartition("@")
    number = None if value == "x" else float(value)
    return Event(at(time), number, key, event_id or None)


def _to_source_row(event: Event) -> Row:
    return {
        "id": event.id,
        "key": event.key,
        "at": event.at,
        "value": event.value,
        "mark": event.value is None,
    }


def _with_aware_times(values: Row) -> Row:
    # PySpark collects times without a zone; here they are UTC.
    row = {}
    for name, value in values.items():
        row[name] = value.replace(tzinfo=UTC) if isinstance(value, datetime) else value
    return row


def _sort_place(row: Row) -> tuple[Any, ...]:
    """Where a row stands among those of its output; a global window has no bounds."""
    return (
        row["key"],
        row["window_start"] or DAY,
        row["window_end"] or DAY,
        row.get("window_index", 0),
    )
