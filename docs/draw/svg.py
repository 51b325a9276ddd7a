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
        named = {}
        for name, value in attributes.items():
            if value is not None:
                xml_name = "class" if name == "kind" else name.replace("_", "-")
                named[xml_name] = str(value)
        # An element without children is false, so only None is left to mean the root.
        return Xml.SubElement(self.root if parent is None else parent, tag, named)

    def write(
        self, x: float, y: float, text: str, kind: str, parent: Xml.Element | None = None
    ) -> None:
        """A line of text."""
        self.add("text", parent, x=round(x, 1), y=round(y, 1), kind=kind).text = text


def draw_picture(picture: Picture) -> str:
    """The picture as a file's text."""
    drawing = Drawing(picture)
    drawing.add("title").text = picture.title
    drawing.add("style").text = STYLE
    _draw_axis(drawing)
    for panel in picture.panels:
        _draw_panel(drawing, panel)
    _draw_legend(drawing)
    height = round(drawing.y)
    drawing.root.attrib |= {
        "viewBox": f"0 0 {WIDTH} {height}",
        "width": str(WIDTH),
        "height": str(height),
        "role": "img",
        "font-family": "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif",
        "font-size": "12",
    }
    Xml.indent(drawing.root)
    return Xml.tostring(drawing.root, encoding="unicode") + "\n"


def assign_lanes(spans: Sequence[tuple[float, float]]) -> list[int]:
    """The lowest lane for each span, in order, in which it overlaps none before it.

    >>> assign_lanes([(0, 10), (10, 20), (5, 12), (12, 30)])
    [0, 0, 1, 1]
    """
    lanes: list[int] = []
    for low, high in spans:
        taken = set()
        # There is one lane so far for each span before this one.
        for lane, (other_low, other_high) in zip(lanes, spans, strict=False):
            if other_low < high and low < other_high:
                taken.add(lane)
        lowest = 0
        while lowest in taken:
            lowest += 1
        lanes.append(lowest)
    return lanes


def _draw_axis(drawing: Drawing) -> None:
    """The time axis with its ticks, and above it the dots, stacked where they would touch."""
    picture = drawing.picture
    levels = assign_lanes([_dot_span(drawing.x(dot.at_us), dot.label) for dot in picture.dots])
    line = 32 + 15 * max(levels, default=0)
    drawing.add("path", kind="axis", d=f"M{LEFT - 8} {line}H{RIGHT + 10}")
    for us in range(picture.low_us, picture.high_us + 1, picture.step_us):
        x = drawing.x(us)
        drawing.add("path", kind="axis", d=f"M{x} {line}v6")
        text = format_instant(us, picture.clock)
        # Half of the text lies on each side of the tick, and all of it inside the picture.
        half = len(text) * LETTER / 2
        inside = min(max(x, half), WIDTH - half)
        drawing.write(inside, line + 19, text, "ink middle")
    instants = [dot.at_us for dot in picture.dots]
    for dot, level in zip(picture.dots, levels, strict=True):
        is_stacked = instants.count(dot.at_us) > 1
        _draw_dot(drawing, dot, line - 15 * level, beside=is_stacked)
    drawing.y = line + 30


def _draw_dot(drawing: Drawing, dot: Dot, y: float, *, beside: bool) -> None:
    """A dot with its label above it, or where dots are stacked beside it."""
    x = drawing.x(dot.at_us)
    kind = "fixed" if dot.late else "row"
    if dot.marker:
        _draw_cross(drawing, kind, x - 5, y)
    else:
        drawing.add("circle", cx=x, cy=y, r=5, kind=kind, data_at=dot.at_us)
    colour = "fixed" if dot.late else "ink"
    if beside:
        drawing.write(x + 8, y - 4, dot.label, colour)
    else:
        drawing.write(x, y - 9, dot.label, f"{colour} middle")


def _draw_panel(drawing: Drawing, panel: Panel) -> None:
    """The bars of one run in as many rows as they need, and the watermark across them."""
    top = drawing.y
    shapes = [_measure_bar(drawing, bar) for bar in panel.bars]
    rows = assign_lanes([(shape.low, shape.high) for shape in shapes])
    bottom = top + 20 + LANE * (max(rows, default=0) + 1)
    for dot in drawing.picture.dots:
        if dot.run <= panel.run:
            drawing.add("path", kind="guide", d=f"M{drawing.x(dot.at_us)} {top + 14}V{bottom}")
    _draw_watermark(drawing, panel, top, bottom)
    for bar, shape, row in zip(panel.bars, shapes, rows, strict=True):
        _draw_bar(drawing, bar, shape.x0, shape.x1, top + 20 + LANE * row)
    drawing.y = bottom + 8


def _draw_watermark(drawing: Drawing, panel: Panel, top: float, bottom: float) -> None:
    """The title of a panel, and the watermark as a line if it lies on the axis."""
    watermark_us = panel.watermark_us
    picture = drawing.picture
    title = ""
    if len(picture.panels) > 1 or watermark_us is not None:
        title = f"after run {panel.run}"
    if watermark_us is not None:
        title += f", W = {format_instant(watermark_us, picture.clock)}"
    drawing.write(LEFT - 8, top + 10, title, "ink bold")
    if watermark_us is None or not picture.low_us <= watermark_us <= picture.high_us:
        return
    x = drawing.x(watermark_us)
    # Where the title is in the way, the line begins under it and has no letter.
    is_under_title = x < LEFT + len(title) * LETTER
    begin = top + (14 if is_under_title else 2)
    drawing.add("path", kind="wide", d=f"M{x} {begin}V{bottom}", data_watermark=watermark_us)
    if not is_under_title:
        drawing.write(x + 4, top + 10, "W", "mark bold")


