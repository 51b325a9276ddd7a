"""What a figure is, what is asked of it, and how figures are stored, read and printed."""

import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from jobs.console import Printer

RESULTS = Path(__file__).parent / "results"
HEADS = ["figure", "value", "asked", "target", "floor", "reached", "beside"]


class Bound(StrEnum):
    """Which side of its target a figure should be on."""

    AT_MOST = "at most"
    AT_LEAST = "at least"


@dataclass(frozen=True)
class Figure:
    """One measured figure and what is asked of it; `floor` is the least that is asked.

    `beside` says what else was measured with it.
    """

    name: str
    value: float
    bound: Bound
    target: float
    floor: float
    beside: str = ""

    @property
    def verdict(self) -> str:
        """Whether it reaches the target, or the floor at least."""
        if self._reaches(self.target):
            return "target"
        return "floor" if self._reaches(self.floor) else "missed"

    def _reaches(self, limit: float) -> bool:
        if self.bound is Bound.AT_MOST:
            return self.value <= limit
        return self.value >= limit


@dataclass(frozen=True)
class Took:
    """Wall seconds and CPU seconds of one action."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Times:
    """What each round of one contender took in one phase."""

    phase: str
    contender: str
    took: tuple[Took, ...]

    @property
    def median(self) -> Took:
        """The medians of wall and CPU seconds."""
        return Took(
            statistics.median(each.wall for each in self.took),
            statistics.median(each.cpu for each in self.took),
        )


@dataclass(frozen=True)
class Point:
    """One point of a line of a chart: where it lies, and what was needed there."""

    chart: str
    line: str
    x: float
    took: Took


@dataclass(frozen=True)
class Result:
    """Everything that one theme measured."""

    theme: str
    command: str
    figures: tuple[Figure, ...] = ()
    times: tuple[Times, ...] = ()
    points: tuple[Point, ...] = ()


def at_most(name: str, value: float, target: float, floor: float, beside: str = "") -> Figure:
    """A figure that should be small."""
    return Figure(name, value, Bound.AT_MOST, target, floor, beside)


def at_least(name: str, value: float, target: float, floor: float, beside: str = "") -> Figure:
    """A figure that should be large."""
    return Figure(name, value, Bound.AT_LEAST, target, floor, beside)


def store_result(result: Result, file: Path) -> None:
    """Writes a result as JSON, with what the machine is."""
    found: dict[str, object] = {
        "theme": result.theme,
        "command": result.command,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "figures": [{**asdict(each), "reached": each.verdict} for each in result.figures],
    }
    if result.times:
        found["times"] = [asdict(each) for each in result.times]
    if result.points:
        found["points"] = [asdict(each) for each in result.points]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=2) + "\n")


def read_result(file: Path) -> Result:
    """What `store_result` wrote."""
    found = json.loads(file.read_text())
    return Result(
        found["theme"],
        found["command"],
        tuple(_read_figure(each) for each in found["figures"]),
        tuple(
            Times(each["phase"], each["contender"], tuple(Took(**took) for took in each["took"]))
            for each in found.get("times", ())
        ),
        tuple(
            Point(each["chart"], each["line"], each["x"], Took(**each["took"]))
            for each in found.get("points", ())
        ),
    )


def _read_figure(stored: dict[str, Any]) -> Figure:
    return Figure(
        stored["name"],
        stored["value"],
        Bound(stored["bound"]),
        stored["target"],
        stored["floor"],
        stored["beside"],
    )


def print_figures(figures: Iterable[Figure]) -> None:
    """Prints one table of figures against what is asked of them."""
    rows = [
        [
            each.name,
            f"{each.value:,.2f}",
            each.bound.value,
            f"{each.target:,g}",
            f"{each.floor:,g}",
            each.verdict,
            each.beside,
        ]
        for each in figures
    ]
    Printer(as_json=False).table(HEADS, rows)


def print_times(times: Sequence[Times]) -> None:
    """Prints the medians of every contender in every phase."""
    rows = [
        [each.phase, each.contender, f"{each.median.cpu:.1f}", f"{each.median.wall:.1f}"]
        for each in times
    ]
    Printer(as_json=False).table(["phase", "contender", "CPU s", "wall s"], rows)


def report_result(result: Result, file: Path) -> None:
    """Prints and stores a result."""
    store_result(result, file)
    if result.times:
        print_times(result.times)
    if result.figures:
        print_figures(result.figures)
