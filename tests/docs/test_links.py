"""Links between pages lead somewhere: to a file that is there, and to a heading of it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"(?<!`)\[[^\]]+\]\(([^)\s]+)\)")
PLACE = re.compile(r"`((?:bench|bin|dags|docs|expectations|jobs|tests|windowing)/[a-z\d_./-]+)`")
FOLDERS = "bench|bin|dags|docker|docs|expectations|jobs|pipelines|tests|windowing"
TYPED = re.compile(rf"(?<![\w./$-])((?:{FOLDERS})/[\w./-]*\w)")
"""A path of the repository that a reader types; those of other directories have more before it."""
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(page: str) -> set[str]:
    """The anchors that forges give to the headings of a page."""
    plain = (
        re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading)
        for heading in HEADING.findall(FENCE.sub("", page))
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere; those to other hosts are not followed."""
    found = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if "://" not in link and (
            not target.exists() or (anchor and anchor not in anchors(target.read_text()))
        ):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert not broken(page)


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text(
        "# One `two`: three\n[x](#one-two-three) [y](b.md) [z](#four)\n```\n[w](c.md)\n```\n"
    )
    assert broken(page) == ["b.md", "#four"]


def test_every_page_is_reached_from_the_readme() -> None:
    seen, new = {ROOT / "README.md"}, [ROOT / "README.md"]
    while new:
        page = new.pop()
        links = (
            link.partition("#")[0] for link in LINK.findall(page.read_text()) if "://" not in link
        )
        near = {(page.parent / link).resolve() for link in links if link.endswith(".md")} - seen
        seen |= near
        new += near
    assert not {page for page in PAGES if "adr" not in page.parts} - seen


def find_missing(page: str) -> list[str]:
    """The paths of the repository in the code blocks of a page where nothing is."""
    typed = {path for block in FENCE.findall(page) for path in TYPED.findall(block)}
    return sorted(path for path in typed if not (ROOT / path).exists())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_paths_that_a_reader_types_are_there(page: Path) -> None:
    assert find_missing(page.read_text()) == []


def test_a_path_that_is_not_there_is_found() -> None:
    block = "```bash\nrun pipelines/departures.yaml build/jobs/a pipelines/none.yaml\n```\n"
    assert find_missing(f"`jobs/none.py`\n\n{block}") == ["pipelines/none.yaml"]


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING.md", "docs/aggregates.md", "docs/reliability.md", "docs/glossary.md"]
)
def test_files_that_pages_name_are_there(page: str) -> None:
    named = PLACE.findall(FENCE.sub("", (ROOT / page).read_text()))
    assert not sorted({place for place in named if not (ROOT / place).exists()})
