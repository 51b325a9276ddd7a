"""Data Docs as a reader sees them: in Chromium, light and dark, and without another server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Browser

from expectations.docs import write_site
from expectations.library import import_great_expectations
from tests.support.browser import TEXT_COLOURS, contrast, open_page, started_browser
from windowing.location import Location

gx = import_great_expectations()
pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_browser() as started:
        yield started


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first page of a site about one output, which meets one of its expectations."""
    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_pandas("pandas").add_dataframe_asset(name="shop.hourly")
    whole = asset.add_batch_definition_whole_dataframe("whole")
    batch = whole.get_batch({"dataframe": pd.DataFrame({"n": [1, 2, 3]})})
    expected = [
        gx.expectations.ExpectColumnValuesToBeBetween(column="n", min_value=0, max_value=5),
        gx.expectations.ExpectColumnValuesToBeBetween(column="n", min_value=0, max_value=2),
        gx.expectations.ExpectColumnValuesToBeInSet(column="missing", value_set=["a"]),
    ]
    suite = context.suites.add(gx.ExpectationSuite(name="hourly", expectations=expected))
    result: Any = batch.validate(suite)
    result.meta["batch_spec"] = {"data_asset_name": "shop.hourly"}
    home = tmp_path_factory.mktemp("docs") / "run-1-entry-3"
    return write_site(context, {"hourly": result}, Location(str(home))).local


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360])
def test_every_page_can_be_read_and_loads_nothing(
    browser: Browser, site: Path, theme: str, width: int
) -> None:
    pages = sorted(site.parent.rglob("*.html"))
    assert len(pages) == 3, "index, suite and validation"
    for file in pages:
        opened = open_page(browser, file, theme, (width, 800))
        assert (opened.complaints, opened.requests) == ([], []), file
        texts = opened.page.evaluate(TEXT_COLOURS)
        assert len(texts) > 1
        assert {pair: contrast(pair) for pair in texts if contrast(pair) < 4.5} == {}, file
        paper = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (contrast(f"{paper}|rgb(255, 255, 255)") > 10) == (theme == "dark")
        opened.page.close()
