"""What a page consists of, as values: cards, sections, charts and tables. No HTML, no colour names.

Every text is plain; the template escapes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windowing.report.text import NONE, cell

TABLED = 50
"""Rows of a table that grows with every run, newest first."""
DRAWN = 10 * TABLED
"""The runs of a chart, which are the newest ones."""


@dataclass(frozen=True)
class Column:
    """A column; `css` is "n" for numbers, "long" for texts that may wrap, else empty."""

    name: str
    css: str = ""


@dataclass(frozen=True)
class Cell:
    """A value as text, and the class that colours it."""

    text: str
    css: str = ""


@dataclass(frozen=True)
class Link:
    """Words, and the page that they lead to."""

    text: str
    href: str


@dataclass(frozen=True)
class Table:
    """Rows under columns; `caption` says what they are."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Chart:
    """A figure of the plotting library, and a sentence that says what it shows.

    `size` is "full", or "half" where two of them share a line.
    """

    name: str
    label: str
    figure: Mapping[str, Any]
    size: str = "full"


@dataclass(frozen=True)
class Part:
    """A sentence with a link behind it, a chart, and what it shows as a table.

    Each may be missing. A table below a chart is folded until someone opens it.
    """

    title: str = ""
    text: str = ""
    chart: Chart | None = None
    table: Table | None = None
    link: Link | None = None


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it; `name` is how the page links to it."""

    name: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class View:
    """The whole page; `notices` are what someone should check, `values` whether rows are shown."""

    title: str
    subtitle: str
    notices: tuple[str, ...]
    privacy: Cell
    cards: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]

    @property
    def charts(self) -> tuple[Chart, ...]:
        """Every chart of the page in its order."""
        parts = (part for section in self.sections for part in section.parts)
        return tuple(part.chart for part in parts if part.chart is not None)


def numbers(*names: str) -> tuple[Column, ...]:
    """Columns of numbers."""
    return tuple(Column(name, "n") for name in names)


def make_table(
    caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Any]]
) -> Table | None:
    """A table of plain values and cells; None where there is no row."""
    found = tuple(tuple(_to_cell(value) for value in row) for row in rows)
    return Table(caption, tuple(columns), found) if found else None


def name_newest(what: str, total: int, most: int = TABLED) -> str:
    """The caption of a table that has at most the `most` newest of `total` things.

    >>> name_newest("runs", 50), name_newest("runs", 51)
    ('runs, newest first', 'the newest 50 of 51 runs')
    """
    if total <= most:
        return f"{what}, newest first"
    return f"the newest {most:,} of {total:,} {what}"


def name_newest_drawn(what: str, total: int) -> str:
    """The caption of such a table below a chart that has more of them.

    >>> name_newest_drawn("runs", 60)
    'the newest 50 runs; the chart has all 60'
    """
    if total <= TABLED:
        return name_newest(what, total)
    drawn = f"all {total:,}"
    if total > DRAWN:
        drawn = f"the newest {DRAWN} of {total:,}"
    return f"the newest {TABLED} {what}; the chart has {drawn}"


def _to_cell(value: Any) -> Cell:
    if isinstance(value, Cell):
        return value
    # An empty text looks like a value that isn't there.
    return Cell(cell(value) or NONE)
