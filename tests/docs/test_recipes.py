"""Every recipe that operations lists is played on a day of the week that `make test-long` lives."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.operated_lake import DOCS, list_recipes
from tests.support.tutorial import section

WEEK = Path(__file__).parents[1] / "system" / "test_week_of_operations.py"


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
