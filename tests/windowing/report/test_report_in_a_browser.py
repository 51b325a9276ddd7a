"""The report as a reader sees it: in Chromium, light and dark, on a screen, a phone and paper."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.browser import (
    TEXT_COLOURS,
    Opened,
    contrast,
    open_page,
    started_browser,
)
from tests.support.report_facts import FACTS, MADE, SAMPLES
from tests.support.report_page import read_page
from windowing.report.page import render_page
from windowing.report.view import view_facts

pytestmark = pytest.mark.deep

SCREEN, PHONE = (1200, 800), (360, 740)
_MARKS = ".scatterlayer path.js-line, .barlayer .point path"
# The colours of lines and bars, of which some are a pattern, and what lies behind the charts.
_DRAWN = f"""() => [...new Set([...document.querySelectorAll("{_MARKS}")].map((mark) => {{
  const style = getComputedStyle(mark);
  let colour = style.fill === "none" ? style.stroke : style.fill;
  const pattern = /#([^"')]+)/.exec(colour);
  if (pattern) {{
    const ground = document.getElementById(pattern[1]).querySelector("rect, path");
    colour = getComputedStyle(ground).fill;
  }}
  return `${{colour}}|${{getComputedStyle(mark.closest("figure")).backgroundColor}}`;
}}))]"""
_WIDER = """() => [...document.querySelectorAll("body *")]
  .filter((each) => !each.closest(".wide") && !each.closest("svg"))
  .filter((each) => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((each) => each.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_browser() as started:
        yield started


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with everything that a page can have."""
    made = tmp_path_factory.mktemp("page") / "report.html"
    facts = replace(FACTS, samples=SAMPLES)
    made.write_text(render_page(view_facts(facts, MADE, "_docs/a/index.html")), "utf-8")
    return made


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[SCREEN, PHONE], ids=["screen", "phone"])
def opened(
    browser: Browser, file: Path, theme: str, request: pytest.FixtureRequest
) -> Iterator[Opened]:
    """The page in each theme and size."""
    found = open_page(browser, file, theme, request.param)
    yield found
    found.page.close()


def test_it_is_drawn_without_a_complaint_or_a_request(opened: Opened, file: Path) -> None:
    charts = read_page(file.read_text()).charts
    for name in charts:
        place = opened.page.locator(f"#chart-{name}")
        assert place.locator(_MARKS).count() > 0, f"nothing is drawn for {name}"
        box = place.bounding_box()
        assert box is not None and box["width"] > 200 and box["height"] > 100
    assert opened.complaints == []
    assert opened.requests == []


def test_nothing_is_wider_than_the_page(opened: Opened) -> None:
    assert opened.page.evaluate(_WIDER) == []


def test_every_text_can_be_read_and_every_line_be_seen(opened: Opened) -> None:
    opened.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    texts, drawn = opened.page.evaluate(TEXT_COLOURS), opened.page.evaluate(_DRAWN)
    assert len(texts) > 5 and len(drawn) > 3
    assert {pair: contrast(pair) for pair in texts if contrast(pair) < 4.5} == {}
    assert {pair: contrast(pair) for pair in drawn if contrast(pair) < 3} == {}


def test_the_theme_is_that_of_the_system(browser: Browser, file: Path) -> None:
    papers = {}
    for theme in ("light", "dark"):
        page = open_page(browser, file, theme, SCREEN).page
        papers[theme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.close()
    white = "|rgb(255, 255, 255)"
    assert contrast(papers["light"] + white) < 1.2
    assert contrast(papers["dark"] + white) > 15


def test_paper_is_white_and_has_every_table(browser: Browser, file: Path) -> None:
    page = open_page(browser, file, "dark", SCREEN).page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert {p: contrast(p) for p in page.evaluate(TEXT_COLOURS) if contrast(p) < 4.5} == {}
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
    assert page.pdf().startswith(b"%PDF")
    page.close()


def test_a_keyboard_reaches_every_link_and_opens_every_table(browser: Browser, file: Path) -> None:
    page = open_page(browser, file, "light", SCREEN).page
    wanted = page.locator("a, summary").count()
    reached = set()
    for _ in range(wanted + 60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "[...document.querySelectorAll('a, summary')].indexOf(document.activeElement)"
            )
        )
    assert {*range(wanted)} <= reached
    summary = page.locator("summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("details[open] table").first.is_visible()
    page.close()


def test_pointing_at_a_chart_tells_its_numbers(browser: Browser, file: Path) -> None:
    page = open_page(browser, file, "dark", SCREEN).page
    page.locator("#chart-rows").scroll_into_view_if_needed()
    box = page.locator("#chart-rows .nsewdrag").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
    page.wait_for_selector("#chart-rows .hoverlayer text")
    told = page.locator("#chart-rows .hoverlayer").text_content() or ""
    newest = FACTS.runs[-1]
    assert str(newest.run) in told
    assert f"{newest.accepted:,}" in told or str(newest.accepted) in told
    page.close()


def test_a_page_that_draws_nothing_is_found(browser: Browser, tmp_path: Path) -> None:
    """The checks above can fail: a script that the policy does not know is a complaint."""
    file = tmp_path / "broken.html"
    html = render_page(view_facts(FACTS, MADE)).replace("Plotly.newPlot", "Plotly.noPlot")
    image = '<img src="http://127.0.0.1:9/x.png">'
    file.write_text(html.replace("<main>", f"<main>{image}"), "utf-8")
    found = open_page(browser, file, "light", SCREEN)
    assert found.page.locator(_MARKS).count() == 0
    assert any("Content Security Policy" in complaint for complaint in found.complaints)
    assert found.requests == ["http://127.0.0.1:9/x.png"]
    found.page.close()
