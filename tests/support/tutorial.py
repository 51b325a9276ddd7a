"""A page of the documentation as its readers follow it.

Files are saved, commands are typed, outputs are compared.

    page -> steps, in the order of the page -> a directory in which they are played
        -> what each command printed

Three conventions make a page playable. A text that ends with "`name`:" stands before each file.
Commands are `bash` blocks. A `text` block is the whole standard output of the `bash` block before
it. The comment SKIP before a `bash` block keeps it from being played.

A recipe is a section of a page, played in the same way. Its words in capitals and its examples
stand for what the reader has.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.sessions.profiles import TINY

SKIP = "<!-- not run by the test -->"
PATIENCE = 1200
"""Seconds after which a block of commands has hung.

Machines that do other work, too, need minutes for each.
"""
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w-][\w./-]*)`:\s*$")
_KEPT = ("HOME", "JAVA_HOME", "LANG", "LC_ALL", "PATH", "PYTHONDONTWRITEBYTECODE", "TMPDIR")


@dataclass(frozen=True)
class File:
    """A file that the reader saves."""

    line: int
    name: str
    text: str


@dataclass(frozen=True)
class Commands:
    """A block of commands; `output` is what the page shows of their standard output.

    None where it shows none.
    """

    line: int
    text: str
    output: str | None = None
    skipped: bool = False


Step = File | Commands


def steps(page: str) -> list[Step]:
    """The steps of a page, in order.

    ValueError for a block that is neither a file, nor commands, nor an output.
    """
    found: list[Step] = []
    end = 0
    for block in _FENCE.finditer(page):
        before, line = page[end : block.start()], page.count("\n", 0, block.start()) + 1
        kind, text, end = block[1], block[2], block.end()
        last = found[-1] if found else None
        if kind == "bash":
            found.append(Commands(line, text, skipped=before.rstrip().endswith(SKIP)))
        elif kind == "text" and isinstance(last, Commands) and not before.strip():
            found[-1] = Commands(last.line, last.text, text, last.skipped)
        elif name := _FILE.search(before.rstrip()):
            found.append(File(line, name[1], text))
        else:
            raise ValueError(
                f"line {line}: a {kind or 'plain'} block that is no command, no output, and has "
                f"no file name before it"
            )
    return found


def section(page: str, heading: str) -> str:
    """What stands under a heading of a page, up to the next heading of its level or above.

    ValueError where no heading is called so, or where nothing in the section can be played.
    """
    bare = _FENCE.sub(lambda block: re.sub(r"^#", " ", block[0], flags=re.MULTILINE), page)
    found = re.search(rf"^(#+) {re.escape(heading)}$", bare, re.MULTILINE)
    if found is None:
        raise ValueError(f"no heading is called {heading!r}")
    next_one = re.compile(rf"^#{{1,{len(found[1])}}} ", re.MULTILINE).search(bare, found.end())
    text = page[found.end() : next_one.start() if next_one else len(page)]
    if not steps(text):
        raise ValueError(f"nothing under {heading!r} can be played")
    return text


def filled(recipe: str, values: Mapping[str, str]) -> str:
    """The recipe as a reader types it, with each word of `values` replaced by its value.

    ValueError for a word that the recipe does not have.
    """
    for word, value in values.items():
        whole = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
        if not whole.search(recipe):
            raise ValueError(f"the recipe does not say {word!r}")
        recipe = whole.sub(lambda _, value=value: value, recipe)
    return recipe


def play(
    page: str, directory: Path, environment: Mapping[str, str]
) -> Iterator[tuple[Commands, str]]:
    """Plays the page in `directory`.

    Returns each block of commands that is not skipped, and what it printed, as `comparable` has it.

    AssertionError with the end of both streams where a command fails.
    """
    for step in steps(page):
        if isinstance(step, File):
            path = directory / step.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text)
        elif not step.skipped:
            yield step, comparable(_printed(step, directory, environment), directory)


def _printed(step: Commands, directory: Path, environment: Mapping[str, str]) -> str:
    words = ["bash", "-euo", "pipefail", "-c", step.text]
    done = subprocess.run(
        words,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    if done.returncode:
        told = f"{done.stdout[-2000:]}{done.stderr[-8000:]}"
        raise AssertionError(f"line {step.line} ended with {done.returncode}\n{step.text}{told}")
    return done.stdout


def comparable(text: str, directory: Path) -> str:
    """A text without what varies.

    That is the directory, blanks at the ends of lines, blank lines at both ends and more than one
    blank line in a row.
    """
    lines = (line.rstrip() for line in text.replace(str(directory), "...").splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def checkout(directory: Path, root: Path) -> dict[str, str]:
    """The environment of a reader.

    Spark gets the settings of light commands, because compiling would take most of the time: half
    of a run of few rows. A command that fails leaves its stack trace.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name, words in (("python", ""), ("tidemark", "-m jobs ")):
        command = directory / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        command.chmod(0o755)
    settings = directory / "quick.properties"
    settings.write_text("".join(f"{name} {value}\n" for name, value in TINY.items()))
    spark = {"PYSPARK_SUBMIT_ARGS": f'--properties-file "{settings}" pyspark-shell'}
    return {**environment(directory), **spark, "PYTHONPATH": str(root), "TIDEMARK_DEBUG": "1"}


def environment(binaries: Path) -> dict[str, str]:
    """The environment of a reader whose `python` and `tidemark` lie in `binaries`."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PATH": f"{binaries}{os.pathsep}{kept.get('PATH', os.defpath)}"}
