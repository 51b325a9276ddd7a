"""A pipeline under test beside the oracle: the same events go to a Delta table and to the loops, then their tables are compared."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import isclose
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jobs.backfill import backfill
from jobs.run import run
from tests import oracle
from windowing import delta
from windowing.grid.zone import micros, moment
from windowing.report.rule import RunReport
from windowing.spec.load import load_pipeline

SCHEMA = "id string, key string, ts timestamp, value bigint, seq bigint"
AGGREGATES = {
    "n": "count()",
    "total": "sum(value)",
    "least": "min(value)",
    "most": "max(value)",
    "mean": "avg(value)",
    "distinct": "count_distinct(value)",
    "opening": "first(value)",
    "closing": "last(value)",
}
_ORACLE = {
    "n": "count",
    "total": "sum",
    "least": "min",
    "most": "max",
    "mean": "avg",
    "distinct": "distinct",
    "opening": "first",
    "closing": "last",
}
SECOND = 1_000_000
ARRIVAL = micros(datetime(2030, 1, 1, tzinfo=UTC))


def us(text: str) -> int:
    """Microseconds of an ISO time in UTC."""
    return micros(datetime.fromisoformat(text).replace(tzinfo=UTC))


@dataclass
class Lab:
    """One lake, one pipeline, one oracle. Durations are whole microseconds; `lateness` None is forever."""

    spark: SparkSession
    root: Path
    windows: tuple[oracle.Window, ...]
    lateness: int | None = None
    delay: int = 0
    ids: bool = True
    landed: list[oracle.Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.truth = oracle.Oracle(self.delay, self.lateness, 10**15, None, self.windows)
        self.pipeline = load_pipeline(self.spec())

    def spec(self) -> dict[str, Any]:
        """The spec as a user would write it."""
        lateness = "forever" if self.lateness is None else f"{self.lateness} microseconds"
        source = {"table": str(self.root / "source"), "event_time": "ts", "key": ["key"], "order_by": ["seq"]}
        return {
            "name": "lab",
            "lake": str(self.root / "lake"),
            "source": source | ({"event_id": "id"} if self.ids else {}),
            "watermark": {"delay": f"{self.delay} microseconds", "allowed_lateness": lateness, "max_future": f"{10**15} microseconds"},
            "aggregates": AGGREGATES,
            "windows": {w.name: _written(w) for w in self.windows},
        }

    def land(self, events: Iterable[oracle.Event]) -> list[oracle.Event]:
        """Appends events to the source table; without ids they lose theirs."""
        new = [e if self.ids else replace(e, id=None) for e in events]
        rows = [(e.id, e.key, None if e.t is None else moment(e.t), e.value, e.order) for e in new]
        delta.append(self.spark.createDataFrame(rows, SCHEMA).coalesce(1), str(self.root / "source"))
        self.landed += new
        return new

    def run(self, events: Iterable[oracle.Event]) -> RunReport:
        """Lands events, runs the pipeline and the oracle, and compares the counts."""
        new = self.land(events)
        report = run(self.spark, self.pipeline, moment(ARRIVAL))
        expected = self.truth.run(new, ARRIVAL)
        found = {name: getattr(report, name) for name in expected}
        assert found == expected, f"counts {found}, expected {expected}"
        assert report.read == report.accepted + report.late + report.duplicate + report.quarantined
        mark = None if self.truth.watermark is None else moment(self.truth.watermark)
        assert report.watermark == mark, f"watermark {report.watermark}, expected {mark}"
        return report

    def backfill(self, start: int, end: int) -> RunReport:
        """Backfills [start, end) in both."""
        report = backfill(self.spark, self.pipeline, moment(start), moment(end))
        self.truth.backfill(self.landed, start, end, ARRIVAL)
        return report

    def check(self) -> None:
        """Every output equals the oracle's table."""
        for window in self.windows:
            assert self.table(window.name) == _rounded(self.truth.table(window.name)), window

    def table(self, name: str) -> dict[tuple[str, int, int], dict[str, Any]]:
        """The rows of one output by (key, start, end), as the oracle names them."""
        rows = [row.asDict() for row in delta.read(self.spark, self.pipeline.table(name)).collect()]
        out = {(row["key"], _us(row["window_start"]), _us(row["window_end"])): _values(row) for row in rows}
        assert len(out) == len(rows), f"{name} has a window twice"
        return out


def _written(window: oracle.Window) -> dict[str, Any]:
    zone = {"zone": window.zone} if not isinstance(window, oracle.Session) and window.zone else {}
    if isinstance(window, oracle.Session):
        return {"kind": "session", "gap": f"{window.gap} microseconds"}
    if isinstance(window, oracle.Sliding):
        shape = {"size": f"{window.size} microseconds", "slide": f"{window.slide} microseconds", "offset": f"{window.origin} microseconds"}
        return {"kind": "sliding", **shape, **zone}
    if window.months:
        return {"kind": "tumbling", "size": f"{window.months} months", "origin": moment(window.origin).date().isoformat(), **zone}
    return {"kind": "tumbling", "size": f"{window.size} microseconds", "offset": f"{window.origin} microseconds", **zone}


def _values(row: dict[str, Any]) -> dict[str, Any]:
    last = {"last_event": _us(row["last_event"])} if "last_event" in row else {}
    return {theirs: _number(row[ours]) for ours, theirs in _ORACLE.items()} | last


def _rounded(table: dict[Any, dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    return {k: {name: _number(v) for name, v in row.items()} for k, row in table.items()}


def _number(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) and not isclose(value, 0) else value


def _us(value: datetime) -> int:
    return micros(value.replace(tzinfo=UTC))
