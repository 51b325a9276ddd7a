"""One round of a lane, or a race in it: starts processes and counts what they say."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.crash_points import POINTS
from tests.support.killed_process import light
from tests.support.pipeline_under_test import ARRIVAL
from tests.torture.family import BASE, MINUTE, Family, lake_of
from tests.torture.tally import Tally
from windowing.grid.zone import moment

ROOT = Path(__file__).parents[2]
LONG = 1200
"""Seconds in which whatever is started must have ended."""
_ENDS = {0: "runs", 3: "refused", 75: "busy"}
"""How a command of a race may end; with 3 a publication of what is not validated yet."""


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
    )  # type: ignore[call-overload]


@cache
def _ends() -> int:
    """A descriptor that can be read to its end when this process has ended, however that was."""
    return os.pipe()[0]


def play_round(tally: Tally, home: Path, plan: dict[str, Any]) -> None:
    """One process, and a second if the first was killed while it finished another one's work."""
    for turn in [plan, plan | {"heal": None}] if plan["heal"] else [plan]:
        process = start(home, "tests.torture.worker", str(home), tally.seed, json.dumps(turn))
        out, err = process.communicate(timeout=LONG)
        lines = out.splitlines()
        healed = any(line.startswith("healed ") for line in lines)
        died = [line for line in lines if line in POINTS]
        tally.count_lines(lines)
        if not died and process.returncode:
            raise AssertionError(
                f"round {tally.rounds} of seed {tally.seed}, {turn}\n{err[-3000:]}"
            )
        tally.done["kills"] += len(died)
        tally.done["double"] += bool(died) and not healed
        for place in died:
            whom = turn["kill"] if healed else turn["heal"]
            tally.kills[f"{place} {whom['whom']} {turn['family']}"] += 1
        if any(line.startswith("survived ") for line in lines) or (died and healed):
            return


def play_race(tally: Tally, home: Path, family: str) -> None:
    """Two runs at once on what the last round has left; the pointer can be read all the while."""
    if _play_with_two_runs(tally, home, family):
        tally.done["races"] += 1


def play_crowd(tally: Tally, home: Path, family: str) -> None:
    """Two runs, a backfill, a maintenance and a publication at once; the pointer can be read."""
    low, high = (moment(us).isoformat() for us in (BASE, BASE + 600 * MINUTE))
    others = (
        ("backfill", "--from", low, "--to", high),
        ("maintain",),
        ("publish", "--accept", "torture"),
    )
    if _play_with_two_runs(tally, home, family, *others):
        tally.done["crowds"] += 1


def _play_with_two_runs(tally: Tally, home: Path, family: str, *others: tuple[str, ...]) -> bool:
    """Whether there is a lake; if so, two runs and `others`, which may be second, were played."""
    lake = lake_of(home, family)
    if not (lake / "source").exists():
        return False
    spec = lake / "lab.yaml"
    spec.write_text(json.dumps(Family(None, home, family, "").lab.spec()))
    run = ("run", "--validate", "--arrival", moment(ARRIVAL).isoformat())
    commands = [(name, str(spec), *words) for name, *words in (run, run, *others)]
    tally.done += _play_at_once(commands, home, lake, retry=bool(others))
    return True


def _play_at_once(
    commands: list[tuple[str, ...]], home: Path, lake: Path, *, retry: bool
) -> Counter[str]:
    """What came of the commands, started together: each ends well, or as `_ENDS` says.

    With `retry` those that ended with 75 are started anew, as soon as another one has ended well or
    none is left.
    """
    pointer = lake / "lake" / "lab" / "_published.json"
    done, busy = Counter[str](), list[list[str]]()
    racing = [start(home, "jobs", *command) for command in commands]
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
            code = process.returncode
            assert code in _ENDS and (retry or code != 3), (process.args, code, said)
            done[_ENDS[code]] += 1
            racing.remove(process)
            if code == 75:
                busy.append(process.args[2:])
            if retry and busy and not (process.returncode and racing):
                racing += [start(home, *command) for command in busy]
                busy.clear()
    assert done["runs"], commands
    return done
