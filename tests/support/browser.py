"""A browser without a window, for pages that are looked at as readers do.

It is the Chromium of this machine; Debian's package is called `chromium`. Nothing is downloaded.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Chromium refuses to run as root with its sandbox, and /dev/shm may be small in a container.
_ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage")

# The colour of every visible element that has text of its own, and of what lies behind it.
TEXT_COLOURS = """() => {
  const seen = new Set();
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)" && colour !== "transparent") return colour;
    }
    return "rgb(255, 255, 255)";
  };
  for (const element of document.querySelectorAll("body *")) {
    if (element.closest("script, noscript, .hoverlayer")) continue;
    const has = [...element.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
    if (!has || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    seen.add(`${colour}|${behind(element)}`);
  }
  return [...seen];
}"""


@dataclass
class Opened:
    """A page in the browser, what it complained of and what it requested besides itself."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def started_browser() -> Iterator[Browser]:
    """The browser; skips the test, with what to install, where there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on PATH; install `chromium`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def open_page(browser: Browser, file: Path, theme: str, size: tuple[int, int]) -> Opened:
    """The page as somebody sees it whose system is "light" or "dark", at this width and height."""
    viewport = ViewportSize(width=size[0], height=size[1])
    scheme = "dark" if theme == "dark" else "light"
    page = browser.new_page(viewport=viewport, color_scheme=scheme)
    opened = Opened(page)
    page.on("console", lambda message: opened.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    page.on("request", lambda request: opened.requests.append(request.url))
    page.goto(file.as_uri())
    opened.requests.remove(file.as_uri())
    return opened


def contrast(pair: str) -> float:
    """The ratio of two colours, `rgb(...)|rgb(...)`, as WCAG 2 defines it."""
    lights = sorted(map(_luminance, pair.split("|")), reverse=True)
    return (lights[0] + 0.05) / (lights[1] + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = map(_linearise, parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linearise(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
