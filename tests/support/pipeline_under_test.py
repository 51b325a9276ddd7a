"""A pipeline under test beside the oracle.

The same events go to a Delta table and to the loops, then their tables are compared.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import isclose
from pathlib import Path
from typing import Any

from deltalake import write_deltalake
from pyspark.sql import SparkSession

from jobs.backfill import backfill
from jobs.maintain import maintain
from jobs.read import newest, newest_by
from jobs.run import run
from jobs.shortcuts.nothing_new import find_nothing_new
from tests import oracle
from tests.support.stored_rows import list_stored, read_stored
from windowing.grid.zone import micros, moment
from windowing.ledger.history import LedgerHistory
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.report.rule import RunReport
from windowing.spec.load import load_pipeline
from windowing.storage import delta, own_tables, plain_table
from windowing.storage.kept_open import newest_version

SCHEMA = "id string, key string, ts timestamp, value bigint, seq bigint, attr bigint, mark boolean"
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
_OURS = {theirs: ours for ours, theirs in _ORACLE.items()}
_SUMMED = ("n", "total")
FEW = ("n", "total", "opening")
"""Enough where what is tested is not the aggregates: one that adds up, one that doesn't."""
SUMS = "_sums"
"""The end of the name of windows that show only what can be added up.

What was added can be taken back by subtraction.
"""
SECOND = 1_000_000
FAR = 10**9 * SECOND
"""How far an event may be ahead of its arrival where that is not what is tested: 31 years."""
ARRIVAL = micros(datetime(2030, 1, 1, tzinfo=UTC))


def us(text: str) -> int:
    """Microseconds of an ISO time in UTC."""
    return micros(datetime.fromisoformat(text).replace(tzinfo=UTC))


def become_older(files: Iterable[Path], by: timedelta) -> None:
    """Each was last written that much earlier."""
    for file in files:
        then = file.stat().st_mtime - by.total_seconds()
        os.utime(file, (then, then))


def append_by_delta_rs(path: Location, values: Sequence[Mapping[str, Any]], schema: str) -> bool:
    """Appends rows as programs without Spark do; False where it takes more, and nothing is done."""
    plain = plain_table.find_plain(path) if path.is_local else None
    rows = delta.arrow_rows(values, delta.parse_columns(schema))
    if plain is None or plain.schema != rows.schema:
        return False
    write_deltalake(plain.table, rows, mode="append")
    return True


