"""What one lane of the torture has done so far, kept so that a stop loses at most a round."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass
class Tally:
    """What was done so far, under one seed.

    `seconds` is how long the lane has been at work, `kills` counts by place, kill and family.
    """

    seed: str
    commits: list[str] = field(default_factory=list)
    rounds: int = 0
    seconds: float = 0
    done: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)

    def save(self, home: Path) -> None:
        """Writes it to a file in `home`, whole or not at all."""
        (draft := home / "tally.draft").write_text(json.dumps(vars(self)))
        draft.replace(home / "tally.json")

    @classmethod
    def load(cls, home: Path) -> "Tally":
        """The one in `home`, or a new one."""
        if not (home / "tally.json").exists():
            return cls(f"{time.time_ns() % 1_000_000}")
        said = json.loads((home / "tally.json").read_text())
        return cls(**said | {"done": Counter(said["done"]), "kills": Counter(said["kills"])})

    def count_lines(self, lines: Iterable[str]) -> None:
        """Adds what a process has printed: every line is a word and a number."""
        for line in lines:
            word, _, n = line.partition(" ")
            if word == "checked":
                self.done["comparisons"] += 1
                self.done["events compared"] += int(n)
            elif word in ("ran", "healed"):
                self.done["runs"] += 1
            elif word == "landed":
                self.done["events landed"] += int(n)
            elif word == "renewed":
                self.done["lakes begun"] += 1


def sum_tallies(tallies: Iterable[Tally]) -> Tally:
    """What lanes that ran beside each other have done together, in the time of the longest."""
    total = Tally("")
    seeds = []
    for tally in tallies:
        seeds.append(tally.seed)
        total.commits = list(dict.fromkeys([*total.commits, *tally.commits]))
        total.rounds += tally.rounds
        total.seconds = max(total.seconds, tally.seconds)
        total.done += tally.done
        total.kills += tally.kills
    total.seed = " and ".join(seeds)
    return total


def load_tally(home: Path) -> Tally:
    """The one in `home`, or a new one; from now on it counts what this commit does, too."""
    home.mkdir(parents=True, exist_ok=True)
    tally = Tally.load(home)
    tally.commits = list(dict.fromkeys([*tally.commits, _name_commit()]))
    return tally


def _name_commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def show_tally(tally: Tally, met: int, combinations: int) -> None:
    """Prints the figures; so many of all `combinations` were met."""
    hours = f"{tally.seconds / 3600:.1f} hours"
    title = f"seeds {tally.seed}, commit {', '.join(tally.commits)}, {hours}"
    table = Table(title=title)
    table.add_column("what")
    table.add_column("how many", justify="right")
    for name, n in {"rounds": tally.rounds, **tally.done}.items():
        table.add_row(name, f"{n:,}")
    table.add_row("combinations that were met", f"{met:,} of {combinations:,}")
    Console().print(table)
