"""Photographs the report of a pipeline that the engine ran, in Chromium, light and dark.

planned arrivals -> runs, validations, publications -> the page -> PNG
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Literal

from playwright.sync_api import Browser, ViewportSize, sync_playwright
from pyspark.sql import SparkSession

from jobs.publish import publish
from jobs.report import report
from jobs.run import run
from jobs.validate import validate
from windowing.location import Location
from windowing.report.page import render_page
from windowing.report.view import view_facts
from windowing.spec.load import load_pipeline
from windowing.storage import delta

PICTURES = Path(__file__).parents[1] / "report"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_BEGUN = datetime(2026, 3, 2, tzinfo=UTC)
_RUNS = 8
_EVERY = timedelta(hours=6)
_SCHEMA = "id string, shop string, at timestamp, price double"
_SIZE = ViewportSize(width=1100, height=2150)
_SPEC = """
name: orders
lake: lake
source: {table: lake/bronze/orders, event_time: at, key: [shop], event_id: id}
watermark: {delay: 30 minutes, allowed_lateness: 3 hours}
aggregates: {orders: count(), revenue: sum(price)}
windows:
  hourly: {kind: tumbling, size: 1 hour}
  daily: {kind: tumbling, size: 1 day}
expectations: {suite: orders}
"""
_SUITE = """
hourly:
  - type: expect_column_values_to_be_between
    kwargs: {column: orders, min_value: 1, max_value: 13}
"""


@dataclass(frozen=True)
class Order:
    """A source row and when it arrives."""

    id: str
    shop: str | None
    at: datetime
    price: float
    arrival: datetime


def photograph_report(spark: SparkSession, directory: Path) -> None:
    """Runs the pipeline in `directory`, and writes the pictures of its report."""
    page = directory / "report.html"
    page.write_text(_make_page(spark, directory), "utf-8")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise SystemExit(f"no browser: none of {', '.join(BROWSERS)} is on PATH")
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        _photograph(browser, page, "light")
        _photograph(browser, page, "dark")
        browser.close()


def _photograph(browser: Browser, page: Path, theme: Literal["light", "dark"]) -> None:
    tab = browser.new_page(viewport=_SIZE, color_scheme=theme)
    tab.goto(page.as_uri())
    tab.wait_for_selector(".chart .main-svg")
    tab.screenshot(path=PICTURES / f"{theme}.png")


def _make_page(spark: SparkSession, directory: Path) -> str:
    spec = directory / "orders.yaml"
    spec.write_text(_SPEC)
    (directory / "expectations").mkdir()
    (directory / "expectations" / "orders.yaml").write_text(_SUITE)
    pipeline = load_pipeline(spec)
    source = Location(str(directory / "lake" / "bronze" / "orders"))
    orders = list(_plan_orders())
    before = _BEGUN
    for number in range(1, _RUNS + 1):
        arrival = _BEGUN + number * _EVERY
        rows = [
            {"id": each.id, "shop": each.shop, "at": each.at, "price": each.price}
            for each in orders
            if before <= each.arrival < arrival
        ]
        delta.append(delta.rows(spark, rows, _SCHEMA), source)
        run(spark, pipeline, arrival)
        if validate(spark, pipeline).passed:
            publish(pipeline)
        elif number < _RUNS:
            publish(pipeline, "a sale")
        before = arrival
    facts = report(pipeline, lambda: spark)
    page = render_page(view_facts(facts, before + timedelta(minutes=20)))
    # Where it was drawn is nothing to show.
    return page.replace(str(directory), "")


def _plan_orders() -> Iterator[Order]:
    """Some orders an hour of each shop; most arrive at once, some hours later, a few twice."""
    chance = Random(7)
    for minute in range(0, int(_RUNS * _EVERY / timedelta(minutes=1)), 3):
        shop = chance.choice(("north", "south", "west"))
        at = _BEGUN + timedelta(minutes=minute, seconds=chance.randrange(60))
        delay = timedelta(minutes=chance.expovariate(1 / 4))
        if chance.random() < 0.04:
            delay = timedelta(minutes=chance.expovariate(1 / 300))
        number = f"{minute:05d}"
        known = shop if chance.random() > 0.01 else None
        yield Order(number, known, at, round(chance.uniform(5, 80), 2), at + delay)
        if chance.random() < 0.01:
            yield Order(number, known, at, 1.0, at + delay)
