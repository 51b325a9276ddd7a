"""A lake that somebody operates by the recipes of the docs, compared with an oracle.

Recipes are taken from the pages and played in one directory, in which the spec is `lab.yaml`.
"""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.oracle import Event
from tests.support.long_lived_pipeline import Life
from tests.support.pipeline_under_test import ARRIVAL, Lab
from tests.support.tutorial import filled, play, section
from windowing.spec.load import load_pipeline

DOCS = Path(__file__).parents[2] / "docs"
SPEC = "lab.yaml"
_LINK = re.compile(r"\]\((operations/[a-z-]+\.md#[a-z-]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_PATIENCE = 600
"""Seconds after which a command has hung."""


def list_recipes() -> set[str]:
    """The links of the page that lists all recipes, as `operations/deploy.md#upgrade`."""
    table = (DOCS / "operations.md").read_text().partition("## Recipes")[2].partition("\n## ")[0]
    return set(_LINK.findall(table))


@dataclass
class OperatedLake:
    """A pipeline whose operator types commands in `here`, with the environment `reader`.

    `changes` are what the operator has written into the spec, by field; `names` is what is typed
    for the words in capitals that every page has; `begun` are the links to the recipes so far.
    """

    life: Life
    reader: Mapping[str, str]
    changes: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(
        default_factory=lambda: {"SPEC": SPEC, "LAKE": "lake", "NAME": "lab"}
    )
    begun: set[str] = field(default_factory=set)

    @property
    def lab(self) -> Lab:
        """The pipeline and its oracle."""
        return self.life.lab

    @property
    def here(self) -> Path:
        """The directory in which commands are typed."""
        return self.lab.root

    def recipe(self, page: str, heading: str, **more: str) -> Iterator[str]:
        """Plays a recipe; each step plays its next block, and is what that printed.

        `more` are further words of the recipe, each with what the reader types for it.
        """
        text = section((DOCS / page).read_text(), heading)
        titles = (heading, *_HEADING.findall(text))
        self.begun |= {f"{page}#{title.lower().replace(' ', '-')}" for title in titles}
        words = {
            word: value for word, value in self.names.items() if re.search(rf"\b{word}\b", text)
        }
        played = play(filled(text, {**words, **more}), self.here, self.reader)
        return (printed for _, printed in played)

    def type_command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """`tidemark WORDS`, however it ends."""
        return subprocess.run(
            ["tidemark", *words],
            cwd=self.here,
            env=self.reader,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )

    def expect_code(self, code: int, *words: str) -> str:
        """`tidemark WORDS` ends with this code; what it says on stderr."""
        done = self.type_command(*words)
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stderr

    def save_spec(self, **changes: Any) -> None:
        """Writes the spec, with these fields and those that were changed before."""
        self.changes |= changes
        (self.here / SPEC).write_text(json.dumps(self.lab.spec() | self.changes))

    def load_spec(self) -> None:
        """Compares with the tables of the spec as it is saved."""
        self.lab.pipeline = load_pipeline(self.here / SPEC)

    def land(self, *more: Event) -> list[Event]:
        """A batch in the source, which nobody has run yet."""
        return self.lab.land([*self.life.batch(), *more])

    def run(self, events: list[Event]) -> None:
        """A run over what has landed, of the oracle as well."""
        self.expect_code(0, "run", SPEC)
        self.lab.truth.run(events, ARRIVAL)

    def deliver(self, *more: Event) -> None:
        """A batch lands and is run."""
        self.run(self.land(*more))

    def forget_rows(self, *gone: Event) -> None:
        """The source has these rows no more, and their times were reprocessed."""
        self.lab.landed[:] = [event for event in self.lab.landed if event not in gone]
        times = [event.t for event in gone if event.t is not None]
        self.lab.truth.backfill(self.lab.landed, min(times), max(times) + 1, ARRIVAL)

    def check(self) -> None:
        """Tables are the oracle's, and everything is consistent."""
        self.life.forget()
        self.lab.check()
        self.expect_code(0, "doctor", SPEC)
