"""Numbers -> figures as the plotting library plotly.js takes them. Values from values.

Colours are such that they can be told from a light and from a dark page. Text and lines of the axes
have the colours of the page, which its style sheet says.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import pairwise
from statistics import median_low
from typing import Any

from windowing.report.text import moment_or_none
from windowing.spec.duration import DAY, HOUR, MINUTE, SECOND

COLOURS = ("#2f7fd6", "#d0660b", "#2b8f68", "#9563d0", "#7a8494", "#d2455b", "#8a7a1f", "#1d8a9c")
"""Of the first, second, ... series; at least 3:1 against the page in both themes."""
_DASHES = ("solid", "dash", "dot", "dashdot")
_PATTERNS = ("", "/", ".", "x", "\\", "-", "|", "+")
_FEW = 5
"""Up to so many things are counted one by one on an axis."""
_UNITS = ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes"))
Figure = Mapping[str, Any]
TIMES: Figure = {"type": "date"}
"""An axis of times."""


@dataclass(frozen=True)
class Series:
    """Values under one name; a missing one leaves a gap."""

    name: str
    values: Sequence[float | None]


def choose_unit(lengths_us: Sequence[int | None]) -> tuple[int, str]:
    """The largest unit of which the longest length has two, or seconds.

    >>> choose_unit([5 * HOUR, None]), choose_unit([]), choose_unit([3 * DAY])
    ((3600000000, 'hours'), (1000000, 'seconds'), (86400000000, 'days'))
    """
    longest = max((abs(length) for length in lengths_us if length is not None), default=0)
    for unit, name in _UNITS:
        if longest >= 2 * unit:
            return unit, name
    return SECOND, "seconds"


def in_unit(lengths_us: Sequence[int | None], unit_us: int) -> list[float | None]:
    """Each length as a number of units, with four figures behind the point."""
    return [None if each is None else round(each / unit_us, 4) for each in lengths_us]


def name_axis(title: str) -> Figure:
    """An axis of names, such as the numbers of runs: there is nothing between two of them."""
    return {"title": {"text": escape(title)}, "type": "category"}


def draw_lines(x: Sequence[Any], series: Sequence[Series], axis: Figure, y_title: str) -> Figure:
    """A line for each series, with points, over names or times."""
    drawn = []
    for place, each in enumerate(series):
        line = {"color": _pick(COLOURS, place), "width": 2, "dash": _pick(_DASHES, place)}
        drawn.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": escape(each.name),
                "x": list(x),
                "y": list(each.values),
                "line": line,
                "marker": {"size": 5, "color": _pick(COLOURS, place)},
            }
        )
    highest = [value for each in series for value in each.values]
    return {"data": drawn, "layout": {"xaxis": axis, "yaxis": _number_axis(y_title, highest)}}


def break_line(starts: Sequence[int], series: Sequence[Series]) -> tuple[list[int], list[Series]]:
    """The points of lines, and one without a value where the next start is far.

    That is where it is more than twice the usual distance away; the point lies the usual one away.

    >>> break_line([0, 10, 20, 50], [Series("rows", [1, 2, 3, 4])])
    ([0, 10, 20, 30, 50], [Series(name='rows', values=[1, 2, 3, None, 4])])
    """
    distances = [after - before for before, after in pairwise(starts)]
    usual = median_low(distances) if distances else 0
    points: list[tuple[int, int | None]] = []
    for place, start in enumerate(starts):
        points.append((start, place))
        if place < len(distances) and distances[place] > 2 * usual:
            points.append((start + usual, None))
    broken = [
        Series(each.name, [None if place is None else each.values[place] for _, place in points])
        for each in series
    ]
    return [start for start, _ in points], broken


def draw_bars(x: Sequence[Any], series: Sequence[Series], x_title: str, y_title: str) -> Figure:
    """Bars of several series on top of each other."""
    drawn = [
        {"type": "bar", "name": escape(each.name), "x": _texts(x), "y": list(each.values)}
        | {"marker": _fill(place)}
        for place, each in enumerate(series)
    ]
    y_axis = _number_axis(y_title, _add_up(series))
    layout = {"xaxis": name_axis(x_title), "yaxis": y_axis, "barmode": "stack"}
    return {"data": drawn, "layout": layout}


def draw_rows(labels: Sequence[str], series: Sequence[Series], x_title: str) -> Figure:
    """Bars that lie, the first label on top; for labels that are too long to stand below a bar."""
    drawn = [
        {"type": "bar", "orientation": "h", "name": escape(each.name)}
        | {"x": list(each.values), "y": _texts(labels), "marker": _fill(place)}
        for place, each in enumerate(series)
    ]
    x_axis = _number_axis(x_title, _add_up(series))
    y_axis = {"autorange": "reversed", "automargin": True, "type": "category"}
    layout = {"xaxis": x_axis, "yaxis": y_axis, "barmode": "stack", "hovermode": "y unified"}
    return {"data": drawn, "layout": layout}


def to_time(us: int | None) -> str | None:
    """The instant as the library reads it, UTC; None beyond the years of a datetime.

    >>> to_time(0)
    '1970-01-01 00:00:00'
    """
    at = None if us is None else moment_or_none(us)
    return None if at is None else f"{at.astimezone(UTC).replace(tzinfo=None, microsecond=0)}"


def escape(text: str) -> str:
    """Text that the library shows as it is, although it reads some tags.

    >>> escape("a <b> & c")
    'a &lt;b&gt; &amp; c'
    """
    return html.escape(text, quote=False)


def shorten(text: str, longest: int) -> str:
    """The text, or its begin where it is too long for a label.

    >>> shorten("0123456789", 5)
    '0123…'
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def label_apart(texts: Iterable[str], longest: int = 40) -> list[str]:
    """Each text shortened; a label that is there before has a number, so that each has a bar.

    >>> label_apart(["0123456789", "01234", "0123999999"], 5)
    ['0123…', '01234', '0123… (2)']
    """
    labels: list[str] = []
    for text in texts:
        short = label = shorten(text, longest)
        number = 1
        while label in labels:
            number += 1
            label = f"{short} ({number})"
        labels.append(label)
    return labels


def _texts(values: Sequence[Any]) -> list[Any]:
    return [escape(value) if isinstance(value, str) else value for value in values]


def _fill(place: int) -> Mapping[str, Any]:
    pattern = {"shape": _pick(_PATTERNS, place), "fillmode": "overlay", "size": 6, "solidity": 0.2}
    return {"color": _pick(COLOURS, place), "pattern": pattern}


def _number_axis(title: str, highest: Sequence[float | None]) -> Figure:
    """An axis from 0; where there are few things to count, no tick lies between two numbers."""
    axis = {"title": {"text": escape(title)}, "rangemode": "tozero"}
    known = [value for value in highest if value is not None]
    is_few = all(isinstance(value, int) for value in known) and max(known, default=0) <= _FEW
    return {**axis, "dtick": 1} if is_few else axis


def _add_up(series: Sequence[Series]) -> list[float]:
    """How high the bars of all series are on top of each other."""
    columns = zip(*(each.values for each in series), strict=True)
    return [sum(value or 0 for value in column) for column in columns]


def _pick(choices: Sequence[str], place: int) -> str:
    return choices[place % len(choices)]
