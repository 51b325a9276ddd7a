"""A browser without a window, for pages that are looked at as readers do.

It is the Chromium of this machine; Debian's package is called `chromium`. Nothing is downloaded.
"""

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
