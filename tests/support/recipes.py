"""The programs of docs/recipes.md, as their readers run them: each in a process of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "recipes.md").read_text()
KILLED = 9
END = f"os._exit({KILLED})"


@dataclass(frozen=True)
class Recipe:
    """A program, and how it is started."""

    text: str
    environ: Mapping[str, str]

    def run(self, exit_code: int = 0) -> str:
        """What it prints; AssertionError where it ends in another way."""
        done = subprocess.run(
            [sys.executable, "-c", self.text],
            env={**os.environ, **self.environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )
        assert done.returncode == exit_code, f"{done.stdout}{done.stderr[-4000:]}"
        return done.stdout if exit_code == 0 else done.stderr

    def changed(self, before: str, after: str) -> "Recipe":
        """The program with another text in one place."""
        assert self.text.count(before) == 1, before
        return Recipe(self.text.replace(before, after), self.environ)

    def stopped_before(self, line: str, by: str = END) -> "Recipe":
        """The program that does something else before a line; it ends there, unless named."""
        (indent,) = re.findall(rf"^( *){re.escape(line)}", self.text, re.MULTILINE)
        return self.changed(f"{indent}{line}", f"{indent}{by}\n{indent}{line}")


def read_block(heading: str, language: str) -> str:
    """The first block of a language below a heading of the page."""
    _, found, below = PAGE.partition(f"\n## {heading}\n")
    assert found, heading
    match = re.search(rf"^```{language}\n(.*?)^```$", below, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1]
