"""Every recipe that operations lists is played on a day of the week that `make test-long` lives.

One that starts no JVM is played here as well.
"""

import ast
import re
from pathlib import Path

import pytest

from tests.support.operated_lake import DOCS, list_recipes
from tests.support.published_lake import PublishedLake
from tests.support.tutorial import checkout, filled, play, section
from windowing.ledger.table import read_history

ROOT = Path(__file__).parents[2]
WEEK = ROOT / "tests" / "system" / "test_week_of_operations.py"
BACK = ("operations/backfill-and-corrections.md", "Go back to an earlier publication")


def anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def list_played() -> set[str]:
    """The links to the sections whose headings the week names, and to those below them."""
    texts = [
        node.value
        for node in ast.walk(ast.parse(WEEK.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    pages = {text: (DOCS / text).read_text() for text in texts if text.endswith(".md")}
    found = set()
    for page, content in pages.items():
        for heading in texts:
            if re.search(rf"^#+ {re.escape(heading)}$", content, re.MULTILINE):
                below = re.findall(r"^#+ (.+)$", section(content, heading), re.MULTILINE)
                found |= {f"{page}#{anchor(title)}" for title in (heading, *below)}
    return found


@pytest.mark.parametrize("recipe", sorted(list_recipes()))
def test_a_recipe_is_played_on_a_day_of_the_week(recipe: str) -> None:
    assert recipe in list_played(), f"{recipe} needs a day in {WEEK.name}"


@pytest.mark.slow
def test_readers_go_back_to_an_earlier_publication_by_the_recipe(tmp_path: Path) -> None:
    lake = PublishedLake(tmp_path)
    for n in (1, 5000):
        lake.run({("JFK", 1): n})
        lake.publish()
    right, wrong = (entry.seq for entry in read_history(lake.pipeline).publications)
    page, heading = BACK
    recipe = section((DOCS / page).read_text(), heading)
    words = {"SPEC": lake.spec.name, "NUMBER": str(right)}
    ((_, printed),) = play(filled(recipe, words), tmp_path, checkout(tmp_path / "bin", ROOT))
    assert f"from publication {right}" in printed
    assert "5000" in printed, "what differs is shown before anything is done"
    assert [row["n"] for row in lake.read()] == [1]
    newest = read_history(lake.pipeline).publications[-1]
    assert newest.seq > wrong
    assert "a price list was wrong" in (newest.note or "")
