"""Small charts as SVG text: no script, no font, no file beside the page."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, MARGIN = 720, 96, 6


@dataclass(frozen=True)
class Line:
    """One curve; `css` is the class that gives it its colour."""

    css: str
    values: Sequence[int]


def svg(label: str, lines: Sequence[Line]) -> str:
    """The curves on one scale from 0 to the greatest value, first value left; '' when there is none. `label` must be plain ASCII words."""
    most = max((v for line in lines for v in line.values), default=None)
    if most is None:
        return ""
    drawn = "".join(_curve(line, most) for line in lines)
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}" preserveAspectRatio="none">'
    return f'{head}<line class="axis" x1="0" y1="{HEIGHT - MARGIN}" x2="{WIDTH}" y2="{HEIGHT - MARGIN}"/>{drawn}</svg>'


def points(values: Sequence[int], most: int) -> list[tuple[float, float]]:
    """Where the values lie: x from left to right, y downwards from `most` at the top to 0 at the bottom.

    >>> points([0, 10], 10)
    [(6.0, 90.0), (714.0, 6.0)]
    """
    step = (WIDTH - 2 * MARGIN) / max(1, len(values) - 1)
    height = HEIGHT - 2 * MARGIN
    return [
        (round(MARGIN + i * step, 1), round(HEIGHT - MARGIN - height * v / max(1, most), 1))
        for i, v in enumerate(values)
    ]


def _curve(line: Line, most: int) -> str:
    at = points(line.values, most)
    if len(at) == 1:
        return f'<circle class="{line.css}" cx="{at[0][0]}" cy="{at[0][1]}" r="3"/>'
    return f'<polyline class="{line.css}" points="{" ".join(f"{x},{y}" for x, y in at)}"/>'
