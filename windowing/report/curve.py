"""Small charts as SVG text: no script, no font, no other file."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, MARGIN = 720, 96, 6


@dataclass(frozen=True)
class Line:
    """One curve; `css` is the class that gives it its colour."""

    css: str
    values: Sequence[int]


def draw_curves(label: str, lines: Sequence[Line]) -> str:
    """The curves on one scale from 0 to the greatest value, the first value on the left.

    It is '' when there is no value. `label` must be plain ASCII words, because it is not escaped.
    """
    values: list[int] = []
    for line in lines:
        values += line.values
    if not values:
        return ""
    most = max(values)
    drawn = "".join(_draw_line(line, most) for line in lines)
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}"'
    bottom = HEIGHT - MARGIN
    axis = f'<line class="axis" x1="0" y1="{bottom}" x2="{WIDTH}" y2="{bottom}"/>'
    return f'<svg {box} preserveAspectRatio="none">{axis}{drawn}</svg>'


def place_points(values: Sequence[int], most: int) -> list[tuple[float, float]]:
    """Where the values lie: x from left to right, y downwards from `most` to 0 at the bottom.

    >>> place_points([0, 10], 10)
    [(6.0, 90.0), (714.0, 6.0)]
    """
    step = (WIDTH - 2 * MARGIN) / max(1, len(values) - 1)
    height = HEIGHT - 2 * MARGIN
    found = []
    for i, value in enumerate(values):
        x = MARGIN + i * step
        y = HEIGHT - MARGIN - height * value / max(1, most)
        found.append((round(x, 1), round(y, 1)))
    return found


def _draw_line(line: Line, most: int) -> str:
    points = place_points(line.values, most)
    if len(points) == 1:
        x, y = points[0]
        return f'<circle class="{line.css}" cx="{x}" cy="{y}" r="3"/>'
    joined = " ".join(f"{x},{y}" for x, y in points)
    return f'<polyline class="{line.css}" points="{joined}"/>'
