"""A report page as a reader without scripts has it: texts, tables and the numbers of its charts."""

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

_NEVER_CLOSED = ("meta", "br", "hr", "img", "input", "link")
_LOADING = ("src", "srcset", "data", "poster", "background")


@dataclass
class ReadSection:
    """A section: its text and where its links lead."""

    text: str = ""
    links: list[str] = field(default_factory=list)


@dataclass
class ReadPage:
    """What stands on a page; `tables` are by caption, each row by the names of its columns."""

    tags: set[str] = field(default_factory=set)
    sources: list[str] = field(default_factory=list)
    text: str = ""
    notices: list[str] = field(default_factory=list)
    cards: dict[str, str] = field(default_factory=dict)
    sections: dict[str, ReadSection] = field(default_factory=dict)
    tables: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    charts: dict[str, str] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)


def read_page(html: str) -> ReadPage:
    """The page of this HTML; AssertionError where its tags do not close each other."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser.page


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = ReadPage()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.section: ReadSection | None = None
        self.caption = ""
        self.columns: list[str] = []
        self.row: list[str] = []
        self.words = ""
        self.label = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.page.tags.add(tag)
        self.page.sources += [f"{tag} {name}" for name in _LOADING if name in given]
        if tag in _NEVER_CLOSED:
            return
        self.open.append((tag, given))
        self.words = ""
        if tag == "section":
            self.section = self.page.sections.setdefault(given["id"] or "", ReadSection())
        elif tag == "table":
            self.caption, self.columns = "", []
        elif tag == "tr":
            self.row = []
        elif tag == "a" and self.section is not None:
            self.section.links.append(given["href"] or "")
        elif tag == "div" and given.get("role") == "img":
            name = (given["id"] or "").removeprefix("chart-")
            self.page.charts[name] = given["aria-label"] or ""

    def handle_endtag(self, tag: str) -> None:
        opened, given = self.open.pop()
        assert opened == tag, f"</{tag}> closes <{opened}>"
        words = self.words.strip()
        if tag == "section":
            self.section = None
        elif tag == "caption":
            self.caption = words
        elif tag == "th":
            self.columns.append(words)
        elif tag == "td":
            self.row.append(words)
        elif tag == "tr" and self.row:
            rows = self.page.tables.setdefault(self.caption, [])
            rows.append(dict(zip(self.columns, self.row, strict=True)))
        elif tag == "dt":
            self.label = words
        elif tag == "dd":
            self.page.cards[self.label] = words
        elif tag == "p" and given.get("class") == "warn":
            self.page.notices.append(words)

    def handle_data(self, data: str) -> None:
        tag, given = self.open[-1] if self.open else ("", {})
        if tag in ("script", "style"):
            if given.get("id") == "figures":
                self.page.figures = json.loads(data)
            return
        self.words += data
        self.page.text += data
        if self.section is not None:
            self.section.text += data