@dataclass(frozen=True)
class Shape:
    """Both ends of a bar, `x0` and `x1`, and what it takes up with its text, `low` to `high`."""

    x0: float
    x1: float
    low: float
    high: float


def _measure_bar(drawing: Drawing, bar: Bar) -> Shape:
    x0 = LEFT - 8.0 if bar.start_us is None else drawing.x(bar.start_us)
    x1 = RIGHT + 10.0 if bar.end_us is None else max(drawing.x(bar.end_us), x0 + LEAST)
    if _label_fits_inside(bar, x0, x1):
        return Shape(x0, x1, x0, x1)
    if _label_fits_right(bar, x1):
        return Shape(x0, x1, x0, x1 + _label_width(bar))
    return Shape(x0, x1, x0 - _label_width(bar), x1)


def _label_width(bar: Bar) -> float:
    return len(bar.label) * LETTER + 10


def _label_fits_inside(bar: Bar, x0: float, x1: float) -> bool:
    return _label_width(bar) <= x1 - x0


def _label_fits_right(bar: Bar, x1: float) -> bool:
    """Whether the text has room to the right of the bar."""
    return x1 + _label_width(bar) <= WIDTH


def _draw_bar(drawing: Drawing, bar: Bar, x0: float, x1: float, y: float) -> None:
    """Flat where the window is closed, round where it is open."""
    kind = "row"
    if bar.gone:
        kind = "gone"
    elif bar.corrected:
        kind = "fixed"
    is_endless = bar.start_us is None
    path = outline_endless_bar(x0, x1, y) if is_endless else outline_bar(x0, x1, y)
    group = drawing.add("g", data_start=bar.start_us, data_end=bar.end_us)
    drawing.add("path", group, kind=kind, d=path)
    inside_colour = "ink" if bar.gone else "white"
    outside_colour = "fixed" if bar.corrected else "ink"
    if _label_fits_inside(bar, x0, x1):
        drawing.write((x0 + x1) / 2, y + 14, bar.label, f"{inside_colour} middle", group)
    elif _label_fits_right(bar, x1):
        drawing.write(x1 + 5, y + 14, bar.label, outside_colour, group)
    else:
        drawing.write(x0 - 5, y + 14, bar.label, f"{outside_colour} right", group)


def outline_bar(x0: float, x1: float, y: float) -> str:
    """A bar from `x0` to `x1` with a round right end."""
    bend = min(ROUND, x1 - x0)
    return f"M{x0} {y}H{round(x1 - bend, 1)}q{bend} 0 {bend} {TALL / 2}t{-bend} {TALL / 2}H{x0}Z"


def outline_endless_bar(x0: float, x1: float, y: float) -> str:
    """A bar that goes on at both ends."""
    point = 9
    half = TALL / 2
    upper = f"M{x0} {y + half}l{point} {-half}H{x1 - point}"
    return f"{upper}l{point} {half}l{-point} {half}H{x0 + point}Z"


def _draw_legend(drawing: Drawing) -> None:
    """One entry for each shape and colour that the picture has."""
    dots = drawing.picture.dots
    bars: list[Bar] = []
    for panel in drawing.picture.panels:
        bars += panel.bars
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
    x = LEFT - 8.0
    y = drawing.y + 14
    for kind, shape, text, used in entries:
        if used:
            SHAPES[shape](drawing, kind, x, y)
            drawing.write(x + 16, y + 4, text, "ink")
            x += 42 + len(text) * 6.1
    drawing.y = y + 14


def _draw_circle(drawing: Drawing, kind: str, x: float, y: float) -> None:
    drawing.add("circle", cx=x + 5, cy=y, r=5, kind=kind)


def _draw_cross(drawing: Drawing, kind: str, x: float, y: float) -> None:
    colour = CORRECTED if kind == "fixed" else ROW
    cross = f"M{x} {y - 5}l10 10m0 -10l-10 10"
    drawing.add("path", d=cross, stroke=colour, stroke_width=2.6)


def _draw_short_bar(drawing: Drawing, kind: str, x: float, y: float) -> None:
    drawing.add("path", d=outline_bar(x - 8, x + 13, y - TALL / 2), kind=kind)


def _draw_short_endless_bar(drawing: Drawing, kind: str, x: float, y: float) -> None:
    drawing.add("path", d=outline_endless_bar(x - 12, x + 13, y - TALL / 2), kind=kind)


SHAPES: dict[str, Callable[[Drawing, str, float, float], object]] = {
    "circle": _draw_circle,
    "bar": _draw_short_bar,
    "endless": _draw_short_endless_bar,
    "cross": _draw_cross,
}
"""How the legend draws each shape."""


def format_instant(us: int, clock: str) -> str:
    """An instant as the axis writes it; days without a leading zero."""
    text = moment(us).strftime(clock)
    return text.lstrip("0") if clock.startswith("%d") else text


def _dot_span(x: float, label: str) -> tuple[float, float]:
    """What a dot takes up with its label."""
    half = max(len(label) * LETTER / 2 + 1, 5.5)
    return x - half, x + half
