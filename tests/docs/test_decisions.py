"""The index of decisions agrees with them: title, status, and what replaced a part of each."""

import re
from dataclasses import dataclass
from pathlib import Path

ADR = Path(__file__).parents[2] / "docs" / "adr"
ROW = re.compile(r"^\| \[(\d{4}\. .+)\]\((.+\.md)\) \| (.+?) \| (.*?) ?\|$", re.MULTILINE)


@dataclass(frozen=True)
class Decision:
    """A decision by its file, as a page or as a row of the index."""

    file: str
    title: str
    replaced_by: frozenset[str]


def read_page(file: Path) -> Decision:
    """The decision of a page; the status is its second paragraph."""
    title, status, _ = file.read_text().split("\n\n", 2)
    assert re.match(r"Status: accepted(; partly replaced by |$)", status), file
    replaced_by = re.findall(r"\[(\d{4})\]", status)
    return Decision(file.name, title.removeprefix("# "), frozenset(replaced_by))


def test_the_index_has_every_decision_as_its_page_has_it() -> None:
    rows = [
        Decision(file, title, frozenset(re.findall(r"\d{4}", replaced_by)))
        for title, file, _, replaced_by in ROW.findall((ADR / "README.md").read_text())
    ]
    pages = [read_page(file) for file in ADR.glob("0*.md")]
    assert sorted(rows, key=lambda row: row.file) == sorted(pages, key=lambda page: page.file)


def test_a_status_of_the_index_says_whether_a_part_was_replaced() -> None:
    for title, _, status, replaced_by in ROW.findall((ADR / "README.md").read_text()):
        assert status == ("partly replaced" if replaced_by else "accepted"), title


def test_a_decision_is_replaced_by_later_ones() -> None:
    for page in (read_page(file) for file in ADR.glob("0*.md")):
        assert all(later > page.file[:4] for later in page.replaced_by), page


def test_numbers_are_given_once_and_without_gaps() -> None:
    numbers = sorted(int(file.name[:4]) for file in ADR.glob("0*.md"))
    assert numbers == list(range(1, len(numbers) + 1))
