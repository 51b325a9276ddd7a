"""Draws the charts from stored results alone; nothing is measured here.

    python -m bench.charts [--results DIRECTORY]

Every chart has CPU seconds upwards, and both axes are logarithmic unless a share is drawn. A chart
without stored points is not drawn.
"""

import argparse
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from xml.etree import ElementTree as Xml

from bench.figures import RESULTS, Point, read_result
from bench.themes import describe_count
from docs.draw.svg import CORRECTED, INK, MARK, ROW

WIDTH, HEIGHT = 700, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 676, 44, 262
LINE, LETTER = 18, 6.6
COLOURS = (ROW, CORRECTED, MARK, INK)
"""Colours that can be read on white and on black."""
DASHES = ("none", "7 4", "2 4", "9 3 2 3")
STYLE = f"""
text {{ fill: {INK} }} .grid {{ stroke: {INK}; stroke-width: 1; opacity: 0.25 }} \
.line {{ fill: none; stroke-width: 2 }}
.middle {{ text-anchor: middle }} .right {{ text-anchor: end }} .bold {{ font-weight: 600 }}
"""


class Scale(Protocol):
    """Where a value lies between two ends, and which values have a tick."""

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high one."""

    @property
    def ticks(self) -> list[float]:
        """The values with a tick."""


@dataclass(frozen=True)
class Logarithmic:
    """Powers of ten, from the one at or below `low` to the one at or above `high`."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high one."""
        first, last = self._ends
        return (math.log10(value) - first) / (last - first)

    @property
    def ticks(self) -> list[float]:
        """The powers of ten; between few of them also twice and five times as much."""
        first, last = self._ends
        steps = (1, 2, 5) if last - first <= 2 else (1,)
        inside = [step * 10.0**power for power in range(first, last) for step in steps]
        return [*inside, 10.0**last]

    @property
    def _ends(self) -> tuple[int, int]:
        first = math.floor(math.log10(self.low))
        return first, max(math.ceil(math.log10(self.high)), first + 1)


@dataclass(frozen=True)
class Linear:
    """From 0 in steps of a quarter of `high`."""

    high: float

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high one."""
        return value / self.high

    @property
    def ticks(self) -> list[float]:
        """Five values."""
        return [self.high * quarter / 4 for quarter in range(5)]


@dataclass(frozen=True)
class Chart:
    """What a chart is about: its title, its horizontal axis, and how that is divided."""

    title: str
    across: str
    is_share: bool = False


CHARTS: Mapping[str, Chart] = {
    "new rows": Chart("What a run costs, by new rows", "new rows, all on time"),
    "history": Chart("What a run costs, by history", "stored rows"),
    "overlap": Chart("What a run costs, by overlap", "size / slide of the window"),
    "late share": Chart("What a run costs, by late rows", "percent late", is_share=True),
    "crossover": Chart("A run compared with recomputing everything on one machine", "stored rows"),
    "runs of a lake": Chart("What a run costs, by runs before it", "runs of the lake"),
}
"""The charts by the name that points have."""


def main() -> int:
    """Draws all charts beside the results."""
    parser = argparse.ArgumentParser(description="draws the charts from stored results")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIRECTORY")
    draw_charts(parser.parse_args().results)
    return 0


def draw_charts(results: Path) -> list[Path]:
    """Draws each chart that the results in a directory have points for."""
    points: list[Point] = []
    for file in sorted(results.glob("*.json")):
        points += read_result(file).points
    drawn: list[Path] = []
    for name, chart in CHARTS.items():
        chosen = [point for point in points if point.chart == name]
        if chosen:
            file = results / f"{name.replace(' ', '_')}.svg"
            file.write_text(draw_chart(chart, chosen))
            drawn.append(file)
    return drawn


def draw_chart(chart: Chart, points: Sequence[Point]) -> str:
    """A chart as a file's text."""
    height = HEIGHT + LINE * len(_name_lines(points))
    root = Xml.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {WIDTH} {height}",
            "width": str(WIDTH),
            "height": str(height),
            "role": "img",
            "font-family": "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif",
            "font-size": "12",
        },
    )
    _add(root, "title").text = chart.title
    _add(root, "style").text = STYLE
    _write(root, LEFT, 20, f"{chart.title}, CPU seconds", "bold")
    across = _choose_scale(chart, [point.x for point in points])
    seconds = [max(point.took.cpu, 0.01) for point in points]
    upwards: Scale = Linear(_round_up(max(seconds)))
    if not chart.is_share:
        upwards = Logarithmic(min(seconds), max(seconds))
    _draw_axes(root, chart, across, upwards)
    _draw_lines(root, points, across, upwards)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode") + "\n"


def _choose_scale(chart: Chart, values: Sequence[float]) -> Scale:
    if chart.is_share:
        return Linear(100)
    return Logarithmic(min(values), max(values))


def _round_up(value: float) -> float:
    """The least 1, 2, 4 or 8 with zeros that is at least the value."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 8, 10) if step * power >= value)


def _draw_axes(root: Xml.Element, chart: Chart, across: Scale, upwards: Scale) -> None:
    for tick in upwards.ticks:
        y = _y(upwards, tick)
        _add(root, "path", {"class": "grid", "d": f"M{LEFT} {y}H{RIGHT}"})
        _write(root, LEFT - 8, y + 4, f"{tick:g}", "right")
    for tick in across.ticks:
        x = _x(across, tick)
        _add(root, "path", {"class": "grid", "d": f"M{x} {TOP}V{BOTTOM}"})
        _write(root, x, BOTTOM + 18, _format_tick(tick), "middle")
    _write(root, (LEFT + RIGHT) / 2, BOTTOM + 38, chart.across, "middle")


def _draw_lines(root: Xml.Element, points: Sequence[Point], across: Scale, upwards: Scale) -> None:
    """Each line with its dots, and below the axis its name."""
    for number, name in enumerate(_name_lines(points)):
        colour = COLOURS[number % len(COLOURS)]
        dash = DASHES[number % len(DASHES)]
        places = sorted(
            (_x(across, point.x), _y(upwards, max(point.took.cpu, 0.01)))
            for point in points
            if point.line == name
        )
        path = "M" + "L".join(f"{x} {y}" for x, y in places)
        style = {"class": "line", "stroke": colour, "stroke-dasharray": dash}
        _add(root, "path", {**style, "d": path})
        for x, y in places:
            _add(root, "circle", {"cx": str(x), "cy": str(y), "r": "3.5", "fill": colour})
        y = BOTTOM + 64 + LINE * number
        _add(root, "path", {**style, "d": f"M{LEFT} {y - 4}h34"})
        _write(root, LEFT + 42, y, name, "")


def _name_lines(points: Iterable[Point]) -> list[str]:
    """The names of the lines in the order of their first points."""
    return list(dict.fromkeys(point.line for point in points))


def _x(scale: Scale, value: float) -> float:
    return round(LEFT + scale.place(value) * (RIGHT - LEFT), 1)


def _y(scale: Scale, value: float) -> float:
    return round(BOTTOM - scale.place(value) * (BOTTOM - TOP), 1)


def _format_tick(value: float) -> str:
    return describe_count(int(value)) if value >= 1 else f"{value:g}"


def _add(parent: Xml.Element, tag: str, attributes: Mapping[str, str] | None = None) -> Xml.Element:
    return Xml.SubElement(parent, tag, dict(attributes or {}))


def _write(root: Xml.Element, x: float, y: float, text: str, kind: str) -> None:
    _add(root, "text", {"x": f"{x:g}", "y": f"{y:g}", "class": kind}).text = text


if __name__ == "__main__":
    sys.exit(main())
