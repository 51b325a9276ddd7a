"""Tortures pipelines for a while; stopped or killed, it goes on where it was.

    python -m tests.torture [--minutes 60] [--home build/torture]

Each round is a process that finishes what the last one left, compares all there is with what must
be, lives on for two runs, and is killed at a named place: itself, its JVM, or both. Every third
round it is killed while it finishes, too. After every fourth, in turn, two runs race, or two runs,
a backfill, a maintenance and a publication do, while somebody reads the pointer. The first
difference ends it.
"""

import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.support.killed_process import light
from tests.support.pipeline_under_test import ARRIVAL
from tests.torture.family import BASE, FAMILIES, MINUTE, Family
from windowing.crash import POINTS
from windowing.grid.zone import moment

ROOT = Path(__file__).parents[2]
KINDS = ("python", "jvm", "group")
STEPS = {
    "validate": "publish",
    "batch": "run",
    "state": "run",
    "state.swapped": "backfill",
    "output": "run",
}
"""The step that comes by a place, or by places of this kind, where it has another name."""
OF = ("run", "batch", "state", "output", "backfill", "maintain", "validate", "publish")
PLACES = [name for name in POINTS if name.split(".")[0] in OF]
LONG = 1200
"""Seconds in which whatever is started must have ended."""
COMBINATIONS = list(product(PLACES, KINDS, FAMILIES))


@dataclass
class Tally:
    """What was done so far, under one seed."""

    seed: str
    commits: list[str] = field(default_factory=list)
    rounds: int = 0
    seconds: float = 0
    done: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)

    def save(self, home: Path) -> None:
        """Writes it down, whole or not at all."""
        (draft := home / "tally.draft").write_text(json.dumps(vars(self)))
        draft.replace(home / "tally.json")

    @classmethod
    def of(cls, home: Path) -> "Tally":
        """The one in `home`, or a new one."""
        if not (home / "tally.json").exists():
            return cls(f"{time.time_ns() % 1_000_000}")
        said = json.loads((home / "tally.json").read_text())
        return cls(**said | {"done": Counter(said["done"]), "kills": Counter(said["kills"])})


def round_plan(n: int, seed: str) -> dict[str, Any]:
    """The plan of round `n`: in time every place meets every kind of kill in every family."""
    rng = Random(f"{seed}:{n}")
    order = Random(seed).sample(COMBINATIONS, len(COMBINATIONS))
    place, whom, family = order[n % len(order)]
    first = place.split(".")[0]
    kill = {
        "nth": rng.choice([1, 1, 2]) if first in ("state", "output") else 1,
        "whom": whom,
        "place": place,
    }
    heal = {"nth": rng.randint(1, 16), "whom": rng.choice(KINDS)} if n % 3 == 2 else None
    return {
        "family": family,
        "runs": 2,
        "step": STEPS.get(place, STEPS.get(first, first)),
        "heal": heal,
        "kill": kill,
    }


def start(home: Path, *command: str) -> "subprocess.Popen[str]":
    """A process of its own group.

    It has Spark's settings for little data, as far as it makes none itself. Its input ends with
    this one.
    """
    how = {
        "stdin": _ends(),
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        "env": light(home),
    }
    return subprocess.Popen(
        [sys.executable, "-m", *command], cwd=ROOT, start_new_session=True, **how
    )  # type: ignore[call-overload,no-any-return]


@cache
def _ends() -> int:
    """A descriptor that can be read to its end when this process has ended, however that was."""
    return os.pipe()[0]


def round_of(tally: Tally, home: Path) -> None:
    """One process, and a second if the first was killed while it finished another one's work."""
    plan = round_plan(tally.rounds, tally.seed)
    for turn in [plan, plan | {"heal": None}] if plan["heal"] else [plan]:
        process = start(home, "tests.torture.worker", str(home), tally.seed, json.dumps(turn))
        out, err = process.communicate(timeout=LONG)
        died = [line for line in out.split("\n") if line in POINTS]
        _count(tally, out)
        if not died and process.returncode:
            raise AssertionError(
                f"round {tally.rounds} of seed {tally.seed}, {turn}\n{err[-3000:]}"
            )
        tally.done["kills"] += len(died)
        tally.done["double"] += bool(died) and "healed" not in out
        for place in died:
            whom = turn["kill"] if "healed" in out else turn["heal"]
            tally.kills[f"{place} {whom['whom']} {turn['family']}"] += 1
        if "survived" in out or (died and "healed" in out):
            return


