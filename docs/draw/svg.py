"""A picture of windows: events as dots on a time axis, rows as half-open bars below it.

Values -> SVG text; no Spark, no clock.

dots      o     o  o        o          one line, all runs
run 1     [------)[------)             a panel for each run: the rows of the output after it
run 2     [======)[------)             corrected rows in another colour, deleted ones dashed
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as Xml

from docs.draw.picture import Bar, Dot, Panel, Picture
from windowing.grid.zone import moment

WIDTH, LEFT, RIGHT = 700, 20, 680
"""Pixels: the whole picture, and the ends of its axis."""
LEAST = 7
"""Bars are at least that wide; a window may last a microsecond."""
LANE, TALL, ROUND, LETTER = 26, 19, 9, 6.7
ROW, CORRECTED, INK, MARK = "#0b7285", "#b5500f", "#737c87", "#7950f2"
"""Colours that can be read on white and on black."""
STYLE = f"""
.ink {{ fill: {INK} }} .white {{ fill: #ffffff }} .fixed {{ fill: {CORRECTED} }} \
.mark {{ fill: {MARK} }}
.axis {{ stroke: {INK}; stroke-width: 1.4; fill: none }} \
.guide {{ stroke: {INK}; stroke-width: 1; stroke-dasharray: 1 4; opacity: 0.7 }}
.row {{ fill: {ROW} }} \
.gone {{ fill: none; stroke: {INK}; stroke-width: 1.4; stroke-dasharray: 4 3 }}
.wide {{ stroke-width: 1.6; stroke: {MARK}; stroke-dasharray: 6 3 }}
.middle {{ text-anchor: middle }} .right {{ text-anchor: end }} .bold {{ font-weight: 600 }}
"""


@dataclass
class Drawing:
    """The SVG under construction; `y` is how far down it has got."""

    picture: Picture
    root: Xml.Element = field(
        default_factory=lambda: Xml.Element("svg", xmlns="http://www.w3.org/2000/svg")
    )
    y: float = 0

    def x(self, us: int) -> float:
        """Where an instant lies."""
        share = (us - self.picture.low_us) / (self.picture.high_us - self.picture.low_us)
        return round(LEFT + share * (RIGHT - LEFT), 1)

    def add(self, tag: str, parent: Xml.Element | None = None, **attributes: object) -> Xml.Element:
        """A new element; `kind` is its class.

        In names an underscore stands for a hyphen, None is left out.
        """
        named = {
            ("class" if n == "kind" else n.replace("_", "-")): str(v)
            for n, v in attributes.items()
            if v is not None
        }
        return Xml.SubElement(self.root if parent is None else parent, tag, named)

    def write(
        self, x: float, y: float, text: str, kind: str, parent: Xml.Element | None = None
    ) -> None:
        """A line of text."""
        self.add("text", parent, x=round(x, 1), y=round(y, 1), kind=kind).text = text


def svg(picture: Picture) -> str:
    """The picture as a file's text."""
    drawing = Drawing(picture)
    drawing.add("title").text = picture.title
    drawing.add("style").text = STYLE
    _axis(drawing)
    for panel in picture.panels:
        _panel(drawing, panel)
    _legend(drawing)
    root, height = drawing.root, round(drawing.y)
    font = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
    size = {"viewBox": f"0 0 {WIDTH} {height}", "width": str(WIDTH), "height": str(height)}
    root.attrib |= {**size, "role": "img", "font-family": font, "font-size": "12"}
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode") + "\n"


def lanes(spans: Sequence[tuple[float, float]]) -> list[int]:
    """The lowest lane for each span, in order, in which it overlaps none before it.

    >>> lanes([(0, 10), (10, 20), (5, 12), (12, 30)])
    [0, 0, 1, 1]
    """
    found: list[int] = []
    for low, high in spans:
        taken = {found[i] for i, (a, b) in enumerate(spans[: len(found)]) if a < high and low < b}
        found.append(next(n for n in range(len(spans)) if n not in taken))
    return found


def _axis(drawing: Drawing) -> None:
    picture = drawing.picture
    levels = lanes([_around(drawing.x(d.at_us), d.label) for d in picture.dots])
    line = drawing.y = 32 + 15 * max(levels, default=0)
    drawing.add("path", kind="axis", d=f"M{LEFT - 8} {line}H{RIGHT + 10}")
    for us in range(picture.low_us, picture.high_us + 1, picture.step_us):
        drawing.add("path", kind="axis", d=f"M{drawing.x(us)} {line}v6")
        text = said(us, picture.clock)
        half = len(text) * LETTER / 2
        drawing.write(min(max(drawing.x(us), half), WIDTH - half), line + 19, text, "ink middle")
    for dot, level in zip(picture.dots, levels, strict=True):
        _dot(
            drawing,
            dot,
            line - 15 * level,
            beside=[d.at_us for d in picture.dots].count(dot.at_us) > 1,
        )
    drawing.y = line + 30


def _dot(drawing: Drawing, dot: Dot, y: float, *, beside: bool) -> None:
    """A dot with its label above it, or where dots are stacked beside it."""
    x, kind = drawing.x(dot.at_us), "fixed" if dot.late else "row"
    if dot.marker:
        _cross(drawing, kind, x - 5, y)
    else:
        drawing.add("circle", cx=x, cy=y, r=5, kind=kind, data_at=dot.at_us)
    place = (x + 8, y - 4) if beside else (x, y - 9)
    drawing.write(
        *place, dot.label, f"{'fixed' if dot.late else 'ink'}{'' if beside else ' middle'}"
    )


def _panel(drawing: Drawing, panel: Panel) -> None:
    top = drawing.y
    shapes = [_shape(drawing, bar) for bar in panel.bars]
    rows = lanes([shape[2] for shape in shapes])
    bottom = top + 20 + LANE * (max(rows, default=0) + 1)
    for dot in drawing.picture.dots:
        if dot.run <= panel.run:
            drawing.add("path", kind="guide", d=f"M{drawing.x(dot.at_us)} {top + 14}V{bottom}")
    _watermark(drawing, panel, top, bottom)
    for bar, (x0, x1, _), row in zip(panel.bars, shapes, rows, strict=True):
        _bar(drawing, bar, x0, x1, top + 20 + LANE * row)
    drawing.y = bottom + 8


def _watermark(drawing: Drawing, panel: Panel, top: float, bottom: float) -> None:
    mark, picture = panel.watermark_us, drawing.picture
    title = f"after run {panel.run}" if len(picture.panels) > 1 or mark is not None else ""
    if mark is not None:
        title += f", W = {said(mark, picture.clock)}"
    drawing.write(LEFT - 8, top + 10, title, "ink bold")
    if mark is not None and picture.low_us <= mark <= picture.high_us:
        under = drawing.x(mark) < LEFT + len(title) * LETTER
        drawing.add(
            "path",
            kind="wide",
            d=f"M{drawing.x(mark)} {top + (14 if under else 2)}V{bottom}",
            data_watermark=mark,
        )
        if not under:
            drawing.write(drawing.x(mark) + 4, top + 10, "W", "mark bold")


def _shape(drawing: Drawing, bar: Bar) -> tuple[float, float, tuple[float, float]]:
    """Both ends of a bar, and what it takes up with its text."""
    x0 = LEFT - 8.0 if bar.start_us is None else drawing.x(bar.start_us)
    x1 = RIGHT + 10.0 if bar.end_us is None else max(drawing.x(bar.end_us), x0 + LEAST)
    if _fits(bar, x0, x1):
        return x0, x1, (x0, x1)
    outside = len(bar.label) * LETTER + 10
    return x0, x1, (x0, x1 + outside) if _right(bar, x1) else (x0 - outside, x1)


def _fits(bar: Bar, x0: float, x1: float) -> bool:
    return len(bar.label) * LETTER + 10 <= x1 - x0


def _right(bar: Bar, x1: float) -> bool:
    """Whether the text has room to the right of the bar."""
    return x1 + len(bar.label) * LETTER + 10 <= WIDTH


def _bar(drawing: Drawing, bar: Bar, x0: float, x1: float, y: float) -> None:
    """Flat where the window is closed, round where it is open."""
    kind = "gone" if bar.gone else "fixed" if bar.corrected else "row"
    group = drawing.add("g", data_start=bar.start_us, data_end=bar.end_us)
    drawing.add(
        "path",
        group,
        kind=kind,
        d=endless(x0, x1, y) if bar.start_us is None else outline(x0, x1, y),
    )
    if _fits(bar, x0, x1):
        drawing.write(
            (x0 + x1) / 2, y + 14, bar.label, f"{'ink' if bar.gone else 'white'} middle", group
        )
    elif _right(bar, x1):
        drawing.write(x1 + 5, y + 14, bar.label, "fixed" if bar.corrected else "ink", group)
    else:
        drawing.write(
            x0 - 5, y + 14, bar.label, f"{'fixed' if bar.corrected else 'ink'} right", group
        )


def outline(x0: float, x1: float, y: float) -> str:
    """A bar from `x0` to `x1` with a round right end."""
    bend = min(ROUND, x1 - x0)
    return f"M{x0} {y}H{round(x1 - bend, 1)}q{bend} 0 {bend} {TALL / 2}t{-bend} {TALL / 2}H{x0}Z"


def endless(x0: float, x1: float, y: float) -> str:
    """A bar that goes on at both ends."""
    point, half = 9, TALL / 2
    upper = f"M{x0} {y + half}l{point} {-half}H{x1 - point}"
    return f"{upper}l{point} {half}l{-point} {half}H{x0 + point}Z"


def _legend(drawing: Drawing) -> None:
    bars, dots = [b for p in drawing.picture.panels for b in p.bars], drawing.picture.dots
    entries = [
        ("row", "circle", "event", True),
        ("fixed", "circle", "event of run 2", any(d.late and not d.marker for d in dots)),
        ("row", "cross", "marker", any(d.marker for d in dots)),
        ("fixed", "cross", "marker of run 2", any(d.late and d.marker for d in dots)),
        ("row", "bar", "row: [start, end)", any(b.start_us is not None for b in bars)),
        ("row", "endless", "row without bounds", any(b.start_us is None for b in bars)),
        ("fixed", "bar", "corrected row", any(b.corrected for b in bars)),
        ("gone", "bar", "deleted row", any(b.gone for b in bars)),
    ]
    x, y = LEFT - 8.0, drawing.y + 14
    for kind, shape, text, used in entries:
        if used:
            SHAPES[shape](drawing, kind, x, y)
            drawing.write(x + 16, y + 4, text, "ink")
            x += 42 + len(text) * 6.1
    drawing.y = y + 14


def _cross(drawing: Drawing, kind: str, x: float, y: float) -> None:
    drawing.add(
        "path",
        d=f"M{x} {y - 5}l10 10m0 -10l-10 10",
        stroke=CORRECTED if kind == "fixed" else ROW,
        stroke_width=2.6,
    )


SHAPES: dict[str, Callable[[Drawing, str, float, float], object]] = {
    "circle": lambda drawing, kind, x, y: drawing.add("circle", cx=x + 5, cy=y, r=5, kind=kind),
    "bar": lambda drawing, kind, x, y: drawing.add(
        "path", d=outline(x - 8, x + 13, y - TALL / 2), kind=kind
    ),
    "endless": lambda drawing, kind, x, y: drawing.add(
        "path", d=endless(x - 12, x + 13, y - TALL / 2), kind=kind
    ),
    "cross": _cross,
}


def said(us: int, clock: str) -> str:
    """An instant as the axis writes it; days without a leading zero."""
    at = moment(us)
    return at.strftime(clock).lstrip("0") if clock.startswith("%d") else at.strftime(clock)


def _around(x: float, label: str) -> tuple[float, float]:
    half = max(len(label) * LETTER / 2 + 1, 5.5)
    return x - half, x + half
