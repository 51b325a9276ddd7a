"""The tutorial does what it says.

Its files and commands are taken from the page, and its outputs are what the commands print.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.tutorial import (
    SKIP,
    Commands,
    File,
    Step,
    checkout,
    comparable,
    filled,
    play,
    section,
    steps,
)

ROOT = Path(__file__).parents[2]
TUTORIAL, QUICKSTART = (
    (ROOT / "docs" / name).read_text() for name in ("tutorial.md", "quickstart.md")
)
OWN_FILE = "From a file of your own"
PAGE = f"""
Save this as `a/b.csv`:

```csv
x
```

```bash
echo 1
```

```text
1
```

{SKIP}
```bash
exit 1
```
"""


WARM = pytest.param("auto", id="warm")
COLD = pytest.param("off", id="cold", marks=pytest.mark.deep)


@pytest.fixture(params=[WARM, COLD])
def reader(jvm: None, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a reader whose commands share a JVM, or start one each."""
    reader = checkout(tmp_path / "bin", ROOT)
    reader |= {"TIDEMARK_ENGINE": request.param, "XDG_RUNTIME_DIR": str(tmp_path)}
    # With it commands use no engine.
    del reader["TIDEMARK_DEBUG"]
    yield reader
    subprocess.run([tmp_path / "bin" / "tidemark", "engine", "stop"], env=reader, check=True)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_tutorial_prints_what_it_shows(reader: dict[str, str], tmp_path: Path) -> None:
    here = tmp_path / "orders"
    here.mkdir()
    for step, printed in play(TUTORIAL, here, reader):
        assert step.output is None or printed == comparable(step.output, here), (
            f"docs/tutorial.md, line {step.line}"
        )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_file_of_your_own_becomes_windows_that_readers_use(
    reader: dict[str, str], tmp_path: Path
) -> None:
    here = tmp_path / "own"
    here.mkdir()
    orders = next(step for step in steps(QUICKSTART) if isinstance(step, File))
    (here / orders.name).parent.mkdir()
    (here / orders.name).write_text(orders.text)
    ((_, printed),) = play(section(QUICKSTART, OWN_FILE), here, reader)
    shown = printed.rpartition("shop.hourly, version ")[2]
    assert "[2026-03-02 10:00Z, 11:00Z)" in shown
    assert "65.50" in shown, "what the same orders come to in the pipeline above"
    assert shown.splitlines()[-1].endswith(" rows")


def test_few_commands_lead_from_a_file_to_windows_that_readers_use() -> None:
    (block,) = steps(section(QUICKSTART, OWN_FILE))
    assert isinstance(block, Commands)
    assert not block.skipped
    commands = block.text.splitlines()
    assert len(commands) <= 8
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    assert f"{words[len(commands) - 1]} commands lead to windows" in QUICKSTART
    assert commands[-1].startswith("tidemark show") and "--published" in commands[-1]


def test_only_airflow_is_not_run() -> None:
    skipped = [step.text for step in steps(TUTORIAL) if isinstance(step, Commands) and step.skipped]
    airflow = TUTORIAL.partition("## 6. Schedule it with Airflow")[2]
    assert skipped == [step.text for step in steps(airflow) if isinstance(step, Commands)]
    assert len(skipped) == TUTORIAL.count(SKIP) == 2


def test_most_outputs_are_shown() -> None:
    played = [step for step in steps(TUTORIAL) if isinstance(step, Commands) and not step.skipped]
    assert sum(step.output is not None for step in played) >= 2 * len(played) / 3


def test_the_quickstart_is_the_beginning_of_the_tutorial() -> None:
    beginning = QUICKSTART.partition(f"## {OWN_FILE}\n")[0]
    wanted = [bare(step) for step in steps(beginning) if isinstance(step, File) or not step.skipped]
    assert wanted == [bare(step) for step in steps(TUTORIAL)][: len(wanted)]


def bare(step: Step) -> Step:
    """The step, wherever it stands."""
    return replace(step, line=0)


def test_a_page_is_its_files_commands_and_outputs() -> None:
    assert steps(PAGE) == [
        File(4, "a/b.csv", "x\n"),
        Commands(8, "echo 1\n", "1\n"),
        Commands(17, "exit 1\n", skipped=True),
    ]


def test_a_block_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="line 3: a yaml block"):
        steps("Such as\n\n```yaml\na: 1\n```\n")


def test_a_page_is_played_in_its_directory(tmp_path: Path) -> None:
    page = PAGE.replace("echo 1", "cat a/b.csv; pwd")
    assert [printed for _, printed in play(page, tmp_path, checkout(tmp_path / "bin", ROOT))] == [
        "x\n..."
    ]


def test_a_command_that_fails_ends_the_page(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="ended with 3"):
        list(
            play(
                PAGE.replace("echo 1", "(exit 3) | cat"), tmp_path, checkout(tmp_path / "bin", ROOT)
            )
        )


def test_what_varies_is_left_out_of_the_comparison(tmp_path: Path) -> None:
    assert comparable(f"\n \n a  \n\n \n\n{tmp_path}/b\n", tmp_path) == " a\n\n.../b"


RECIPES = """
# Page

## One

Say NAME, NAMES and a-NAME:

```bash
# a comment is no heading
echo NAME
```

### Its end

```bash
echo 2
```

## Two

Nothing to type.
"""


def test_a_recipe_is_a_section_with_those_below_it() -> None:
    texts = [step.text for step in steps(section(RECIPES, "One")) if isinstance(step, Commands)]
    assert texts == ["# a comment is no heading\necho NAME\n", "echo 2\n"]
    assert section(RECIPES, "Its end").strip() == "```bash\necho 2\n```"


@pytest.mark.parametrize(
    ("heading", "why"),
    [("a comment is no heading", "no heading is called"), ("Two", "nothing under 'Two'")],
)
def test_a_section_without_a_recipe_is_refused(heading: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        section(RECIPES, heading)


def test_a_reader_replaces_whole_words() -> None:
    text = filled(section(RECIPES, "One"), {"NAME": "lab"})
    assert "Say lab, NAMES and a-NAME:" in text
    assert "echo lab\n" in text


def test_a_word_that_the_recipe_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match="does not say 'LAKE'"):
        filled(section(RECIPES, "One"), {"LAKE": "lake"})
