"""One scene for each kind of window.

Its spec, the events of each run, and how its picture is laid out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from docs.draw.lake import NOON, Event, Lake, Row, at, deleted_rows, events, micros_of
from docs.draw.picture import Bar, Dot, Panel, Picture
from windowing.grid.zone import micros

MINUTE = 60_000_000


@dataclass(frozen=True)
class Scene:
    """A window and the events of its runs, `|` between them; `span` is the axis.

    The span holds its first time, its last time and the minutes between ticks.
    """

    name: str
    title: str
    window: Mapping[str, Any]
    runs: str
    span: tuple[str, str, int]
    label: Callable[[Row], str]
    delay: str = "5 minutes"
    clock: str = "%H:%M"
    more: Mapping[str, Any] = field(default_factory=dict)
    arrivals: tuple[str, ...] = ()

    @property
    def batches(self) -> list[list[Event]]:
        """The events of each run."""
        return [events(line) for line in self.runs.split("|")]

    def arrival(self, n: int) -> datetime:
        """When run `n`, counted from 0, happens."""
        if self.arrivals:
            return at(self.arrivals[n])
        first_arrival = max(NOON, *(event.at for event in self.batches[0]))
        return first_arrival + timedelta(minutes=n)


@dataclass(frozen=True)
class Shot:
    """What one run left: the rows of the output and the watermark."""

    rows: list[Row]
    watermark: datetime | None


def shoot_scene(scene: Scene, spark: SparkSession, root: Path) -> list[Shot]:
    """Runs the scene; one shot after each run."""
    windows = {"shown": scene.window}
    lake = Lake(spark, root / scene.name, windows, {"delay": scene.delay}, scene.more)
    shots = []
    for n, batch in enumerate(scene.batches):
        report = lake.run(batch, scene.arrival(n))
        shots.append(Shot(lake.rows("shown"), report.watermark))
    return shots


def make_picture(scene: Scene, shots: list[Shot]) -> Picture:
    """The picture of what was found."""
    low, high, step = scene.span
    panels = []
    before: list[Row] = []
    for run, shot in enumerate(shots, 1):
        panels.append(_make_panel(scene, run, shot, before))
        before = shot.rows
    return Picture(
        scene.title,
        micros(at(low)),
        micros(at(high)),
        step * MINUTE,
        _make_dots(scene),
        tuple(panels),
        scene.clock,
    )


def _make_panel(scene: Scene, run: int, shot: Shot, before: list[Row]) -> Panel:
    bars = []
    for row in shot.rows:
        is_corrected = row["run"] == run and row["revision"] > 0
        bars.append(_make_bar(scene, row, corrected=is_corrected))
    for row in deleted_rows(before, shot.rows):
        bars.append(_make_bar(scene, row, gone=True))
    bars.sort(key=lambda bar: (bar.gone, bar.start_us or 0, bar.end_us or 0))
    watermark_us = None if shot.watermark is None else micros(shot.watermark)
    return Panel(run, tuple(bars), watermark_us)


def _make_bar(scene: Scene, row: Row, *, corrected: bool = False, gone: bool = False) -> Bar:
    start_us = micros_of(row, "window_start")
    end_us = micros_of(row, "window_end")
    return Bar(start_us, end_us, scene.label(row), corrected, gone)


def _make_dots(scene: Scene) -> tuple[Dot, ...]:
    """A dot for each event; one that is older than an event of an earlier run is late."""
    by_arrival = scene.more.get("event_time") == "arrival"
    dots = []
    highest = datetime.min.replace(tzinfo=NOON.tzinfo)
    for n, batch in enumerate(scene.batches):
        for event in batch:
            happened = scene.arrival(n) if by_arrival else event.at
            is_late = not by_arrival and event.at < highest
            is_marker = event.value is None
            label = "marker" if is_marker else f"{event.value:g}"
            dots.append(Dot(micros(happened), label, n + 1, late=is_late, marker=is_marker))
        highest = max(highest, *(event.at for event in batch))
    return tuple(sorted(dots, key=lambda dot: dot.at_us))


def label_sum(row: Row) -> str:
    """What most bars say."""
    return f"sum {row['total']:g}"


def label_count(row: Row) -> str:
    """How many events, and their sum."""
    noun = "events" if row["n"] > 1 else "event"
    return f"{row['n']} {noun}, sum {row['total']:g}"


def _label_hours(row: Row) -> str:
    hours = (row["window_end"] - row["window_start"]) // timedelta(hours=1)
    return f"{hours} hours, sum {row['total']:g}"


def _label_index(row: Row) -> str:
    return f"#{row['window_index']}: sum {row['total']:g}"


def _label_opening(row: Row) -> str:
    return f"#{row['window_index']}: from {row['opening']:g}"


SCENES = (
    Scene(
        "tumbling",
        "Tumbling windows of 10 minutes; a late event corrects one row",
        {"kind": "tumbling", "size": "10 minutes"},
        "10:02=4 10:07=1 10:10=5 10:24=2 10:36=1 | 10:16=3",
        ("10:00", "10:40", 10),
        label_sum,
    ),
    Scene(
        "calendar",
        "Days of New York on a UTC axis; on 8 March the clocks go forward and the day has 23 hours",
        {"kind": "tumbling", "size": "1 day", "zone": "America/New_York"},
        "03-07T20:00=1 03-08T03:00=2 03-08T05:00=4 03-09T02:00=8 03-09T04:00=16",
        ("03-07T00:00", "03-10T12:00", 720),
        _label_hours,
        delay="0 seconds",
        clock="%d %b %Hh",
    ),
    Scene(
        "sliding",
        "Sliding windows of 30 minutes every 10 minutes; a late event corrects the three rows "
        "that hold it",
        {"kind": "sliding", "size": "30 minutes", "slide": "10 minutes"},
        "10:05=4 10:12=1 10:31=5 | 10:24=2",
        ("09:40", "11:00", 10),
        label_sum,
    ),
    Scene(
        "cumulate",
        "Cumulating windows: an hour in steps of 20 minutes; a late event corrects the steps "
        "that end after it",
        {"kind": "cumulate", "max_size": "1 hour", "step": "20 minutes"},
        "10:05=4 10:20=1 10:52=2 11:07=3 | 10:33=5",
        ("10:00", "12:00", 20),
        label_sum,
    ),
    Scene(
        "session",
        "Sessions with a gap of 10 minutes; a late event joins two of them, one row is deleted",
        {"kind": "session", "gap": "10 minutes"},
        "10:02=4 10:09=1 10:28=5 10:38=2 | 10:18=3",
        ("10:00", "10:55", 5),
        label_count,
    ),
    Scene(
        "capped_session",
        "Sessions with a gap of 10 minutes, at most 25 minutes long; a late first event moves "
        "the cut",
        {"kind": "session", "gap": "10 minutes", "max_duration": "25 minutes"},
        "10:05=4 10:12=1 10:20=5 10:28=2 10:36=1 10:44=3 | 10:00=6",
        ("09:55", "11:00", 5),
        label_count,
    ),
    Scene(
        "record_sliding",
        "Windows made by events: 10 minutes back from each, and 10 minutes on from just after "
        "it; the tick is a minute",
        {"kind": "record_sliding", "difference": "10 minutes", "tick": "1 minute"},
        "10:05=1 10:10=2 10:20=4 | 10:13=8",
        ("09:50", "10:30", 5),
        label_sum,
    ),
    Scene(
        "count",
        "Windows of three events in event order; a late event moves those after it on",
        {"kind": "count", "count": 3},
        "10:02=4 10:08=1 10:14=5 10:21=2 10:30=1 | 10:11=3",
        ("10:00", "10:35", 5),
        _label_index,
    ),
    Scene(
        "delta",
        "Windows that end when the value has grown by more than 1.5 since their first event",
        {"kind": "delta", "attribute": "value", "delta": 1.5},
        "10:02=16 10:07=16.4 10:13=17.5 10:19=17.6 10:26=18 10:33=19.2 | 09:58=15.9",
        ("09:55", "10:45", 5),
        _label_opening,
        delay="15 minutes",
    ),
    Scene(
        "punctuation",
        "Windows that end at markers; a late marker cuts one in two",
        {"kind": "punctuation", "marker": "mark"},
        "10:02=4 10:08=1 10:12=x 10:17=2 10:23=3 10:30=5 | 10:20=x",
        ("10:00", "10:35", 5),
        _label_index,
    ),
    Scene(
        "global",
        "One window for all time",
        {"kind": "global"},
        "10:02=4 10:17=2 10:30=5 | 10:09=3",
        ("10:00", "10:40", 10),
        label_count,
    ),
    Scene(
        "arrival",
        "Tumbling windows of 10 minutes over arrival: all events of a run happen when it begins",
        {"kind": "tumbling", "size": "10 minutes"},
        "09:12=4 08:40=1 | 09:58=5 | 03:10=2 09:59=1",
        ("10:00", "10:30", 5),
        label_sum,
        delay="0 seconds",
        more={"event_time": "arrival"},
        arrivals=("10:04", "10:08", "10:13"),
    ),
)
