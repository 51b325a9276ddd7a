"""Processes of a running Airflow that are killed at random moments of a DAG run."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import psutil

from tests.live.airflow import Airflow
from tests.live.rest import ENDED, DagRun

VICTIMS = ("scheduler", "worker", "task", "command")
LATEST_S = 30.0
"""The latest moment of a kill, in seconds after the first of its kind of process is there."""
GLANCE_S = 0.05


@dataclass(frozen=True)
class Plan:
    """Whom to kill, and how long after the first process of that kind."""

    victim: str
    after_s: float

    def sooner(self) -> "Plan":
        """The same, after half the time, because a DAG run had ended before."""
        return replace(self, after_s=self.after_s / 2)


@dataclass(frozen=True)
class Killed:
    """What was killed, and when by the clock that only goes forward."""

    what: str
    at: float


def plan_kills(rng: Random) -> Iterator[Plan]:
    """Each kind of victim once before any comes again, at random moments."""
    while True:
        for victim in rng.sample(VICTIMS, len(VICTIMS)):
            yield Plan(victim, rng.uniform(0, LATEST_S))


def kill(airflow: Airflow, spec: Path, run: DagRun, plan: Plan) -> Killed | None:
    """Kills as planned; None where the DAG run has ended before there was anybody to kill."""
    first: float | None = None
    looked = 0.0
    while True:
        now = time.monotonic()
        found = _find(airflow, spec, plan.victim)
        if found and first is None:
            first = now
        if found and first is not None and now >= first + plan.after_s:
            with suppress(psutil.NoSuchProcess):
                what = _describe(found[0], plan.victim)
                found[0].kill()
                return Killed(what, time.monotonic())
        if now >= looked + 1:
            looked = now
            if airflow.rest.state(run) in ENDED:
                return None
        time.sleep(GLANCE_S)


def _find(airflow: Airflow, spec: Path, victim: str) -> list[psutil.Process]:
    if victim == "command":
        return airflow.find_commands(spec)
    if victim == "worker":
        return airflow.find_workers()
    if victim == "task":
        return airflow.find_tasks()
    scheduler = airflow.find_scheduler()
    return [scheduler] if scheduler else []


def _describe(process: psutil.Process, victim: str) -> str:
    """The kind of victim; of a command also which one it is."""
    if victim != "command":
        return victim
    words = process.cmdline()
    first = next(n for n, word in enumerate(words) if word.endswith("tidemark"))
    return f"command {words[first + 1]}"
