"""What one lane of the torture has done so far, kept so that a stop loses at most a round."""

import json
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path


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
