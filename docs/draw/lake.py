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
from windowing import delta
from windowing.grid.zone import micros
from windowing.report.rule import RunReport
from windowing.spec.load import load_pipeline

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
            rows = [
                {"id": e.id, "key": e.key, "at": e.at, "value": e.value, "mark": e.value is None}
                for e in events
            ]
            delta.append(delta.rows(self.spark, rows, SCHEMA), str(self.root / "events"))
        return run(self.spark, load_pipeline(self.spec), arrival)

    def rows(self, window: str, key: str | None = "a") -> list[Row]:
        """The rows of one output, of one key or all, with is_closed and is_final.

        Times are aware.
        """
        found = read(self.spark, load_pipeline(self.spec), window, published=False)
        kept = found if key is None else found.where(found["key"] == key)
        return sorted(
            ({n: _aware(v) for n, v in row.asDict().items()} for row in kept.collect()), key=_place
        )

    def late(self) -> list[Row]:
        """What was kept of late, partly late, duplicate and quarantined rows."""
        tables = [
            str(self.root / "shown" / name) for name in ("_late", "_duplicates", "_quarantine")
        ]
        kept = [
            delta.read(self.spark, table).collect()
            for table in tables
            if delta.exists(self.spark, table)
        ]
        return [
            {n: _aware(v) for n, v in row.asDict(recursive=True).items()}
            for rows in kept
            for row in rows
        ]


def events(text: str, key: str = "a") -> list[Event]:
    """The events that a line stands for.

    `10:02=4` is a value, `10:02=x` a marker, `03-08T04:30=1` is on another day, `e@10:02=4` has an
    id.

    >>> [e.value for e in events("10:02=4 e@10:07=x")]
    [4.0, None]
    """
    return [_event(word, key) for word in text.split()]


def at(text: str) -> datetime:
    """An instant of the day, or of the year.

    >>> at("03-08T04:30").isoformat()
    '2026-03-08T04:30:00+00:00'
    """
    day = f"{DAY:%Y-%m-%d}T" if "T" not in text else f"{DAY:%Y}-"
    return datetime.fromisoformat(day + text).replace(tzinfo=UTC)


def us(row: Row, column: str) -> int | None:
    """Microseconds of a row's time."""
    return None if row[column] is None else micros(row[column])


def identity(row: Row) -> tuple[Any, ...]:
    """What tells a row from the others of its output."""
    if "window_index" in row:
        return (row["key"], row["window_index"])
    return (row["key"], row["window_start"], *(() if "last_event" in row else (row["window_end"],)))


def deleted(before: Iterable[Row], after: Iterable[Row]) -> list[Row]:
    """The rows of `before` whose window is not in `after`."""
    there = {identity(row) for row in after}
    return [row for row in before if identity(row) not in there]


def _event(word: str, key: str) -> Event:
    place, _, value = word.partition("=")
    name, _, time = place.rpartition("@")
    return Event(at(time), None if value == "x" else float(value), key, name or None)


def _aware(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def _place(row: Row) -> tuple[Any, ...]:
    return (
        row["key"],
        row["window_start"] or DAY,
        row["window_end"] or DAY,
        row.get("window_index", 0),
    )
