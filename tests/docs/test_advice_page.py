"""The tables on the page about lateness are what `advise` prints of the history they name."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.cli.main import main
from tests.support.planted_shops import plant_shops

PAGE = Path(__file__).parents[2] / "docs" / "lateness.md"


@pytest.mark.slow
def test_the_page_shows_what_the_command_prints(tmp_path: Path) -> None:
    plant_shops(tmp_path)
    line = ["advise", str(tmp_path / "shops.yaml")]
    said = CliRunner().invoke(main, line, prog_name="tidemark").stdout
    printed = {row.rstrip() for row in said.replace(str(tmp_path), "/lake").splitlines()}
    block = PAGE.read_text().partition("```text\nshops: ")[2].partition("```")[0]
    shown = [f"shops: {block}".splitlines()[0], *block.splitlines()[1:]]
    assert len(shown) > 40
    assert [row for row in shown if row and row not in printed] == []
