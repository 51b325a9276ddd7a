"""The pictures of the documentation.

Bars lie where the rows say, and every page has the pictures and tables it names.
"""

import re
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from docs.draw.__main__ import PAGES
from docs.draw.lake import Row, at
from docs.draw.picture import Bar, Dot, Panel, Picture
from docs.draw.scenes import SCENES, Shot, make_picture
from docs.draw.svg import LEFT, RIGHT, TALL, WIDTH, assign_lanes, draw_picture
from docs.draw.tables import MADE, splice_tables
from windowing.grid.zone import micros

DOCS = Path(__file__).parents[1] / "docs"
LOW, HIGH = micros(at("10:00")), micros(at("11:00"))
NUMBER = r"(-?[\d.]+)"


def minutes(n: float) -> int:
    """An instant so many minutes after ten."""
    return LOW + int(n * 60_000_000)


def drawn(*bars: Bar, dots: tuple[Dot, ...] = ()) -> Xml.Element:
    """The picture of an hour, one panel."""
    return Xml.fromstring(
        draw_picture(Picture("an hour", LOW, HIGH, 600_000_000, dots, (Panel(1, bars),)))
    )


def found(root: Xml.Element, tag: str, attribute: str | None = None) -> list[Xml.Element]:
    """The elements of one tag, those that have an attribute."""
    every = root.iter(f"{{http://www.w3.org/2000/svg}}{tag}")
    return [e for e in every if attribute is None or attribute in e.attrib]


def ends(group: Xml.Element) -> tuple[float, float, float]:
    """Left end, right end and top of a bar's outline: M left top H ... q bend 0 bend half t ..."""
    (path,) = found(group, "path")
    left, top, straight, bend = re.match(
        rf"M{NUMBER} {NUMBER}H{NUMBER}q{NUMBER} ", path.attrib["d"]
    ).groups()
    return float(left), float(straight) + float(bend), float(top)


def x(us: int) -> float:
    """Where an instant of the hour lies."""
    return LEFT + (us - LOW) / (HIGH - LOW) * (RIGHT - LEFT)


def row(
    start: str, end: str, total: float, *, run: int = 1, revision: int = 0, **more: object
) -> Row:
    """A row of an output, as it is read."""
    return {
        "key": "a",
        "window_start": at(start),
        "window_end": at(end),
        "n": 1,
        "total": total,
        "run": run,
        "revision": revision,
        **more,
    }


def scene(name: str, *shots: list[Row], watermark: datetime | None = None) -> Picture:
    """The picture of a scene whose output held these rows after each run."""
    return make_picture(
        next(s for s in SCENES if s.name == name), [Shot(rows, watermark) for rows in shots]
    )


def test_bars_lie_where_their_windows_do() -> None:
    windows = [(minutes(2), minutes(19)), (minutes(28), minutes(48)), (minutes(0), minutes(60))]
    groups = found(drawn(*(Bar(start, end, "5") for start, end in windows)), "g")
    assert [(int(g.attrib["data-start"]), int(g.attrib["data-end"])) for g in groups] == windows
    for group, (start, end) in zip(groups, windows, strict=True):
        assert ends(group)[:2] == pytest.approx((x(start), x(end)), abs=0.2)


def test_dots_lie_on_their_times() -> None:
    times = [minutes(0), minutes(17.5), minutes(60)]
    circles = found(drawn(dots=tuple(Dot(t, "1") for t in times)), "circle", "data-at")
    assert [float(c.attrib["cx"]) for c in circles] == pytest.approx([x(t) for t in times], abs=0.1)


def test_neighbours_share_a_lane_and_overlaps_do_not() -> None:
    root = drawn(
        Bar(minutes(0), minutes(20), "1"),
        Bar(minutes(20), minutes(40), "2"),
        Bar(minutes(10), minutes(30), "3"),
    )
    tops = [ends(group)[2] for group in found(root, "g")]
    assert tops[0] == tops[1]
    assert tops[2] >= tops[0] + TALL


def test_a_text_too_long_for_its_bar_stands_beside_it_and_keeps_its_room() -> None:
    root = drawn(Bar(minutes(0), minutes(1), "a long text"), Bar(minutes(2), minutes(10), "4"))
    (beside,) = (t for t in found(root, "text") if t.text == "a long text")
    assert float(beside.attrib["x"]) > ends(found(root, "g")[0])[1]
    assert ends(found(root, "g")[0])[2] != ends(found(root, "g")[1])[2]


