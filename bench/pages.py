"""Writes the tables of the documentation from stored results; nothing is measured here.

    python -m bench.pages

A page has a comment before and after each table, which is replaced:

    <!-- figures small_runs -->   what a theme measured, against target and floor
    <!-- times large_runs -->     median CPU seconds, a row for each phase
    <!-- end -->
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.figures import RESULTS, Figure, Result, Times, read_result
from bench.processes import ROOT

PAGES = (ROOT / "README.md", ROOT / "docs" / "performance.md")
TABLE = re.compile(
    r"(?P<begin><!-- (?P<kind>figures|times) (?P<theme>\w+) -->\n).*?(?=<!-- end -->)",
    re.DOTALL,
)


def main() -> int:
    """Writes the tables of all pages."""
    write_tables()
    return 0


def write_tables() -> None:
    """Replaces the tables of all pages by those of the results."""
    for page in PAGES:
        page.write_text(fill_tables(page.read_text(), RESULTS))


def fill_tables(text: str, results: Path) -> str:
    """The text of a page with its tables as the results in a directory have them."""

    def fill(found: re.Match[str]) -> str:
        result = read_result(results / f"{found['theme']}.json")
        make = make_figures_table if found["kind"] == "figures" else make_times_table
        return f"{found['begin']}{make(result)}"

    return TABLE.sub(fill, text)


def make_figures_table(result: Result) -> str:
    """A row for each figure; one that misses its floor is bold."""
    rows = [_describe_figure(each) for each in result.figures]
    return _make_table(("figure", "measured", "", "target", "floor"), rows)


def _describe_figure(figure: Figure) -> tuple[str, ...]:
    value = format_value(figure.value)
    if figure.verdict == "missed":
        value = f"**{value}**"
    beside = f" ({figure.beside})" if figure.beside else ""
    limits = (f"{figure.target:,g}", f"{figure.floor:,g}")
    return (figure.name + beside, value, figure.bound.value, *limits)


def make_times_table(result: Result) -> str:
    """A row for each phase, a column for each contender: median CPU seconds."""
    phases = list(dict.fromkeys(each.phase for each in result.times))
    contenders = list(dict.fromkeys(each.contender for each in result.times))
    rows = [(phase, *_list_cpu_seconds(result.times, phase, contenders)) for phase in phases]
    return _make_table(("", *contenders), rows)


def _list_cpu_seconds(times: Sequence[Times], phase: str, contenders: Sequence[str]) -> list[str]:
    """What each contender took in a phase; empty where it had no part in it."""
    took = {each.contender: each.median.cpu for each in times if each.phase == phase}
    return [format_value(took[name]) if name in took else "" for name in contenders]


def format_value(value: float) -> str:
    """A number with as many digits as it is worth; a count has all of them.

    >>> format_value(26), format_value(56.44), format_value(2.384), format_value(0.0765)
    ('26', '56.4', '2.38', '0.08')
    """
    if value >= 100 or isinstance(value, int):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _make_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
