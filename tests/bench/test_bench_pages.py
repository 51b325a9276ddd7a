"""The numbers of the documentation are those of the stored results."""

from pathlib import Path

import pytest

from bench.figures import RESULTS, Result, Times, Took, at_least, at_most, store_result
from bench.pages import PAGES, TABLE, fill_tables


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_table_is_what_the_results_have(page: Path) -> None:
    text = page.read_text()
    assert text.count("<!-- end -->") == len(TABLE.findall(text)) > 0
    assert fill_tables(text, RESULTS) == text


def test_a_table_is_replaced_and_the_text_around_it_stays(tmp_path: Path) -> None:
    figures = (at_most("jobs", 26, 25, 45), at_least("ratio", 1.234, 3, 2, "wall 1.10"))
    times = (
        Times("load", "ours", (Took(2.0, 1.0), Took(1.0, 12.0), Took(3.0, 2.5))),
        Times("load", "theirs", (Took(1.0, 4.25),)),
        Times("more", "theirs", (Took(1.0, 1234.5),)),
    )
    store_result(Result("some", "python -m bench.some", figures, times), tmp_path / "some.json")
    page = "a\n<!-- figures some -->\nold\n<!-- end -->\nb\n<!-- times some -->\n<!-- end -->\nc\n"
    assert fill_tables(page, tmp_path) == (
        "a\n<!-- figures some -->\n"
        "| figure | measured |  | target | floor |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| jobs | 26 | at most | 25 | 45 |\n"
        "| ratio (wall 1.10) | **1.23** | at least | 3 | 2 |\n"
        "<!-- end -->\nb\n<!-- times some -->\n"
        "|  | ours | theirs |\n"
        "| --- | --- | --- |\n"
        "| load | 2.50 | 4.25 |\n"
        "| more |  | 1,234 |\n"
        "<!-- end -->\nc\n"
    )
