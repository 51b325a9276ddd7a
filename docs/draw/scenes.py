"""One scene for each kind of window.

Its spec, the events of each run, and how its picture is laid out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from docs.draw.lake import NOON, Event, Lake, Row, at, deleted, events, us
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
        return (
            at(self.arrivals[n])
            if self.arrivals
            else max(NOON, *(e.at for e in self.batches[0])) + timedelta(minutes=n)
        )


@dataclass(frozen=True)
class Shot:
    """What one run left: the rows of the output and the watermark."""

    rows: list[Row]
    watermark: datetime | None


def shoot(scene: Scene, spark: SparkSession, root: Path) -> list[Shot]:
    """Runs the scene; one shot after each run."""
    lake = Lake(
        spark, root / scene.name, {"shown": scene.window}, {"delay": scene.delay}, scene.more
    )
    shots = []
    for n, batch in enumerate(scene.batches):
        report = lake.run(batch, scene.arrival(n))
        shots.append(Shot(lake.rows("shown"), report.watermark))
    return shots


def picture(scene: Scene, shots: list[Shot]) -> Picture:
    """The picture of what was found."""
    low, high, step = scene.span
    earlier = [[], *(shot.rows for shot in shots)]
    panels = [
        _panel(scene, n, shot, before)
        for n, (shot, before) in enumerate(zip(shots, earlier, strict=False), 1)
    ]
    return Picture(
        scene.title,
        micros(at(low)),
        micros(at(high)),
        step * MINUTE,
        _dots(scene),
        tuple(panels),
        scene.clock,
    )


def _panel(scene: Scene, run: int, shot: Shot, before: list[Row]) -> Panel:
    kept = [
        _bar(scene, row, corrected=row["run"] == run and row["revision"] > 0) for row in shot.rows
    ]
    gone = [_bar(scene, row, gone=True) for row in deleted(before, shot.rows)]
    bars = sorted([*kept, *gone], key=lambda bar: (bar.gone, bar.start_us or 0, bar.end_us or 0))
    return Panel(run, tuple(bars), None if shot.watermark is None else micros(shot.watermark))


def _bar(scene: Scene, row: Row, *, corrected: bool = False, gone: bool = False) -> Bar:
    return Bar(us(row, "window_start"), us(row, "window_end"), scene.label(row), corrected, gone)


def _dots(scene: Scene) -> tuple[Dot, ...]:
    arrives = scene.more.get("event_time") == "arrival"
    found, highest = [], datetime.min.replace(tzinfo=NOON.tzinfo)
    for n, batch in enumerate(scene.batches):
        for e in batch:
            when = scene.arrival(n) if arrives else e.at
            label = "marker" if e.value is None else f"{e.value:g}"
            found.append(
                Dot(
                    micros(when),
                    label,
                    n + 1,
                    late=not arrives and e.at < highest,
                    marker=e.value is None,
                )
            )
        highest = max(highest, *(e.at for e in batch))
    return tuple(sorted(found, key=lambda dot: dot.at_us))


def total(row: Row) -> str:
    """What most bars say."""
    return f"sum {row['total']:g}"


def counted(row: Row) -> str:
    """How many events, and their sum."""
    return f"{row['n']} event{'s' if row['n'] > 1 else ''}, sum {row['total']:g}"


def _long(row: Row) -> str:
    hours = (row["window_end"] - row["window_start"]) // timedelta(hours=1)
    return f"{hours} hours, sum {row['total']:g}"


def _numbered(row: Row) -> str:
    return f"#{row['window_index']}: sum {row['total']:g}"


def _from(row: Row) -> str:
    return f"#{row['window_index']}: from {row['opening']:g}"


SCENES = (
    Scene(
        "tumbling",
        "Tumbling windows of 10 minutes; a late event corrects one row",
        {"kind": "tumbling", "size": "10 minutes"},
        "10:02=4 10:07=1 10:10=5 10:24=2 10:36=1 | 10:16=3",
        ("10:00", "10:40", 10),
        total,
    ),
    Scene(
        "calendar",
        "Days of New York on a UTC axis; on 8 March the clocks go forward and the day has 23 hours",
        {"kind": "tumbling", "size": "1 day", "zone": "America/New_York"},
        "03-07T20:00=1 03-08T03:00=2 03-08T05:00=4 03-09T02:00=8 03-09T04:00=16",
        ("03-07T00:00", "03-10T12:00", 720),
        _long,
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
        total,
    ),
    Scene(
        "cumulate",
        "Cumulating windows: an hour in steps of 20 minutes; a late event corrects the steps "
        "that end after it",
        {"kind": "cumulate", "max_size": "1 hour", "step": "20 minutes"},
        "10:05=4 10:20=1 10:52=2 11:07=3 | 10:33=5",
        ("10:00", "12:00", 20),
        total,
    ),
    Scene(
        "session",
        "Sessions with a gap of 10 minutes; a late event joins two of them, one row is deleted",
        {"kind": "session", "gap": "10 minutes"},
        "10:02=4 10:09=1 10:28=5 10:38=2 | 10:18=3",
        ("10:00", "10:55", 5),
        counted,
    ),
    Scene(
        "capped_session",
        "Sessions with a gap of 10 minutes, at most 25 minutes long; a late first event moves "
        "the cut",
        {"kind": "session", "gap": "10 minutes", "max_duration": "25 minutes"},
        "10:05=4 10:12=1 10:20=5 10:28=2 10:36=1 10:44=3 | 10:00=6",
        ("09:55", "11:00", 5),
        counted,
    ),
    Scene(
        "record_sliding",
        "Windows made by events: 10 minutes back from each, and 10 minutes on from just after "
        "it; the tick is a minute",
        {"kind": "record_sliding", "difference": "10 minutes", "tick": "1 minute"},
        "10:05=1 10:10=2 10:20=4 | 10:13=8",
        ("09:50", "10:30", 5),
        total,
    ),
    Scene(
        "count",
        "Windows of three events in event order; a late event moves those after it on",
        {"kind": "count", "count": 3},
        "10:02=4 10:08=1 10:14=5 10:21=2 10:30=1 | 10:11=3",
        ("10:00", "10:35", 5),
        _numbered,
    ),
    Scene(
        "delta",
        "Windows that end when the value has grown by more than 1.5 since their first event",
        {"kind": "delta", "attribute": "value", "delta": 1.5},
        "10:02=16 10:07=16.4 10:13=17.5 10:19=17.6 10:26=18 10:33=19.2 | 09:58=15.9",
        ("09:55", "10:45", 5),
        _from,
        delay="15 minutes",
    ),
    Scene(
        "punctuation",
        "Windows that end at markers; a late marker cuts one in two",
        {"kind": "punctuation", "marker": "mark"},
        "10:02=4 10:08=1 10:12=x 10:17=2 10:23=3 10:30=5 | 10:20=x",
        ("10:00", "10:35", 5),
        _numbered,
    ),
    Scene(
        "global",
        "One window for all time",
        {"kind": "global"},
        "10:02=4 10:17=2 10:30=5 | 10:09=3",
        ("10:00", "10:40", 10),
        counted,
    ),
    Scene(
        "arrival",
        "Tumbling windows of 10 minutes over arrival: all events of a run happen when it begins",
        {"kind": "tumbling", "size": "10 minutes"},
        "09:12=4 08:40=1 | 09:58=5 | 03:10=2 09:59=1",
        ("10:00", "10:30", 5),
        total,
        delay="0 seconds",
        more={"event_time": "arrival"},
        arrivals=("10:04", "10:08", "10:13"),
    ),
)
