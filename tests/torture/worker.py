"""One process: finishes what the last one left.

Compares, lives on for some runs, and then does a step that it may not survive.

    python -m tests.torture.worker HOME SEED '{"family": "clock", "heal": null, "runs": 2,
        "step": "run", "place": "state.stored", ...}'

Every line it prints is a word and a number: what it has done. It ends with whoever started it, that
is, when its input does.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

from jobs.maintain import maintain
from jobs.publish import publish
from jobs.session import spark_session
from jobs.sessions.process import stay_on_utc
from jobs.sessions.profiles import TEST
from jobs.validate import validate
from tests.support.killed_process import Killer, patiently
from tests.torture.family import BASE, LIFE, MINUTE, STEP, Family
from windowing.crash import armed


def tell(word: str, n: int = 1) -> None:
    """One thing that was done."""
    print(word, n, flush=True)


def steps(family: Family, rng: Random) -> dict[str, Callable[[], object]]:
    """What a process can be killed in."""
    lab, end = family.lab, BASE + family.batches * STEP
    start = rng.randrange(BASE - 360 * MINUTE, end)

    def judged() -> None:
        validate(lab.spark, lab.pipeline)
        publish(lab.pipeline, "tortured")

    return {
        "run": lab.go,
        "backfill": lambda: lab.backfill(start, start + 300 * MINUTE),
        "maintain": lambda: maintain(lab.spark, lab.pipeline),
        "publish": judged,
    }


def main(home: str, seed: str, plan: str) -> None:
    """Does what `plan` says."""
    Thread(target=_end_with_input, daemon=True).start()
    asked: dict[str, Any] = json.loads(plan)
    stay_on_utc()
    family = Family(spark_session("tortured", **TEST), Path(home), asked["family"], seed)
    rng = Random(f"{seed}:{asked}")
    killer = {which: _killer(family, asked[which]) for which in ("heal", "kill")}
    with killer["heal"]:
        if not family.batches:
            tell("landed", family.land())
        patiently(family.lab.go)
        tell("healed")
    tell("checked", family.check())
    if family.batches >= LIFE:
        family = family.renew()
        tell("renewed")
    for _ in range(asked["runs"]):
        tell("landed", family.land())
        patiently(family.lab.go)
        tell("ran")
    tell("landed", family.land())
    with killer["kill"]:
        steps(family, rng)[asked["step"]]()
        tell("survived")


def _end_with_input() -> None:
    sys.stdin.read()
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _killer(family: Family, how: dict[str, Any] | None) -> Any:
    return armed(Killer(family.spark, **how)) if how else nullcontext()


if __name__ == "__main__":
    main(*sys.argv[1:])