@dataclass
class Lab:
    """One lake, one pipeline, one oracle.

    Durations are whole microseconds; `lateness` None is forever.
    """

    spark: SparkSession
    home: Path | Location
    windows: tuple[oracle.Window, ...]
    lateness: int | None = None
    delay: int = 0
    ids: bool = True
    idle_after: int | None = None
    shows: tuple[str, ...] = tuple(AGGREGATES)
    max_future: int = FAR
    batch: dict[str, Any] | None = None
    schema: str = SCHEMA
    more: dict[str, Any] = field(default_factory=dict)
    landed: list[oracle.Event] = field(default_factory=list)
    checks: int = 0

    def __post_init__(self) -> None:
        self.truth = oracle.Oracle(
            self.delay, self.lateness, self.max_future, None, self.windows, self.idle_after
        )
        self.pipeline = load_pipeline(self.spec())

    @property
    def root(self) -> Path:
        """The directory of all its tables, where that is on this machine."""
        return Path(str(self.home))

    def spec(self) -> dict[str, Any]:
        """The spec as a user would write it."""
        lateness = "forever" if self.lateness is None else _us(self.lateness)
        source = {
            "table": str(self.home / "source"),
            "event_time": "ts",
            "key": ["key"],
            "order_by": ["seq"],
            "batch": self.batch,
        }
        idle = {} if self.idle_after is None else {"idle_after": _us(self.idle_after)}
        return {
            "name": "lab",
            "lake": str(self.home / "lake"),
            "source": source | ({"event_id": "id"} if self.ids else {}),
            "watermark": {
                "delay": _us(self.delay),
                "allowed_lateness": lateness,
                "max_future": _us(self.max_future),
                **idle,
            },
            "aggregates": {name: AGGREGATES[name] for name in self.shows},
            "windows": {w.name: written(w) for w in self.windows},
        }

    def land(self, events: Iterable[oracle.Event]) -> list[oracle.Event]:
        """Appends events to the source table; without ids they lose theirs.

        Two libraries write the table, as sources of users are written by several. Spark does every
        fourth commit, the first of them included, and whatever delta-rs can't.
        """
        path = Location(str(self.home / "source"))
        if newest_version(path) % 4 == 3:
            return self.land_by_spark(events)
        new, rows = self._take(events)
        if not append_by_delta_rs(path, rows, self.schema):
            own_tables.append_values(self.spark, path, rows, self.schema)
        return new

    def land_by_spark(self, events: Iterable[oracle.Event]) -> list[oracle.Event]:
        """The same in a commit of Spark."""
        new, rows = self._take(events)
        delta.append(delta.rows(self.spark, rows, self.schema), Location(str(self.home / "source")))
        return new

    def _take(
        self, events: Iterable[oracle.Event]
    ) -> tuple[list[oracle.Event], list[dict[str, Any]]]:
        new = [e if self.ids else replace(e, id=None) for e in events]
        self.landed += new
        return new, [_row(e) | self.more for e in new]

    def go(self, arrival: int = ARRIVAL) -> RunReport:
        """Runs the pipeline, not the oracle.

        What is seen without Spark is compared with what the run does.
        """
        nothing_new = find_nothing_new(self.pipeline, arrival)
        report = run(self.spark, self.pipeline, moment(arrival))
        assert nothing_new in (None, report)
        return report

    def run(self, events: Iterable[oracle.Event], arrival: int = ARRIVAL) -> RunReport:
        """Lands events, runs the pipeline and the oracle, and compares the counts."""
        return self.run_over(self.land(events), arrival)

    def run_over(self, new: list[oracle.Event], arrival: int = ARRIVAL) -> RunReport:
        """The same with what has `landed` since the last run."""
        report = self.go(arrival)
        expected = self.truth.run(new, arrival)
        found = {name: getattr(report, name) for name in expected}
        assert found == expected, f"counts {found}, expected {expected}"
        assert report.read == sum(n for name, n in found.items() if name != "read")
        mark = None if self.truth.watermark is None else moment(self.truth.watermark)
        assert report.watermark == mark, f"watermark {report.watermark}, expected {mark}"
        return report

    def backfill(self, start: int, end: int, arrival: int = ARRIVAL) -> RunReport:
        """Backfills [start, end) in both.

        The pipeline's backfill arrives now, or with the last run if that was later; the oracle's at
        `arrival`.
        """
        report = backfill(self.spark, self.pipeline, moment(start), moment(end))
        self.truth.backfill(self.landed, start, end, arrival)
        return report

    def maintain(self) -> None:
        """Maintains the pipeline."""
        maintain(self.spark, self.pipeline)

    def bound(self, batch: dict[str, Any] | None) -> None:
        """The spec has this bound of a batch from now on."""
        self.batch = batch
        self.pipeline = load_pipeline(self.spec())

    def respecify(self, windows: tuple[oracle.Window, ...]) -> None:
        """The spec has these windows from now on; the next command sees it."""
        self.windows = windows
        self.truth.respecify(windows)
        self.pipeline = load_pipeline(self.spec())

    def check(self) -> LedgerHistory:
        """Every output equals the oracle's table, and so does what is closed and final in it.

        In turn, one of the outputs is read as its readers do, the others by another library. The
        ledger that is returned records the same watermark.
        """
        past = read_history(self.pipeline)
        for turn, window in enumerate(self.windows, self.checks):
            if turn % len(self.windows) == 0:
                found = newest(self.spark, self.pipeline, window.name, past)
            else:
                reads = partial(read_stored, self.spark)
                found = newest_by(reads, self.pipeline, window.name, past)
            rows = [row.asDict() for row in found.collect()]
            assert _by_place(rows, _values) == self.expected(window), window
            assert _by_place(rows, _finality) == self.truth.closed_final(window.name), window
        self.checks += 1
        return past

    def expected(self, window: oracle.Window) -> dict[tuple[Any, ...], dict[str, Any]]:
        """What the output of `window` must hold, as `table` gives it."""
        hidden = {
            _ORACLE[name]
            for name in AGGREGATES
            if name not in (_SUMMED if window.name.endswith(SUMS) else self.shows)
        }
        table = self.truth.table(window.name)
        return {
            place: {name: _number(v) for name, v in row.items() if name not in hidden}
            for place, row in table.items()
        }

    def table(self, name: str, keys: Sequence[str] = ()) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The rows of one output, of some keys or all.

        They are by (key, start, end), and index where windows have one, as the oracle names them.
        """
        rows = list_stored(self.spark, self.pipeline.table(name))
        return _by_place([row for row in rows if not keys or row["key"] in keys], _values)


def _by_place(
    rows: Sequence[dict[str, Any]], what: Callable[[dict[str, Any]], Any]
) -> dict[tuple[Any, ...], Any]:
    """What each row says; no window has two."""
    out = {_place(row): what(row) for row in rows}
    assert len(out) == len(rows), "a window is there twice"
    return out


def _finality(row: dict[str, Any]) -> tuple[bool, bool]:
    return (row["is_closed"], row["is_final"])


def _row(e: oracle.Event) -> dict[str, Any]:
    time = None if e.t is None else moment(e.t)
    return {
        "id": e.id,
        "key": e.key,
        "ts": time,
        "value": e.value,
        "seq": e.order,
        "attr": e.attr,
        "mark": e.mark,
    }


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    index = (row["window_index"],) if "window_index" in row else ()
    return (row["key"], _instant(row["window_start"]), _instant(row["window_end"]), *index)


def written(window: oracle.Window) -> dict[str, Any]:
    """The window as a spec says it."""
    shown: dict[str, Any] = {} if window.emit == "on_change" else {"emit": window.emit}
    if window.having is not None:
        shown["having"] = " ".join(map(str, (_OURS[window.having[0]], *window.having[1:])))
    if window.empty:
        shown["empty"] = True
    if window.name.endswith(SUMS):
        shown["aggregates"] = list(_SUMMED)
    return {**_kind(window), **shown}


def _kind(window: oracle.Window) -> dict[str, Any]:
    match window:
        case oracle.Session(gap=gap, max_duration=longest):
            return {
                "kind": "session",
                "gap": _us(gap),
                **({} if longest is None else {"max_duration": _us(longest)}),
            }
        case oracle.Sliding():
            return {
                "kind": "sliding",
                "size": _us(window.size),
                "slide": _us(window.slide),
                "offset": _us(window.origin),
                **_zone(window),
            }
        case oracle.Tumbling():
            return {
                "kind": "tumbling",
                **_size("size", window.size, window.months),
                **_origin(window),
                **_zone(window),
            }
        case oracle.Cumulate():
            step = _size("step", window.step, window.step_months)
            return {
                "kind": "cumulate",
                **_size("max_size", window.size, window.months),
                **step,
                **_origin(window),
                **_zone(window),
            }
        case oracle.RecordSliding():
            return {
                "kind": "record_sliding",
                "difference": _us(window.difference),
                "tick": _us(window.tick),
            }
        case oracle.Count():
            return {
                "kind": "count",
                "count": window.count,
                **({} if window.every is None else {"every": window.every}),
            }
        case oracle.Delta():
            return {"kind": "delta", "attribute": "attr", "delta": window.delta}
        case oracle.Punctuation():
            return {"kind": "punctuation", "marker": "mark"}
    return {"kind": "global"}


def _size(name: str, size: int, months: int) -> dict[str, str]:
    return {name: f"{months} months" if months else _us(size)}


def _origin(window: oracle.Tumbling | oracle.Cumulate) -> dict[str, str]:
    return (
        {"origin": moment(window.origin).date().isoformat()}
        if window.months
        else {"offset": _us(window.origin)}
    )


def _zone(window: oracle.Tumbling | oracle.Sliding | oracle.Cumulate) -> dict[str, str]:
    return {"zone": window.zone} if window.zone else {}


def _us(n: int) -> str:
    return f"{n} microseconds"


def _values(row: dict[str, Any]) -> dict[str, Any]:
    more = {"last_event": _instant(row["last_event"])} if "last_event" in row else {}
    more |= {"window_index": row["window_index"]} if "window_index" in row else {}
    return {theirs: _number(row[ours]) for ours, theirs in _ORACLE.items() if ours in row} | more


def _number(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) and not isclose(value, 0) else value


def _instant(value: datetime | None) -> int | None:
    return None if value is None else micros(value.replace(tzinfo=UTC))