def _count(tally: Tally, out: str) -> None:
    for line in out.splitlines():
        word, _, n = line.partition(" ")
        if word == "checked":
            tally.done["checks"] += 1
            tally.done["events compared"] += int(n)
        elif word in ("ran", "healed"):
            tally.done["runs"] += 1


def race(tally: Tally, home: Path, *, crowd: bool) -> None:
    """Several commands at once on what the last round has left.

    The pointer can be read all the while.
    """
    family = str(round_plan(tally.rounds, tally.seed)["family"])
    if not (home / family / "source").exists():
        return
    spec = home / family / "lab.yaml"
    spec.write_text(_spec(home, family))
    low, high = (moment(us).isoformat() for us in (BASE, BASE + 600 * MINUTE))
    live = ("run", str(spec), "--arrival", moment(ARRIVAL).isoformat())
    backfill = ("backfill", str(spec), "--from", low, "--to", high)
    others = (
        [backfill, ("maintain", str(spec)), ("publish", str(spec), "--accept", "torture")]
        if crowd
        else []
    )
    tally.done += at_once([live, live, *others], home, family, again=crowd)
    tally.done["crowds" if crowd else "races"] += 1


def at_once(
    commands: list[tuple[str, ...]], home: Path, family: str, *, again: bool
) -> Counter[str]:
    """What came of the commands, started together: each ends well or with 75.

    With `again` those that ended with 75 are started anew, as soon as another one has ended well or
    none is left.
    """
    pointer = home / family / "lake" / "lab" / "_published.json"
    done, racing, busy = (
        Counter[str](),
        [start(home, "jobs", *command) for command in commands],
        list[list[str]](),
    )
    until, newest = time.monotonic() + LONG, -1
    while racing:
        assert time.monotonic() < until, (
            f"still at work after {LONG} s: {[process.args for process in racing]}"
        )
        time.sleep(0.05)
        if pointer.exists():
            seen = json.loads(pointer.read_text())["seq"]
            assert seen >= newest, (
                f"the pointer went back from step {newest} of the ledger to {seen}"
            )
            done["pointer moves"] += newest not in (-1, seen)
            done["pointer reads"] += 1
            newest = seen
        for process in [p for p in racing if p.poll() is not None]:
            said = process.communicate()[1][-500:]
            assert process.returncode in (0, 75), (process.args, process.returncode, said)
            done["busy" if process.returncode else "runs"] += 1
            racing.remove(process)
            if process.returncode:
                busy.append(process.args[2:])  # type: ignore[index]
            if again and busy and not (process.returncode and racing):
                racing += [start(home, *command) for command in busy]
                busy.clear()
    assert done["runs"], commands
    return done


def _spec(home: Path, family: str) -> str:
    return json.dumps(Family(None, home, family, "").lab.spec())  # type: ignore[arg-type]


def main() -> None:
    """Tortures until the time is up."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--home", type=Path, default=ROOT / "build" / "torture")
    asked = parser.parse_args()
    asked.home.mkdir(parents=True, exist_ok=True)
    tally, began = Tally.of(asked.home), time.monotonic()
    tally.commits = list(dict.fromkeys([*tally.commits, _commit()]))
    before = tally.seconds
    while time.monotonic() - began < asked.minutes * 60:
        round_of(tally, asked.home)
        if tally.rounds % 4 == 3:
            race(tally, asked.home, crowd=tally.rounds % 8 == 7)
        tally.rounds += 1
        tally.seconds = before + time.monotonic() - began
        tally.save(asked.home)
        print(f"{tally.rounds} rounds, {dict(tally.done)}", file=sys.stderr, flush=True)
    show(tally)


def show(tally: Tally) -> None:
    """The figures."""
    table = Table(
        title=(
            f"seed {tally.seed}, commit {', '.join(tally.commits)}, {tally.seconds / 3600:.1f} "
            f"hours"
        )
    )
    table.add_column("what")
    table.add_column("how many", justify="right")
    for name, n in {"rounds": tally.rounds, **tally.done}.items():
        table.add_row(name, f"{n:,}")
    table.add_row(
        "of place, kill and family, met", f"{len(tally.kills):,} of {len(COMBINATIONS):,}"
    )
    Console().print(table)


def _commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


if __name__ == "__main__":
    main()