def test_lanes_are_lowest_first_and_free_of_overlaps() -> None:
    spans = [(0, 10), (3, 5), (5, 7), (10, 12), (4, 11)]
    placed = assign_lanes(spans)
    assert placed == [0, 1, 1, 0, 2]
    for lane in set(placed):
        inside = sorted(span for span, n in zip(spans, placed, strict=True) if n == lane)
        assert all(a[1] <= b[0] for a, b in pairwise(inside))


def test_what_a_run_corrected_or_deleted_is_drawn_so() -> None:
    before = [
        row("10:02", "10:19", 5, last_event=at("10:09")),
        row("10:28", "10:48", 7, last_event=at("10:38")),
    ]
    after = [row("10:02", "10:48", 15, run=2, revision=1, last_event=at("10:38"))]
    first, second = scene("session", before, after).panels
    assert [(b.corrected, b.gone) for b in first.bars] == [(False, False)] * 2
    assert [(b.corrected, b.gone) for b in second.bars] == [(True, False), (False, True)]
    assert [b.start_us for b in second.bars] == [micros(at("10:02")), micros(at("10:28"))]


def test_a_row_that_a_run_left_alone_keeps_its_colour() -> None:
    rows = [row("10:00", "10:10", 5, run=1, revision=1)]
    assert [p.bars[0].corrected for p in scene("tumbling", rows, rows).panels] == [True, False]


def test_an_event_older_than_an_earlier_run_came_late() -> None:
    dots = scene("tumbling", [], []).dots
    assert [d.at_us for d in dots if d.late] == [micros(at("10:16"))]
    assert [d.run for d in dots if d.late] == [2]


def test_a_window_without_bounds_spans_the_picture() -> None:
    (group,) = found(drawn(Bar(None, None, "all")), "g")
    assert "data-start" not in group.attrib
    left, right = re.match(rf"M{NUMBER} .*H{NUMBER}l", found(group, "path")[0].attrib["d"]).groups()
    assert float(left) < LEFT
    assert float(right) <= WIDTH


def test_a_table_replaces_what_stands_between_its_comments_only() -> None:
    page = "a\n<!-- made: x -->\nold\n<!-- end -->\nb\n<!-- made: y -->\nkept\n<!-- end -->\n"
    assert splice_tables(page, {"x": "new"}) == page.replace("old", "new")


@pytest.mark.parametrize("page", PAGES)
def test_every_picture_a_page_names_is_there(page: str) -> None:
    named = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (DOCS / page).read_text())
    assert not [name for name in named if not (DOCS / name).is_file()]


@pytest.mark.parametrize("page", PAGES)
def test_every_table_a_page_names_was_made(page: str) -> None:
    text = (DOCS / page).read_text()
    blocks = list(MADE.finditer(text))
    assert len(blocks) == text.count("<!-- made:") == text.count("<!-- end -->")
    assert not [block[2] for block in blocks if block[0].count("\n") < 2]


def test_windows_md_shows_every_scene_and_no_picture_is_left_over() -> None:
    named = set(re.findall(r"\(windows/(\w+)\.svg\)", (DOCS / "windows.md").read_text()))
    assert named == {s.name for s in SCENES} == {f.stem for f in (DOCS / "windows").glob("*.svg")}


@pytest.mark.parametrize("name", [s.name for s in SCENES])
def test_the_bars_of_a_picture_agree_with_its_own_axis(name: str) -> None:
    root, span = (
        Xml.parse(DOCS / "windows" / f"{name}.svg").getroot(),
        next(s.span for s in SCENES if s.name == name),
    )
    low, high = (micros(at(text)) for text in span[:2])
    for group in found(root, "g", "data-start"):
        start, end = (
            LEFT + (int(group.attrib[n]) - low) / (high - low) * (RIGHT - LEFT)
            for n in ("data-start", "data-end")
        )
        assert ends(group)[0] == pytest.approx(start, abs=0.1)
        assert ends(group)[1] == pytest.approx(max(end, start + 7), abs=0.2)
